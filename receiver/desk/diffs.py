"""How an event's body differs from the last one of its kind that was done, path by path, with both values shortened.

Numbers are compared as their senders wrote them: 1 and 1.0 are two, and none is too long to be read.
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import chain, islice, zip_longest
from typing import Any, Final, Literal

from pydantic import Field

from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.events import EventPath, found_event
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_details import Detail
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus

MAX_CHANGES: Final = 200
MAX_COMPARED: Final = 1_000_000
"""Bytes of a body; a larger one is not compared."""
_MAX_VALUE: Final = 120
_MAX_PATH: Final = 300
_MAX_DEPTH: Final = 3
_MAX_ITEMS: Final = 10
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MISSING: Final = object()
_Pair = tuple[str, object, object]
"""A path, and what stands there before and after."""


class NotJson(ValueError):  # noqa: N818  a state of the world
    """A body can't be compared, since it is not JSON."""


class BodyChange(ResponseModel):
    """A path at which two bodies differ, with the values there as JSON, shortened."""

    path: str = Field(description="as `$.data.object.amount`; an item of a list is `[0]`")
    kind: Literal["added", "removed", "changed"]
    before: str | None = Field(description="null of what was added")
    after: str | None = Field(description="null of what was removed")


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def parsed(body: bytes) -> Any:  # noqa: ANN401  any JSON
    """Read a body to be compared. Raises: `NotJson`."""
    try:
        return json.loads(body, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError):
        raise NotJson from None


def changes(before: object, after: object) -> Iterator[BodyChange]:
    """Yield where two parsed bodies differ, in the order of the second; what is only in the first comes last."""
    waiting: list[Iterator[_Pair]] = [iter([("$", before, after)])]
    while waiting:
        pair = next(waiting[-1], None)
        if pair is None:
            waiting.pop()
            continue
        path, one, other = pair
        if isinstance(one, dict) and isinstance(other, dict):
            waiting.append(_of_objects(path, one, other))
        elif isinstance(one, list) and isinstance(other, list):
            waiting.append(_of_lists(path, one, other))
        elif type(one) is not type(other) or one != other:
            yield _change(path, one, other)


_LOOK: Final = timedelta(milliseconds=60)
"""How long an event to compare with is looked for, newest first along the primary key."""


class EventDiff(ResponseModel):
    """Which paths of an event's body differ from those of the last such event that was done."""

    event: Identifier
    compared_with: Identifier | None = Field(
        description="the last event of the source and the type that came before this one and was done"
    )
    why_not: Ours | None = Field(description="why nothing is compared; null where the bodies were")
    changes: list[BodyChange]
    is_cut: bool = Field(description=f"there are more than {MAX_CHANGES} paths, of which the first are here")


class _NotCompared(Exception):  # noqa: N818  a state of the world
    """Two bodies are not compared; the text says why."""


@action(scope=Scope.READ)
def diff_event(desk: Desk, which: EventPath) -> EventDiff:
    """Show how an event's body differs from the last one of its source and type that was done before it.

    Paths are as `$.data.object.amount`, values are JSON, shortened; bodies are compared as they are shown.
    Needs the scope `bodies` besides.
    """
    desk.require(Scope.BODIES)
    found = found_event(desk, which)
    diff = EventDiff(event=found.event.id, compared_with=None, why_not=None, changes=[], is_cut=False)
    try:
        number = diff.compared_with = _last_done(desk, found.event)
        other = deliveries.event(desk, number)
        before, after = _parsed(other, number), _parsed(found, diff.event)
    except _NotCompared as error:
        diff.why_not = str(error)
        return diff
    listed = list(islice(changes(before, after), MAX_CHANGES + 1))
    diff.changes, diff.is_cut = listed[:MAX_CHANGES], len(listed) > MAX_CHANGES
    return diff


def _last_done(desk: Desk, event: Event) -> int:
    wanted = Filter(source=event.source, type=event.type, status=EventStatus.DONE)
    page = events.newest(desk.connection, wanted, 1, event.id, _LOOK)
    if page.rows:
        return page.rows[0].id
    since = (
        f" since {page.back_to:%Y-%m-%d %H:%M} UTC; what is older was not looked at" if page.back_to else ""
    )
    raise _NotCompared(f"no event of this source and type that came before it is done{since}")


def _parsed(found: Detail | None, number: int) -> object:
    if found is None:
        raise _NotCompared(f"event {number} was dropped just now")
    name, body = f"the body of event {number}", found.body
    if body is None:
        raise _NotCompared(f"{name} {found.why_no_body}")
    if body.unreadable:
        raise _NotCompared(f"{name}: {body.unreadable}")
    if len(body.body) > MAX_COMPARED:
        raise _NotCompared(
            f"{name} has more than {MAX_COMPARED // 1_000_000} MB; download both to compare them"
        )
    try:
        return parsed(body.body)
    except NotJson:
        raise _NotCompared(f"{name} is not JSON") from None


def _of_objects(path: str, one: dict[str, object], other: dict[str, object]) -> Iterator[_Pair]:
    for key in chain(other, (key for key in one if key not in other)):
        yield _cut(path + _step(key), _MAX_PATH), one.get(key, _MISSING), other.get(key, _MISSING)


def _of_lists(path: str, one: list[object], other: list[object]) -> Iterator[_Pair]:
    for n, (first, second) in enumerate(zip_longest(one, other, fillvalue=_MISSING)):
        yield _cut(f"{path}[{n}]", _MAX_PATH), first, second


def _change(path: str, one: object, other: object) -> BodyChange:
    kind: Literal["added", "removed", "changed"] = "changed"
    if one is _MISSING:
        kind = "added"
    elif other is _MISSING:
        kind = "removed"
    return BodyChange(path=path, kind=kind, before=_shown(one), after=_shown(other))


def _step(key: str) -> str:
    return f".{key}" if _NAME.fullmatch(key) else f"[{_quoted(key)}]"


def _shown(value: object) -> str | None:
    return None if value is _MISSING else _cut(_text(value, 0), _MAX_VALUE)


def _text(value: object, depth: int) -> str:
    """Write a value as JSON, as far as it is shown."""
    match value:
        case _Number():
            return str(value)
        case str():
            return _quoted(value)
        case dict():
            inner = (f"{_quoted(key)}: {_text(each, depth + 1)}" for key, each in value.items())
            return "{" + _listed(inner, len(value), depth) + "}"
        case list():
            return "[" + _listed((_text(each, depth + 1) for each in value), len(value), depth) + "]"
    return json.dumps(value)


def _listed(inner: Iterable[str], length: int, depth: int) -> str:
    if depth >= _MAX_DEPTH:
        return "…" if length else ""
    return ", ".join([*islice(inner, _MAX_ITEMS), *(["…"] if length > _MAX_ITEMS else [])])


def _quoted(text: str) -> str:
    """Write a text as JSON; what PostgreSQL or a terminal could not take is escaped."""
    text = text[: _MAX_PATH + 1]
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
