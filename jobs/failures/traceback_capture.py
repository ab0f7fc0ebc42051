"""The traceback of an error as it is kept: whole, with its causes, bounded, and without values unless asked.

The frames that lead to the handler are left out: those are ours. Where it is too long, the oldest frames of each error
are cut first, then errors in the middle of very many, then what they say.
"""

import linecache
import sysconfig
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from types import FrameType
from typing import Literal

from hookonce.jobs.failures.error_summary import home_of, is_ours, is_users, message_of
from hookonce.jobs.failures.local_values import local_values
from hookonce.receiver.ledger.traceback_frames import Frame, Inner, Raised, Traceback

MAX_LENGTH = 16_000
"""Bytes of a traceback that is kept."""

_MAX_CAUSES = 10_000
_LINES_BEFORE = 4
"""Lines of the user's code that are kept before the one at which a frame stood."""
_WITH_LOCALS = 4
"""Frames of the user's in an error, the newest, whose variables may be kept."""
_MAX_CODE = 200
"""Characters of a line of code."""
_LOOP = tuple(f"{sysconfig.get_path('stdlib')}/{name}" for name in ("asyncio/", "contextlib.py"))
_Link = Literal["cause", "context", ""]


@dataclass(frozen=True, slots=True)
class _Most:
    """How much is kept: frames of an error, errors in a row, of a group and one in another, characters said."""

    frames: int
    chain: int = 10
    group: int = 10
    depth: int = 3
    said: int = 20_000


_LIMITS = (
    *map(_Most, (60, 30, 15, 8, 4, 2, 1)),
    _Most(1, group=5, depth=2, said=1_000),
    _Most(1, chain=4, group=3, depth=2, said=300),
    _Most(1, chain=4, group=3, depth=1, said=200),
    _Most(0, chain=4, group=3, depth=1, said=100),
    _Most(0, chain=2, group=0, depth=0, said=500),
)
"""The last of them fits whatever is said: JSON spells a character in twelve bytes at most."""


def captured(
    error: BaseException,
    *,
    with_details: bool = False,
    with_locals: bool = False,
    cleaned: Callable[[str], str] = str,
) -> Traceback | None:
    """Return the traceback of an error and its causes; None where there is nothing but our own code.

    Parameters of statements are left out, and DETAIL lines of the database unless `with_details`; local variables of
    the user's newest frames unless `with_locals`. `cleaned` makes each text fit to be kept. Raises nothing.
    """
    try:
        if error.__cause__ is None and error.__context__ is None and not _frames(error):
            return None
        for most in _LIMITS:
            found = Traceback(_chain(error, most, _Told(with_details, with_locals, cleaned)))
            if len(found.as_json) <= MAX_LENGTH:
                return found
    except BaseException:  # noqa: BLE001  its class is the user's code, which raises anything
        return None
    return None


@dataclass(frozen=True, slots=True)
class _Told:
    """How what errors say, code and variables are written down."""

    with_details: bool
    with_locals: bool
    cleaned: Callable[[str], str]

    def said(self, error: BaseException) -> str:
        """Return what an error says, with the module of its class unless that is built in, and its notes."""
        module = type(error).__module__
        message = message_of(error, with_details=self.with_details, cleaned=self.cleaned)
        message = message if module in {"builtins", "__main__"} else f"{module}.{message}"
        notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
        return self.cleaned("\n".join([message, *notes]))


def _chain(error: BaseException, most: _Most, told: _Told, depth: int = 0) -> tuple[Raised, ...]:
    chain = _linked(error)
    half = most.chain // 2
    cut = max(len(chain) - most.chain, 0)
    kept = chain[:half] + chain[-half:] if cut else chain
    return tuple(
        _raised(each, link, most, told, depth, skipped=cut if number == half - 1 else 0)
        for number, (each, link) in enumerate(kept)
    )


def _linked(error: BaseException) -> list[tuple[BaseException, _Link]]:
    """Return an error after what it came from, each with how it led to the next."""
    chain: list[tuple[BaseException, _Link]] = []
    seen: set[int] = set()
    link: _Link = ""
    each: BaseException | None = error
    while each is not None and id(each) not in seen and len(chain) < _MAX_CAUSES:
        seen.add(id(each))
        chain.append((each, link))
        if each.__cause__ is not None:
            each, link = each.__cause__, "cause"
        else:
            each, link = None if each.__suppress_context__ else each.__context__, "context"
    return chain[::-1]


def _raised(  # noqa: PLR0913  one step of `_chain`
    error: BaseException, link: _Link, most: _Most, told: _Told, depth: int, *, skipped: int
) -> Raised:
    whole = _frames(error)
    kept = whole[len(whole) - most.frames :] if len(whole) > most.frames else whole
    newest = (
        [frame for frame, _ in kept if is_users(_path(frame))][-_WITH_LOCALS:] if told.with_locals else ()
    )
    inner: tuple[Inner, ...] = ()
    if isinstance(error, BaseExceptionGroup) and depth < most.depth:
        inner = tuple(
            Inner(number, len(error.exceptions), _chain(each, most, told, depth + 1))
            for number, each in enumerate(error.exceptions[: most.group], 1)
        )
    return Raised(
        told.said(error)[: most.said],
        tuple(_frame(frame, line, told, has_locals=frame in newest) for frame, line in kept),
        link,
        len(whole) - len(kept),
        skipped,
        inner,
    )


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Return the frames from the handler's on, each with its line."""
    whole = list(traceback.walk_tb(error.__traceback__))
    first = 0
    while first < len(whole) and (is_ours(path := _path(whole[first][0])) or path.startswith(_LOOP)):
        first += 1
    return whole[first:]


def _path(frame: FrameType) -> str:
    return frame.f_code.co_filename


def _frame(frame: FrameType, line: int, told: _Told, *, has_locals: bool) -> Frame:
    path = _path(frame)
    of_user = is_users(path)
    before = _LINES_BEFORE if of_user else 0
    numbers = range(max(line - before, 1), line + 1)
    # What is masked is whole then: half a secret would not be found.
    code = told.cleaned("\n".join([linecache.getline(path, number).rstrip() for number in numbers]))
    lines = [each[:_MAX_CODE] for each in code.split("\n")]
    while len(lines) > 1 and not lines[0]:
        del lines[0]
    kept = dedent("\n".join(lines)).split("\n") if lines[-1] else []
    folder = home_of(path)
    values = local_values(frame.f_locals, told.cleaned) if has_locals else ()
    return Frame(
        path[len(folder) :], line, frame.f_code.co_name, tuple(kept), of_user, folder, local_values=values
    )
