"""The traceback of a failed attempt as data: what each error said, and its frames with the code they stood at.

It is made once, at the failure, where it is known which files are the user's (`jobs.failures.traceback_capture`);
commands, the API and the pages show it, each in its own way. The ledger keeps it as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from textwrap import indent
from typing import Any, Literal

from hookonce.receiver.ledger.withheld import class_of

_WORDS = {
    "cause": "\nThe above exception was the direct cause of the following exception:\n\n",
    "context": "\nDuring handling of the above exception, another exception occurred:\n\n",
    "": "",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """One call: `file` as seen from where its module was found, which is `folder`.

    `code` ends at the line, and begins some lines before it in a file of the user's; empty where the source is not
    there. `local_values` are names of variables with what they held, as text, where `[receiver] keep_locals` is on.
    """

    file: str = ""
    line: int = 0
    function: str = ""
    code: tuple[str, ...] = ()
    is_users: bool = False
    folder: str = ""
    local_values: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """The whole path of its file, on the machine of the worker."""
        return self.folder + self.file


@dataclass(frozen=True, slots=True)
class Raised:
    """One error: what it said, its frames (the newest last), and how it led to the error after it.

    `older` frames are left out, and `skipped` errors between this one and the next. `inner` are the errors of a group.
    """

    said: str = ""
    frames: tuple[Frame, ...] = ()
    link: Literal["cause", "context", ""] = ""
    older: int = 0
    skipped: int = 0
    inner: tuple["Inner", ...] = ()


@dataclass(frozen=True, slots=True)
class Inner:
    """One of `of` errors in a group, with what it came from."""

    number: int
    of: int
    errors: tuple[Raised, ...]


@dataclass(frozen=True)
class Traceback:
    """An error after what it came from: the newest is last."""

    errors: tuple[Raised, ...]

    @property
    def text(self) -> str:
        """The traceback as Python prints it."""
        return "".join(map(_text, self.errors))

    def whole(self, error: str) -> str:
        """Return what the last error said, if that is `error`, of which the class may be known alone."""
        said = self.errors[-1].said if self.errors else ""
        name = said.partition(":")[0].rpartition(".")[2]
        return said if name and error.startswith(name) else error

    def brief(self) -> "Traceback":
        """Return the traceback without content: neither what errors say, nor what variables held."""
        return Traceback(tuple(map(_brief, self.errors)))

    @cached_property
    def as_json(self) -> bytes:
        """Return the form that the ledger keeps; `parse` reads it."""
        return json.dumps(asdict(self, dict_factory=_said)).encode()


@dataclass(frozen=True, slots=True)
class Calls:
    """Frames that are shown alike: each of the user's, or those of libraries between them, folded."""

    frames: tuple[Frame, ...]
    is_users: bool

    @property
    def folded(self) -> str:
        """Frames of libraries in a line: `9 frames in sqlalchemy, psycopg`."""
        names = dict.fromkeys(frame.file.split("/", 1)[0].removesuffix(".py") for frame in self.frames)
        count = len(self.frames)
        return f"{count} frame{'' if count == 1 else 's'} in {', '.join(names)}"


def parse(kept: bytes) -> Traceback | None:
    """Return what `Traceback.as_json` wrote; None of anything else."""
    try:
        return Traceback(_errors(json.loads(kept)["errors"]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def calls(raised: Raised) -> list[Calls]:
    """Return the frames of an error in their order, those of libraries between two of the user's together."""
    found: list[Calls] = []
    for frame in raised.frames:
        if found and not frame.is_users and not found[-1].is_users:
            found[-1] = Calls((*found[-1].frames, frame), is_users=False)
        else:
            found.append(Calls((frame,), frame.is_users))
    return found


def _brief(raised: Raised) -> Raised:
    inner = tuple(replace(each, errors=tuple(map(_brief, each.errors))) for each in raised.inner)
    frames = tuple(replace(each, local_values=()) for each in raised.frames)
    return replace(raised, said=class_of(raised.said), frames=frames, inner=inner)


def _text(raised: Raised) -> str:
    lines = ["Traceback (most recent call last):"] if raised.frames else []
    if raised.older:
        lines.append(f"  ({raised.older} older frames are left out)")
    for frame in raised.frames:
        lines.append(f'  File "{frame.path}", line {frame.line}, in {frame.function}')
        lines += [f"    {line.strip()}" for line in frame.code[-1:]]
    text = "\n".join([*lines, raised.said]) + "\n"
    for inner in raised.inner:
        text += f"  ---- {inner.number} of {inner.of} ----\n"
        text += indent("".join(map(_text, inner.errors)), "    ")
    skipped = f"\n({raised.skipped} more exceptions between these)\n\n" if raised.skipped else ""
    return text + (skipped or _WORDS[raised.link])


def _said(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Leave out what is empty, as most is; numbers and texts that must be there stay."""
    return {name: value for name, value in fields if value or name in {"said", "line", "errors"}}


def _errors(found: list[Mapping[str, Any]]) -> tuple[Raised, ...]:
    return tuple(
        Raised(
            **{
                **each,
                "frames": tuple(
                    Frame(
                        **{
                            **frame,
                            "code": tuple(frame.get("code", ())),
                            "local_values": tuple(map(tuple, frame.get("local_values", ()))),
                        }
                    )
                    for frame in each.get("frames", ())
                ),
                "inner": tuple(
                    Inner(inner["number"], inner["of"], _errors(inner["errors"]))
                    for inner in each.get("inner", ())
                ),
            }
        )
        for each in found
    )
