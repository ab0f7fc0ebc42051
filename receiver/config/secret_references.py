"""Secrets by reference: `env:NAME`, `file:/path`, each with `?` at its end where it may be absent.

Everything in the configuration that names a secret is read here. What a secret is never shows in an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, ValidationInfo

_QUOTES: Final = frozenset("'\"`\u2018\u2019\u201c\u201d")


class Unreadable(ValueError):  # noqa: N818  a state of a file, which each reader words for its setting
    """The file that a reference names is there and can't be read; its text says why, without the path."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The place of a secret: the environment variable or the file called `place`."""

    kind: Literal["env", "file"]
    place: str
    may_be_absent: bool

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the reference that `text` is, or None where it is not one."""
        kind, _, rest = text.partition(":")
        place = rest.removesuffix("?")
        if kind not in {"env", "file"} or not place:
            return None
        return cls("env" if kind == "env" else "file", place, rest.endswith("?"))

    def look_up(self, environ: Mapping[str, str]) -> str | None:
        """Return what is there, stripped, maybe ''; None where nothing is. Raises `Unreadable`."""
        value = self.written(environ)
        return None if value is None else value.strip()

    def written(self, environ: Mapping[str, str]) -> str | None:
        """Return what is there as it is written; None where nothing is. Raises `Unreadable`."""
        if self.kind == "env":
            return environ.get(self.place)
        try:
            return Path(self.place).read_bytes().decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Unreadable(f"can't be read: {type(error).__name__}") from None


def surroundings(written: str) -> str:
    """Return what stands around a secret and is hardly a part of it, '' for nothing; never the secret."""
    secret = written.strip()
    if secret[:1] in _QUOTES or secret[-1:] in _QUOTES:
        return "has quotes around it, which count as a part of it; remove them"
    if written.strip("\r\n") != written:
        return "has a line end around it, which is left out"
    return "has blanks around it, which are left out" if written != secret else ""


def resolve(text: str, environ: Mapping[str, str], *, is_needed: bool = True) -> str:
    """Return the secret that a reference names; '' for an absent one that may be absent, or is not needed.

    Raises: ValueError saying what is missing or wrong.
    """
    reference = Reference.parse(text)
    if reference is None:
        raise ValueError('a secret is given by reference; write "env:NAME" or "file:/path" instead')
    place = reference.place
    try:
        found = reference.look_up(environ)
    except Unreadable as error:
        if not is_needed:
            return ""
        raise ValueError(f"{place} {error}") from None
    if is_needed and not found and not reference.may_be_absent:
        raise ValueError(f"{place} is not set" if reference.kind == "env" else f"{place} is missing or empty")
    return found or ""


class Lookup(NamedTuple):
    """The context in which a file is read: the environment in which its references are looked up.

    Without `need_secrets`, a `NeededSecret` that is not in this environment is not a mistake.
    """

    environ: Mapping[str, str]
    need_secrets: bool


def _needed(text: str, info: ValidationInfo[Lookup]) -> str:
    return resolve(text, info.context.environ, is_needed=info.context.need_secrets)


class Absent(str):
    """The empty text in place of a secret that a reference leads to elsewhere; `why` names the variable or file."""

    __slots__ = ("why",)
    why: str

    def __new__(cls, why: str) -> Self:  # noqa: D102
        absent = super().__new__(cls)
        absent.why = why
        return absent


def of_workers(text: str, info: ValidationInfo[Lookup]) -> str:
    """Return the secret that a reference names, which only a worker needs; `Absent` where it leads nowhere here."""
    try:
        return resolve(text, info.context.environ)
    except ValueError as error:
        if Reference.parse(text) is None:
            raise
        return Absent(str(error))


def why_absent(secret: str) -> str:
    """Return why a secret that only a worker needs is empty."""
    return secret.why if isinstance(secret, Absent) else "it is not set"


NeededSecret = Annotated[str, AfterValidator(_needed)]
WorkersSecret = Annotated[str, AfterValidator(of_workers)]
