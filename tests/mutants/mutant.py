"""One mistake as `mutants.toml` has it: a text of the product, and what stands there instead."""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CORE = ("jobs/", "receiver/intake/", "receiver/ledger/")
"""Where most mistakes are planted: a delivery is lost or doubled here, or nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mistake: `old` stands once in `file`, and `new` in its place breaks the promise that `why` names.

    reached_in: what executes the line, where that is in a text of the module, such as a statement in SQL:
        `file::function`, or `file::` and a text that stands once in the file, in the statement that does it
    when: where hundreds of tests execute the line, what must be true there for the mistake to make a difference; of
        the others there is not time for all
    """

    name: str
    file: str
    old: str
    new: str
    why: str
    reached_in: str = ""
    when: str = ""

    @property
    def is_core(self) -> bool:
        """Whether it is in the parts that the promises hang on."""
        return self.file.startswith(CORE)

    @property
    def digest(self) -> str:
        """What tells it from a later mutant of the same name."""
        parts = (self.file, self.old, self.new, self.reached_in, self.when)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def planted(self, text: str) -> str:
        """Return the text of the file with the mistake. Raises: ValueError where `old` does not stand there once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(
                f"mutant {self.name}: its old text stands {count} times in {self.file}, expected once; write it anew"
            )
        return text.replace(self.old, self.new)

    def line(self, text: str) -> int:
        """Return the number of the first line that changes, from 1."""
        pairs = zip(self.old, self.new, strict=False)
        same = next(
            (n for n, (old, new) in enumerate(pairs) if old != new), min(len(self.old), len(self.new))
        )
        return text.count("\n", 0, text.index(self.old) + min(same, len(self.old) - 1)) + 1


def mutants(path: Path = HERE / "mutants.toml") -> list[Mutant]:
    """Read all, in their order."""
    return [Mutant(**each) for each in tomllib.loads(path.read_text())["mutant"]]
