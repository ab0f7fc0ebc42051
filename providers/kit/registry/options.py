"""Checks the options of a source, all of them at once, so that a configuration is corrected in one go."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from hookonce.providers.kit.reading.bodies import header_name

_MAX_SECONDS: Final = 86_400
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_Word = TypeVar("_Word", bound=str)
_Made = TypeVar("_Made")


class Options:
    """Takes options one by one; a wrong one gives its default, and the mistake is kept until `done`."""

    def __init__(self, given: Mapping[str, Any], owner: str) -> None:
        self._given = dict(given)
        self._owner = owner
        self._known: list[str] = []
        self.mistakes: list[str] = []

    def take(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  any TOML value
        """Return the option as it was given."""
        self._known.append(name)
        return self._given.get(name, default)

    def text(self, name: str, default: str | None = None) -> str:
        """Return an option that is text, required if there is no default."""
        value = self.take(name, default)
        if isinstance(value, str) and (value or default == ""):
            return value
        missing = value is None
        self.mistakes.append(f"{name} is required" if missing else f"{name} is {value!r}, expected text")
        return default or ""

    def header(self, name: str, default: str | None = None) -> str:
        """Return an option that is a header's name, required if there is no default."""
        value = self.text(name, default)
        if value and not _HEADER.fullmatch(value):
            self.mistakes.append(f"{name} is {value!r}, expected a header's name")
        return self.arriving(name, value)

    def arriving(self, name: str, header: str) -> str:
        """Return a header's name, which is a mistake in the option `name` where such a header never arrives."""
        try:
            header_name(header)
        except ValueError as error:
            self.mistakes.append(f"{name}: {error}")
        return header

    def choice(self, name: str, choices: tuple[_Word, ...]) -> _Word:
        """Return an option that is one of `choices`, the first by default."""
        value = self.take(name, choices[0])
        for choice in choices:
            if value == choice:
                return choice
        self.mistakes.append(f"{name} is {value!r}, expected one of {', '.join(choices)}")
        return choices[0]

    def flag(self, name: str) -> bool:
        """Return an option that is true or false, false by default."""
        value = self.take(name, default=False)
        if not isinstance(value, bool):
            self.mistakes.append(f"{name} is {value!r}, expected true or false")
        return value is True

    def some_of(self, name: str, choices: tuple[str, ...], default: str) -> tuple[str, ...]:
        """Return an option that is a list of one or more of `choices`, `default` alone unless given."""
        value = self.take(name, [default])
        if isinstance(value, list) and value and all(each in choices for each in value):
            return tuple(value)
        self.mistakes.append(f"{name} is {value!r}, expected a list of some of {', '.join(choices)}")
        return (default,)

    def seconds(self, name: str, default: int) -> int:
        """Return an option that is a positive number of whole seconds, up to a day."""
        value = self.take(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_SECONDS:
            return value
        self.mistakes.append(f"{name} is {value!r}, expected whole seconds from 1 to {_MAX_SECONDS}")
        return default

    def done(self) -> None:
        """Raises: ValueError listing every mistake, unknown options (with a suggestion) included."""
        known = list(dict.fromkeys(self._known))
        unknown = [
            f"{name!r} is not an option, {_hint(name, known)}" for name in self._given if name not in known
        ]
        if self.mistakes or unknown:
            msg = f"{self._owner}: {'; '.join([*unknown, *self.mistakes])}"
            raise ValueError(msg)


def with_options(owner: str) -> Callable[[Callable[[Options], _Made]], Callable[[Mapping[str, Any]], _Made]]:
    """Let a module's `configure` take its `Options`; every mistake is told when it has taken all of them.

    A default stands in for what is wrong, so that it goes on; what it raises then is a mistake less worth telling.
    """

    def decorate(configure: Callable[[Options], _Made]) -> Callable[[Mapping[str, Any]], _Made]:
        def configured(options: Mapping[str, Any]) -> _Made:
            """Make the provider with a source's options. Raises: ValueError listing every mistake."""
            given = Options(options, owner)
            try:
                made = configure(given)
            except ValueError:
                given.done()
                raise
            given.done()
            return made

        return configured

    return decorate


def _hint(word: str, choices: Iterable[str]) -> str:
    close = get_close_matches(word.lower(), choices, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(choices)}"
