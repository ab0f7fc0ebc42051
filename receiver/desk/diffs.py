"""What is other in an event's body than in the last one of its kind that went well."""

from datetime import timedelta
from itertools import islice
from typing import Final

from pydantic import Field

from hookonce.receiver.desk import content
from hookonce.receiver.desk.body_diff import MAX_CHANGES, MAX_COMPARED, BodyChange, NotJson, changes, parsed
from hookonce.receiver.desk.events import EventPath, found_event
from hookonce.receiver.desk.models import Identifier, Ours, ResponseModel
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_details import Detail
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import EventRow
from hookonce.receiver.ledger.states import EventStatus

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
        other = content.event(desk, number)
        before, after = _parsed(other, number), _parsed(found, diff.event)
    except _NotCompared as error:
        diff.why_not = str(error)
        return diff
    listed = list(islice(changes(before, after), MAX_CHANGES + 1))
    diff.changes, diff.is_cut = listed[:MAX_CHANGES], len(listed) > MAX_CHANGES
    return diff


def _last_done(desk: Desk, event: EventRow) -> int:
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
