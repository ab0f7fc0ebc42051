"""Events: what came, and what became of it; commands of clients among them."""

from datetime import datetime
from typing import Literal

from pydantic import Field, computed_field

from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.deliveries import ShownEvent
from hookonce.receiver.desk.filters import EventFilter, Hinted, Status, hint
from hookonce.receiver.desk.models import (
    Flag,
    IdInPath,
    Page,
    Paged,
    Reference,
    RequestModel,
    Text,
    Time,
    as_text,
)
from hookonce.receiver.desk.refusals import Ambiguous, NotFound, Unavailable
from hookonce.receiver.desk.registry import Desk, Octets, action
from hookonce.receiver.ledger import commands
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.handlers import known_handlers, matcher
from hookonce.receiver.ledger.queries import event_lookup, events
from hookonce.receiver.ledger.queries.choices import Choices, choices
from hookonce.receiver.ledger.queries.event_details import OtherBody, Run
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.queries.failures import Failure
from hookonce.receiver.ledger.replay import bulk
from hookonce.receiver.ledger.results import AttemptLog
from hookonce.receiver.ledger.rows import MAX_ID, Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.steps import Step
from hookonce.receiver.ledger.withheld import WITHHELD
from hookonce.receiver.vocabulary import EVENT_STATUSES

KINDS = 1000
"""As many are shown of what is counted."""
_COUNTED = ("type", "status", "count")


class EventPath(RequestModel):
    """An event by its ledger id, by `source:event_id`, or by how a sender's id begins."""

    event: Reference


class EventQuery(RequestModel):
    """How much of an event."""

    bodies: Flag = Field(
        default=False,
        description="with its body, and others under its id, where the token has the scope `bodies`",
    )


_WITHOUT_BODIES = EventQuery(bodies=False)
_MOST_NAMED = 20
"""Names that a message lists."""


class EventCount(ResponseModel):
    """How many events are of a type and in a status."""

    type: str
    status: Status
    count: int


class EventCounts(Hinted):
    """How many events match, and of what: the most frequent kinds."""

    total: int
    data: list[EventCount]


class FullEvent(Event):
    """An event with everything that is known of it, but for the body's bytes."""

    means: Ours = Field(description="meaning of its status")
    url: str | None = Field(
        description="URL of the delivery; null, like the headers, once the body is dropped"
    )
    headers: dict[str, str] | None
    bytes: int | None = Field(description="how long the body is; `/events/{event}/body` has it")
    body: str | None = Field(default=None, description="with `bodies`, where it is text")
    body_b64: str | None = Field(default=None, description="with `bodies`, where it is not text")
    unreadable: Ours | None = Field(description="why the body can't be decrypted here; `bytes` is then null")
    why_no_body: Ours | None = Field(description="reason why there is no body; null if there is one")
    is_element: bool = Field(description="it is one of several events that came in one body")
    runs: list[Run]
    steps: list[Step]
    failures: list[Failure]
    logs: list[AttemptLog]
    conflicts: list[OtherBody]
    repeats: list[Identifier]
    why_not_run: str | None = Field(description="why no handler was run, and what to do; null if one was")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def waits(self) -> Ours | None:
        """Why it is passed over although it may be due, in words."""
        return deliveries.why_parked(self.parked, self.runs)


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
        hint=hint(desk, asked, rows),
    )


@action(scope=Scope.READ)
def get_event(desk: Desk, which: EventPath, asked: EventQuery = _WITHOUT_BODIES) -> FullEvent:
    """Show an event: headers, runs, failed attempts, other bodies under its id, and repeats of it."""
    found = found_event(desk, which)
    body = found.body
    delivered = body if body and body.unreadable != WITHHELD else None
    hidden = {} if asked.bodies else as_text(None)
    rows = {name: getattr(found, name) for name in ("runs", "steps", "failures", "logs", "repeats")}
    return FullEvent(
        **dict(found.event),
        means=EVENT_STATUSES[found.event.status],
        url=delivered.url if delivered else None,
        headers=delivered.headers if delivered else None,
        bytes=None if body is None or body.unreadable else len(body.body),
        unreadable=body.unreadable if body else None,
        why_no_body=None if body else found.why_no_body,
        is_element=bool(body and body.is_element),
        conflicts=[each.model_copy(update=hidden) for each in found.conflicts],
        **as_text(body.body if asked.bodies and body and not body.unreadable else None),
        **rows,
        why_not_run=why_not_run(desk, found),
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
        if other.id == which.body and not other.unreadable:
            return Octets(f"event-{found.event.id}-conflict-{which.body}.bin", other.octets)
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


def choices_of(desk: Desk) -> Choices:
    """Return what events can be chosen by."""
    return choices(desk.connection)


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
        raise _unknown(reference, _of_another_source(desk, reference))
    return number


_NOT_RUN = {
    EventStatus.HELD: "it is held; `hookonce replay {event.id}` releases it",
    EventStatus.LOST: "only the event is left, without a run; `hookonce replay {event.id}` gives it one",
    EventStatus.RECEIVED: "no worker has taken it yet; `hookonce doctor` says whether one runs",
}


def why_not_run(desk: Desk, found: ShownEvent) -> str | None:
    """Return why no handler was run for an event, and what to do; None if one was."""
    event = found.event
    if found.runs or found.waits:
        return None if found.runs else found.waits
    again = f"`hookonce replay {event.id}`"
    if found.failures:  # its provider could not read it, or its source does not accept such events
        return f"{found.failures[-1].error}; {again} tries it all the same"
    if event.status != EventStatus.IGNORED:
        return _NOT_RUN[event.status].format(event=event) if event.status in _NOT_RUN else None
    known = [each for each in known_handlers(desk.connection) if each.place in {event.source, event.provider}]
    takes = next((each.handler for each in known if matcher(each.pattern).fullmatch(event.type)), None)
    if takes:
        return f"no handler took '{event.type}' when it came; {takes} does now: {again}"
    others = ", ".join(f"{each.handler} ('{each.pattern}')" for each in known[:_MOST_NAMED]) or "none"
    add = f'`@on("{event.source}", "{event.type}")`'
    return f"no handler takes '{event.type}'; handlers of {event.source}: {others}; add {add}, then {again}"


def _of_another_source(desk: Desk, reference: str) -> str:
    """Return a suggestion of the event whose id begins as that of `source:event_id`, at another source."""
    _, _, event_id = reference.partition(":")
    may_be = event_id and not event_lookup.NEVER_TEXT.search(event_id)
    found = events.events(desk.connection, Filter(event_id=event_id), _MOST_NAMED) if may_be else []
    names = [f"{each.source}:{each.event_id}" for each in found]
    return did_you_mean(reference, names) if names else ""


def found_event(desk: Desk, which: EventPath) -> ShownEvent:
    """Return what may be shown of an event, however it is named. Raises: `NotFound`, `Ambiguous`."""
    found = deliveries.event(desk, number_of(desk, which.event))
    if found is None:
        raise _unknown(which.event)
    return found


def _unknown(reference: str, meant: str = "") -> NotFound:
    return NotFound(
        f"no event is {reference!r}{meant}; expected a ledger id, source:event_id, or how a sender's id begins, "
        "see `hookonce events list`"
    )


class CommandsQuery(Paged):
    """Which commands."""

    account: Text | None = Field(None, description="only of this account")
    since: Time | None = Field(None, description="only received then or later: 90s, 15m, 2h, 7d, a time")


class ClientCommand(ResponseModel):
    """A command: an event with one run, whose handler has its name."""

    id: Identifier
    name: Ours
    account: str | None
    state: Literal["in_progress", "completed", "failed_retryable", "failed_final"]
    received_at: datetime
    deliveries: int


class ClientCommands(Page[ClientCommand]):
    """Commands, newest first."""


@action(scope=Scope.READ)
def list_client_commands(desk: Desk, asked: CommandsQuery) -> ClientCommands:
    """List the commands of clients, newest first."""
    wanted = Filter(provider=COMMAND, account=asked.account, since=asked.since)
    rows = list(events.events(desk.connection, wanted, asked.limit, asked.cursor))
    names = {(row.source, row.event_id) for row in rows}
    states = commands.find(desk.connection, names, desk.settings.keyring)
    return ClientCommands(
        data=[
            ClientCommand(
                id=row.id,
                name=row.source,
                account=row.account,
                state=states[row.source, row.event_id].state.value,
                received_at=row.received_at,
                deliveries=row.deliveries,
            )
            for row in rows
            if (row.source, row.event_id) in states
        ],
        next=rows[-1].id if len(rows) == asked.limit else None,
    )
