"""Running events again: named ones at once, those of a filter as a bulk replay that the sweep drives."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field, computed_field

from hookonce.receiver.desk import entities
from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.events import count_events, is_number, number_of
from hookonce.receiver.desk.filters import EventFilter, hint
from hookonce.receiver.desk.models import (
    IdInBody,
    IdInPath,
    Page,
    Paged,
    Reference,
    RequestModel,
    Text,
)
from hookonce.receiver.desk.refusals import (
    NAMED_OR_CHOSEN,
    Ambiguous,
    Conflict,
    Contradictory,
    NotFound,
    not_in_ledger,
)
from hookonce.receiver.desk.registry import Asks, Desk, Plan, action, looks_at
from hookonce.receiver.intake.rereading import Rereader
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import (
    bulk as bulk_replays,
)
from hookonce.receiver.ledger.replay import (
    events as event_replays,
)
from hookonce.receiver.ledger.replay.bulk import BulkReplay
from hookonce.receiver.ledger.replay.events import GOOD, REPLAY_BATCH, ReplayOutcome, ReplayResult
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus

OUTCOMES: Final[Mapping[ReplayOutcome, str]] = {
    ReplayOutcome.REPLAYED: "replayed",
    ReplayOutcome.RELEASED: "released",
    ReplayOutcome.QUEUED: "waits for its first attempt already",
    ReplayOutcome.RUNNING: "is running and was left alone; try again when it has ended",
    ReplayOutcome.BODY_DROPPED: "can't be replayed: its body was dropped by retention",
    ReplayOutcome.BODY_NOT_KEPT: "can't be replayed: its source keeps no bodies (keep_body = false)",
    ReplayOutcome.ERASED: "can't be replayed: it was erased",
    ReplayOutcome.UNREADABLE: "still can't be read by its provider module; its newest error says why",
    ReplayOutcome.READ: "was read: its events are taken in",
    ReplayOutcome.CHANGED: "has changed since it was shown and was left alone",
    ReplayOutcome.DONE: "is done and was left alone",
}
"""Outcomes of a replay, said of an event."""
_TOLD = 5
"""Events named in a refusal; more are counted."""


class EventIds(RequestModel):
    """Events by their ledger ids, or as they are named anywhere else."""

    events: Annotated[list[Reference], Field(min_length=1, max_length=REPLAY_BATCH)]


class SeenEvent(RequestModel):
    """The `view` of an event that an earlier answer gave."""

    event: IdInBody
    view: Text


class ReplayRequest(EventIds):
    """Which events to replay, or only to say what would become of them.

    What steps of their handlers gave is used again, but for those in `forget_steps`. Handlers that are done stay so
    unless `again`; with `seen`, an event of which something else is done by now is left alone.
    """

    events: Annotated[list[Reference], Field(max_length=REPLAY_BATCH)] = Field(default_factory=list)
    dry_run: bool = False
    again: bool = Field(default=False, description="run handlers that are done once more")
    seen: Annotated[list[SeenEvent], Field(max_length=REPLAY_BATCH)] = Field(
        default_factory=list,
        description="views of events that were shown; events that have changed since are left alone",
    )
    forget_steps: Annotated[list[Text], Field(max_length=100)] = Field(
        default_factory=list, description="names of steps to repeat"
    )


class Outcome(ReplayResult):
    """The outcome of one event, with its meaning in words."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def means(self) -> Ours:
        """The outcome, said of its event."""
        return OUTCOMES[self.fate]


class Replayed(ResponseModel):
    """Outcomes of the events that were named, and those that the ledger does not hold."""

    outcomes: list[Outcome]
    unknown: list[Identifier]
    unknown_names: list[str] = Field(description="those that were no ledger ids, and name no event")


class BulkFilter(EventFilter):
    """Which events to replay; those that leave the status meanwhile are left alone."""

    status: (
        Literal[
            EventStatus.DEAD,
            EventStatus.DISCARDED,
            EventStatus.IGNORED,
            EventStatus.HELD,
            EventStatus.DONE,
            EventStatus.WAITING,
            EventStatus.LOST,
        ]
        | None
    ) = Field(None, description="without one, say by `expected` how many you were shown of all")


Rate = Annotated[float, Field(ge=0.01, le=10_000)] | None


class BulkStepRequest(RequestModel):
    """How fast to go on, if that is to be another rate."""

    rate: Rate = Field(None, description="events per second at most, from now on")


class BulkReplayRequest(RequestModel):
    """A bulk replay to begin."""

    filter: BulkFilter = Field(default_factory=lambda: BulkFilter(status=None))
    rate: Rate = Field(None, description="events per second at most")
    limit: Identifier | None = Field(None, description="at most so many events, the oldest first; else all")
    expected: Annotated[int, Field(ge=0)] | None = Field(
        None, description="how many one was shown (`/event-counts`); 409 `changed` if more match by now"
    )
    driven: bool = Field(
        default=False,
        description="take its steps yourself (`/bulk-replays/{bulk}/steps`); else the sweep does",
    )


class BulkPath(RequestModel):
    """A bulk replay by its id."""

    bulk: IdInPath


class BulkStep(ResponseModel):
    """The outcomes of the next events of a bulk replay (none, if its rate allows none yet), and its progress."""

    bulk: BulkReplay
    outcomes: list[Outcome]


def _what_becomes_of_each(here: Asks, asked: ReplayRequest) -> Plan:
    """Say what a replay would make of each; an event of which something else is done by then is left alone.

    Raises: `Conflict` where all are done and it was not said that they run again.
    """
    found = here.ask(replay, asked=asked.model_copy(update={"dry_run": True}))
    if all(outcome.fate is ReplayOutcome.DONE for outcome in found.outcomes):
        raise Conflict(_said_of_done(found.outcomes), code="already_done")
    known = {each.event for each in asked.seen}
    now = [SeenEvent(event=each.id, view=each.view) for each in found.outcomes if each.id not in known]
    seen = [*asked.seen, *now]
    return Plan(found, {"asked": asked.model_copy(update={"dry_run": False, "seen": seen})})


def _how_many_match(here: Asks, asked: BulkReplayRequest) -> Plan:
    """Count what is there now; what comes later is not meant. Raises: `Conflict`, `NotFound` where nothing matches."""
    wanted = asked.filter
    _require_filter(wanted)
    wanted = wanted.model_copy(update={"until": wanted.until or datetime.now(UTC)})
    found = here.ask(count_events, asked=wanted)
    if not found.total:
        raise _nothing_to_replay(found.hint)
    return Plan(found, {"asked": asked.model_copy(update={"filter": wanted, "expected": found.total})})


@action(scope=Scope.REPLAY, looks=_what_becomes_of_each)
def replay(desk: Desk, asked: ReplayRequest) -> Replayed:
    """Run events again: new attempts under the same idempotency keys; held ones are released.

    Up to 200 at once, all in one transaction. With `dry_run` that is rolled back: the answer says what a replay
    would make of each now. 409 `already_done` if all of them are done, and `again` was not said.
    """
    how: dict[str, Any] = {
        "forget": asked.forget_steps,
        "again": asked.again,
        "seen": {each.event: each.view for each in asked.seen},
    }
    if not asked.events:
        raise Contradictory(NAMED_OR_CHOSEN)
    named = named_events(desk, asked.events)
    if asked.dry_run:
        with _rereader(desk, store=False) as reread, desk.connection.transaction(force_rollback=True):
            return _shown(
                desk, named, event_replays.replay(desk.connection, named.ids, None, reread=reread, **how)
            )
    return _replayed(desk, named, **how)


@action(scope=Scope.REPLAY)
def release(desk: Desk, asked: EventIds) -> Replayed:
    """Release held events, and leave alone what is not held."""
    return _replayed(desk, named_events(desk, asked.events), status=EventStatus.HELD)


@action(scope=Scope.REPLAY, looks=_how_many_match)
def start_bulk_replay(desk: Desk, asked: BulkReplayRequest) -> BulkReplay:
    """Begin to replay all events that match now; the sweep goes on with it, at the rate that is given."""
    _require_filter(asked.filter)
    if asked.filter.status is None and asked.expected is None:
        raise Conflict("expected a `status` in the filter, or by `expected` how many of all you were shown")
    with desk.connection.transaction():
        bulk = bulk_replays.start(
            desk.connection,
            asked.filter.wanted_by(desk),
            desk.who,
            asked.rate,
            limit=asked.limit or 0,
            driver=desk.who if asked.driven else None,
        )
        if not bulk.matched:
            raise _nothing_to_replay(hint(desk, asked.filter, None))
        if asked.expected is not None and bulk.matched > asked.expected:
            raise Conflict(
                f"{bulk.matched} events match by now, and {asked.expected} did when you looked; look again, "
                "then repeat it",
                code="changed",
            )
    return handed_out(desk, "bulk replays", [bulk])[0]


@action(scope=Scope.READ)
def list_bulk_replays(desk: Desk, asked: Paged) -> Page[BulkReplay]:
    """List bulk replays, newest first."""
    rows = bulk_replays.listing(desk.connection, asked.limit, asked.cursor)
    return Page[BulkReplay].of(handed_out(desk, "bulk replays", rows), asked)


@action(scope=Scope.READ)
def get_bulk_replay(desk: Desk, which: BulkPath) -> BulkReplay:
    """Show how far a bulk replay is."""
    bulk_replays.look(desk.connection, which.bulk)
    return _bulk(desk, which.bulk)


@action(scope=Scope.REPLAY, looks=looks_at(get_bulk_replay))
def step_bulk_replay(desk: Desk, which: BulkPath, asked: BulkStepRequest) -> BulkStep:
    """Take the next step of a bulk replay, as its rate allows, and drive it from then on.

    While you ask again within ten seconds, the sweep leaves it to you; afterwards it goes on with it.
    """
    number = _bulk(desk, which.bulk).id
    with _rereader(desk) as reread:
        outcomes = bulk_replays.step(desk.connection, number, rate=asked.rate, driver=desk.who, reread=reread)
    outcomes = outcomes or []
    desk.notifies_workers = any(outcome.fate in GOOD for outcome in outcomes)
    return BulkStep(bulk=_bulk(desk, number), outcomes=[Outcome(**dict(each)) for each in outcomes])


@action(scope=Scope.REPLAY, looks=looks_at(get_bulk_replay))
def stop_bulk_replay(desk: Desk, which: BulkPath) -> BulkReplay:
    """Stop a bulk replay where it is; what it has replayed stays so. One that has ended is left as it is."""
    bulk_replays.stop(desk.connection, which.bulk, desk.who)
    return _bulk(desk, which.bulk)


@action(scope=Scope.REPLAY, looks=looks_at(get_bulk_replay))
def continue_bulk_replay(desk: Desk, which: BulkPath) -> BulkReplay:
    """Continue a bulk replay that was stopped. One that is running or complete is left as it is."""
    bulk_replays.go_on(desk.connection, which.bulk, desk.who)
    return _bulk(desk, which.bulk)


class NamedEvents(NamedTuple):
    """Events that were named: their ledger ids, and the names that no event has."""

    ids: list[int]
    unknown: list[str]

    def require_any(self, *, known: int) -> None:
        """Refuse names none of which is known. Raises: `NotFound`."""
        if (self.ids or self.unknown) and not known:
            raise NotFound(not_in_ledger([*self.unknown, *self.ids]))


def named_events(desk: Desk, references: Sequence[str]) -> NamedEvents:
    """Look up what is named; a number is taken as it is. Raises: `Ambiguous`."""
    found = NamedEvents([], [])
    for reference in references:
        try:
            found.ids.append(int(reference) if is_number(reference) else number_of(desk, reference))
        except Ambiguous:
            raise
        except NotFound:
            found.unknown.append(reference)
    return found


def _replayed(desk: Desk, named: NamedEvents, **how: Any) -> Replayed:  # noqa: ANN401  what `event_replays.replay` takes
    with _rereader(desk) as reread, desk.connection.transaction():  # a refusal leaves no line in the audit
        outcomes = list(event_replays.replay(desk.connection, named.ids, desk.who, reread=reread, **how))
        if outcomes and all(outcome.fate is ReplayOutcome.DONE for outcome in outcomes):
            raise Conflict(_said_of_done(outcomes), code="already_done")
    desk.notifies_workers = any(outcome.fate in GOOD for outcome in outcomes)
    return _shown(desk, named, outcomes)


def _rereader(desk: Desk, *, store: bool = True) -> closing[Rereader]:
    return closing(Rereader(desk.settings, desk.intake, store=store))


def _shown(desk: Desk, named: NamedEvents, results: Iterable[ReplayResult]) -> Replayed:
    outcomes = [Outcome(**dict(each)) for each in results]
    named.require_any(known=len(outcomes))
    skipping = entities.skipping(desk, [outcome.id for outcome in outcomes if outcome.fate in GOOD])
    for each in outcomes:
        each.skipped_by = [name for name in skipping.get(each.id, ()) if name in each.handlers]
    return Replayed(
        outcomes=outcomes,
        unknown=sorted(set(named.ids) - {outcome.id for outcome in outcomes}),
        unknown_names=named.unknown,
    )


def _require_filter(wanted: EventFilter) -> None:
    if wanted.wanted == Filter():
        raise Contradictory(NAMED_OR_CHOSEN)


def _nothing_to_replay(doubt: str | None) -> NotFound:
    return NotFound("; ".join(filter(None, ("no event matches, so there is nothing to replay", doubt))))


def _said_of_done(outcomes: Sequence[ReplayResult]) -> str:
    told = [
        f"{'the command of a client, ' * outcome.is_command}event {outcome.id}: "
        + ", ".join(f"{run.handler} at {run.ended_at.isoformat(timespec='seconds')}" for run in outcome.done)
        for outcome in outcomes[:_TOLD]
    ]
    more = f" and {len(outcomes) - _TOLD} more" if len(outcomes) > _TOLD else ""
    return f"already done: {'; '.join(told)}{more}; to run them once more, say so (`--again`, `again`: true)"


def _bulk(desk: Desk, number: int) -> BulkReplay:
    bulk = bulk_replays.get(desk.connection, number)
    if bulk is None:
        raise NotFound(f"no bulk replay has number {number}; `hookonce replays` shows all")
    return handed_out(desk, "bulk replays", [bulk])[0]
