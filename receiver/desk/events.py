"""Events: what came, and what became of it."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from hookonce.receiver.desk import content
from hookonce.receiver.desk.content import ShownEvent
from hookonce.receiver.desk.filters import EventFilter, Hinted, Status, hint
from hookonce.receiver.desk.models import (
    MAX_ID,
    Identifier,
    IdInPath,
    IssueId,
    Ours,
    Page,
    Paged,
    Reference,
    RequestModel,
    ResponseModel,
    shown,
)
from hookonce.receiver.desk.refusals import Ambiguous, NotFound, Unavailable
from hookonce.receiver.desk.registry import Desk, Octets, action
from hookonce.receiver.ledger import reasons
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import event_lookup, events
from hookonce.receiver.ledger.queries.dead_letters import by_event
from hookonce.receiver.ledger.reasons import WaitsFor
from hookonce.receiver.ledger.replay import bulk
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.traceback_frames import Traceback
from hookonce.receiver.vocabulary import EVENT_STATUSES

LOOK_FOR_LOST = timedelta(seconds=1)
KINDS = 1000
"""As many are shown of what is counted."""
_COUNTED = ("type", "status", "count")


class EventPath(RequestModel):
    """An event by its ledger id, by `source:event_id`, or by how a sender's id begins."""

    event: Reference


class EventsQuery(EventFilter, Paged):
    """Which events, and which page of them."""


class Event(ResponseModel):
    """One row of the ledger."""

    id: Identifier
    source: Ours
    provider: Ours
    event_id: str
    type: str
    account: str | None
    status: Status
    due_at: datetime | None
    received_at: datetime
    occurred_at: datetime | None
    deliveries: int
    repeat_of: Identifier | None
    parked: Ours | None = Field(description=f"why it waits although it may be due: {reasons.described()}")
    is_test: bool = Field(description="whether an operator sent it, to see whether handlers work")


class DeadRun(ResponseModel):
    """A run that is dead, and the first 500 characters of its latest error."""

    handler: Ours
    error: str | None


class ListedEvent(Event):
    """One row of the ledger, and in a list of dead events what each died of."""

    dead: list[DeadRun] = Field(
        default_factory=list, description="with `status=dead`: its dead runs, and why they failed"
    )


class EventPage(Hinted, Page[ListedEvent]):
    """Events, newest first."""


class EventCount(ResponseModel):
    """How many events are of a type and in a status."""

    type: str
    status: Status
    count: int


class EventCounts(Hinted):
    """How many events match, and of what: the most frequent kinds."""

    total: int
    data: list[EventCount]


class Run(ResponseModel):
    """One handler's run; `error` is that of the latest failed attempt, unless the run is done."""

    handler: Ours
    status: Ours
    attempts: int
    cycle: int
    due_at: datetime | None
    lease_until: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    result: Any
    error: str | None
    is_skipped: bool = Field(
        description="its handler was not called, since it had done a newer version; `result` names the event of that"
    )
    parked: Ours | None = Field(
        description=f"why it waits beside others of its event: {reasons.described(of_run=True)}"
    )
    waits_for: WaitsFor | None = Field(
        description="why one that waits is not run at once; `backoff` after a failure, `delay` if it asked for that, "
        "`suspect` if its process died and it is run by itself, `batch` if others of its batch are to come along"
    )
    unreadable: Ours | None = Field(description="why the result can't be decrypted here; it is then null")


class Failure(ResponseModel):
    """A failed attempt; of the newest 50 of an event with its traceback."""

    handler: Ours
    cycle: int
    attempt: int
    failed_at: datetime
    error: str
    issue: IssueId | None = Field(description="which issue it is of; null where the event could not be read")
    started_at: datetime | None = Field(description="when it began; null where that is not known")
    traceback: str | None = Field(
        description="the exception with its causes, the newest last; null where there was none, as when a worker died"
    )
    frames: Traceback | None = Field(description="the same as data; null where the traceback is")
    unreadable: Ours | None = Field(description="why the traceback can't be decrypted here; it is then null")


class LogLine(ResponseModel):
    """A line that a handler printed or logged, or a call of another service that it traced."""

    at: int = Field(description="milliseconds since its attempt began")
    level: str = Field(description="of a logger's line; empty for what was printed")
    logger: str = Field(description="the logger's name, `stdout` or `stderr`; `call` for a call")
    text: str
    took: int | None = Field(description="milliseconds that a call took; null of what was logged")


class AttemptLog(ResponseModel):
    """What a handler printed and logged in one attempt; there is none of an attempt whose process was killed."""

    handler: Ours
    cycle: int
    attempt: int
    lines: list[LogLine]
    left_out: int = Field(description="lines that were over the limits of an attempt")
    unreadable: Ours | None = Field(description="why the lines can't be read here; there are none then")
    batch: Identifier | None = Field(
        description="of lines of a batch: its first event, which keeps them; null with that, and where it was no batch"
    )


class Step(ResponseModel):
    """A part of a handler that is done once for the event."""

    event: Identifier
    handler: Ours
    name: str
    status: Literal["running", "done", "unknown", "stopped"] = Field(
        description="`unknown`: it was cut off or failed, and may have happened; `stopped`: it waits for a person"
    )
    attempts: int
    key: str = Field(description="what the other side knows it by")
    started_at: datetime
    finished_at: datetime | None
    result: Any
    note: str | None = Field(description="why it is stopped, or who said what it gave")
    unreadable: Ours | None = Field(description="why the result can't be decrypted here; it is then null")


class OtherBody(ResponseModel):
    """Another body that came under the event's id; it was kept and not run."""

    id: Identifier
    first_at: datetime
    last_at: datetime
    deliveries: int
    headers: dict[str, str]
    bytes: int
    unreadable: Ours | None = Field(description="why the body can't be decrypted here; `bytes` is then 0")


class FullEvent(Event):
    """An event with everything that is known of it, but for the body's bytes."""

    means: Ours = Field(description="what its status means")
    url: str | None = Field(
        description="where it was delivered; null, like what follows, once the body is dropped"
    )
    headers: dict[str, str] | None
    bytes: int | None = Field(description="how long the body is; `/events/{event}/body` has it")
    unreadable: Ours | None = Field(description="why the body can't be decrypted here; `bytes` is then null")
    why_no_body: Ours | None = Field(description="where the body went; null where it is there")
    is_element: bool = Field(description="it is one of several events that came in one body")
    runs: list[Run]
    steps: list[Step]
    failures: list[Failure]
    logs: list[AttemptLog]
    conflicts: list[OtherBody]
    repeats: list[Identifier]


@action(scope=Scope.READ)
def list_events(desk: Desk, asked: EventsQuery) -> EventPage:
    """List events, newest first.

    Those that are `lost` are looked for among all, for a second a page: it may have none, and `next` still leads on.
    """
    rest: int | None = None
    if asked.status == EventStatus.LOST:
        found = events.newest(
            desk.connection, asked.wanted_by(desk), asked.limit, asked.cursor, LOOK_FOR_LOST
        )
        rows, rest = found.rows, found.rest
    else:
        rows = list(events.events(desk.connection, asked.wanted_by(desk), asked.limit, asked.cursor))
    page = EventPage.of(rows, asked, hint=hint(asked.source, rows or asked.cursor, desk.settings.sources))
    page.next = page.next or rest
    if asked.status == EventStatus.DEAD:
        deaths = by_event(content.deaths_of(desk, [row.id for row in rows]))
        for row in page.data:
            died = [each for each in deaths.get(row.id, ()) if each.handler]
            row.dead = [DeadRun(handler=str(each.handler), error=each.error) for each in died]
    return page


@action(scope=Scope.READ)
def count_events(desk: Desk, asked: EventFilter) -> EventCounts:
    """Count the events that match by type and status: what a bulk replay would find.

    Counting millions takes seconds; narrow it where it is refused for that.
    """
    rows = bulk.counts(desk.connection, asked.wanted_by(desk))
    counted = [EventCount.model_validate(dict(zip(_COUNTED, row, strict=True))) for row in rows[:KINDS]]
    return EventCounts(
        total=sum(n for _, _, n in rows),
        data=counted,
        hint=hint(asked.source, rows, desk.settings.sources),
    )


@action(scope=Scope.READ)
def get_event(desk: Desk, which: EventPath) -> FullEvent:
    """Show an event: headers, runs, failed attempts, other bodies under its id, and repeats of it."""
    found = found_event(desk, which)
    body = found.body
    delivered = body if desk.allows(Scope.BODIES) else None
    return FullEvent(
        **asdict(found.event),
        means=EVENT_STATUSES[EventStatus(found.event.status)],
        url=delivered.url if delivered else None,
        headers=delivered.headers if delivered else None,
        bytes=None if body is None or body.unreadable else len(body.body),
        unreadable=body.unreadable if body else None,
        why_no_body=None if body else found.why_no_body,
        is_element=bool(body and body.is_element),
        runs=shown(Run, found.runs),
        steps=shown(Step, found.steps),
        failures=shown(Failure, found.failures),
        logs=[AttemptLog.model_validate(log.as_mapping()) for log in found.logs],
        conflicts=[_other(conflict) for conflict in found.conflicts],
        repeats=found.repeats,
    )


class OtherBodyPath(EventPath):
    """Another body that came under an event's id, by its number."""

    body: IdInPath


@action(scope=Scope.READ)
def get_other_body(desk: Desk, which: OtherBodyPath) -> Octets:
    """Download another body that came under the id of an event. Needs the scope `bodies` besides."""
    desk.require(Scope.BODIES)
    found = found_event(desk, which)
    for other in found.conflicts:
        if other["id"] == which.body and not other["unreadable"]:
            return Octets(f"event-{found.event.id}-conflict-{which.body}.bin", other["body"])
    raise NotFound(f"event {which.event} has no other body {which.body}, or it can't be opened here")


@action(scope=Scope.READ)
def get_event_body(desk: Desk, which: EventPath) -> Octets:
    """Download the body of an event, as its source redacts it now. Needs the scope `bodies` besides."""
    desk.require(Scope.BODIES)
    found = found_event(desk, which)
    number = found.event.id
    if found.body is None:
        raise NotFound(f"the body of event {number} {found.why_no_body}; only its row is left")
    if found.body.unreadable:
        raise Unavailable(f"the body of event {number}: {found.body.unreadable}", code="key_missing")
    return Octets(f"event-{number}.bin", found.body.body)


def is_number(reference: str) -> bool:
    """Whether an event is named by what can only be a ledger id."""
    is_short = len(reference) <= len(str(MAX_ID))
    return is_short and reference.isascii() and reference.isdecimal() and 0 < int(reference) <= MAX_ID


def number_of(desk: Desk, reference: str) -> int:
    """Return the ledger id of an event, however it is named. Raises: `NotFound`, `Ambiguous` where several begin so."""
    try:
        number = event_lookup.find(desk.connection, reference)
    except event_lookup.Ambiguous as error:
        raise Ambiguous(str(error)) from None
    if number is None:
        raise _unknown(reference)
    return number


def found_event(desk: Desk, which: EventPath) -> ShownEvent:
    """Return what may be shown of an event, however it is named. Raises: `NotFound`, `Ambiguous`."""
    found = content.event(desk, number_of(desk, which.event))
    if found is None:
        raise _unknown(which.event)
    return found


def _unknown(reference: str) -> NotFound:
    return NotFound(
        f"no event is {reference!r}; expected a ledger id, source:event_id, or how a sender's id begins, "
        "see `hookonce events list`"
    )


def _other(conflict: dict[str, Any]) -> OtherBody:
    known = {name: conflict[name] for name in OtherBody.model_fields if name in conflict}
    return OtherBody(**known, bytes=len(conflict["body"]))
