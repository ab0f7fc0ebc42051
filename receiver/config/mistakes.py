"""The mistakes of a configuration, as one error. It imports nothing, so that reading a file costs nothing else."""


class ConfigError(Exception):
    """The configuration can't be used; `mistakes` lists everything that is wrong, one line each."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes

    @property
    def text(self) -> str:
        """All mistakes as a terminal shows them; one alone is one line."""
        if len(self.mistakes) == 1:
            return self.mistakes[0]
        return "the configuration has mistakes:\n" + "\n".join(f"  - {mistake}" for mistake in self.mistakes)
