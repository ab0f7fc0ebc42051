"""Claims due events for one worker: leases their runs under a random token, and starts what there is room for.

What to lease is `receiver.ledger.runs.claim_plan`'s to say; here it is read, locked and written. What is paused is
parked (`receiver.ledger.runs.parking`), so that it is met once. Lock order as in
`receiver.ledger.runs.transitions`: events by id (or skipped, if another holds them), then runs; a pause after both.
"""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, Protocol

import psycopg
from psycopg.rows import args_row

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.due import IS_DUE_SINCE, IS_NOT_PAUSED
from hookonce.receiver.ledger.handlers import most_attempts
from hookonce.receiver.ledger.runs import (
    claim_reads,
    claim_writes,
    due_events,
    event_status,
    limit_gate,
    parking,
    takeover,
    unreadable,
)
from hookonce.receiver.ledger.runs.claim_plan import BatchableRun, ClaimPlan, PausedHandlers, Planner
from hookonce.receiver.ledger.runs.claim_reads import Paused
from hookonce.receiver.ledger.runs.claim_writes import RunWrite
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun
from hookonce.receiver.ledger.runs.due_cursor import DueCursor, SweepMark
from hookonce.receiver.ledger.states import EventStatus, Parked

log = logging.getLogger(__name__)

_LOOK = 1000
"""Due events that are looked at to tell whether there is anything to do."""


class Claim(NamedTuple):
    """The runs leased, the first of them started; `is_more`: some that are due may be left.

    `events`: the due ones that were looked at if anything was done with them, or else those that can't be read.
    `parked`: events that were parked besides; there may be more of these, too. `failing`: handlers whose failures in a
    row are counted (`receiver.ledger.runs.breakers`). `started`: how many of the runs leased, the first ones.
    `batchable`: due events that are left to a batch, by handler.
    """

    runs: list[ClaimedRun]
    events: int
    is_more: bool = False
    parked: int = 0
    failing: AbstractSet[str] = frozenset()
    started: int = 0
    batchable: Mapping[str, Sequence[int]] = {}


class Room(Protocol):
    """What a worker that runs many at once has room for.

    `free`: the runs that start now, others are leased besides; to be asked for when all events have been.
    """

    @property
    def free(self) -> int: ...  # noqa: D102

    def fits(self, source: str, provider: str, type: str) -> bool:  # noqa: A002
        """Return whether there is room for such an event, as it would be met; if so, it is taken."""
        ...


def claim(  # noqa: PLR0913  all but two by keyword
    connection: psycopg.Connection,
    planner: Planner,
    *,
    budget: timedelta,
    ids: Sequence[int] | None = None,
    limit: int = 50,
    quick_first: bool = True,
    cursor: DueCursor | None = None,
    at_once: int = 1,
    room: Room | None = None,
    suspects_of: Sequence[str] | None = None,
) -> Claim:
    """Lease due events (those of `ids`, or any) and start the first run of the first one; committed.

    An event whose lease ran out is claimed alone, so that a poisonous one takes nobody with it. `budget` is how
    long after the claim an unstarted run may still be started; after that it must be released. One that a slow
    handler takes is claimed alone too, and with `quick_first` only if no other is due: nobody waits behind it.
    Without `ids`, `cursor` says where to look, and is told what was found. `at_once`: how many runs of a
    handler that is limited to a number at once this worker can have under way.

    With `room` the worker runs many at once: it starts as many as that, slow ones besides others, and what a worker has
    lost it only makes a suspect. `suspects_of`: claim one suspect of these handlers instead, to be run by itself.
    """
    token = uuid.uuid4()
    cursor = cursor or DueCursor()
    with connection.pipeline(), connection.transaction():
        pauses = connection.execute(claim_reads.PAUSED, prepare=True)
        if suspects_of is None:
            due, odd = due_events.locked(connection, ids, limit, cursor)
        else:
            due, odd = due_events.suspect(connection, suspects_of)
        paused = Paused.of(pauses.fetchall())
        if odd:
            _bury(connection, planner, odd, budget)
        due = list(_free(connection, due))
        planned = partial(_plan, connection, planner=planner, paused=paused, token=token)
        plan, left_out = _plan_for(
            room, due, planned, planner, quick_first=quick_first, only_suspects=suspects_of is not None
        )
        starts = 1 if room is None else room.free  # which it knows when all has been asked for
        if plan.events:
            limit_gate.hold_back(connection, plan, at_once)
            claim_writes.write(connection, plan, token, budget, starts=starts)
            reach("run.leased")
    parked = _park(connection, planner, paused, plan, cursor)
    claim_writes.report(plan)
    count = len(due) + len(odd) if plan.events else len(odd)
    return Claim(
        plan.leased,
        events=count,
        is_more=count == limit or bool(odd or left_out) or (ids is None and cursor.has_passed_crowd),
        parked=parked,
        failing=paused.failing,
        started=min(starts, len(plan.leased)),
        batchable=_by_handler(plan.batchable),
    )


def _free(connection: psycopg.Connection, due: Sequence[ClaimedEvent]) -> Sequence[ClaimedEvent]:
    """Return the due events that nobody is at any more; what was lost of them is locked, or was buried."""
    under_way = [event.id for event in due if event.status == EventStatus.RUNNING]
    if not under_way:
        return due
    held = takeover.settle(connection, under_way)
    return [event for event in due if event.id not in held]


def _plan_for(  # noqa: PLR0913  the last two by keyword
    room: Room | None,
    due: Sequence[ClaimedEvent],
    planned: Callable[..., ClaimPlan],
    planner: Planner,
    *,
    quick_first: bool,
    only_suspects: bool,
) -> tuple[ClaimPlan, int]:
    """Plan for a worker with `room` for many, or for one at a time; return also how many due events are left out."""
    planned = partial(planned, beside=room is not None, only_suspects=only_suspects)
    if room is not None:
        return _plan_beside(due, planned, room)
    return _plan_alone(due, planned, planner, quick_first=quick_first)


def _plan_alone(
    due: Sequence[ClaimedEvent],
    planned: Callable[[Sequence[ClaimedEvent]], ClaimPlan],
    planner: Planner,
    *,
    quick_first: bool,
) -> tuple[ClaimPlan, int]:
    """Plan for a worker that runs one at a time; return the plan, and how many due events it leaves out."""
    events = _claimable(due, planner, quick_first=quick_first)
    plan, left_out = planned(events), len(due) - len(events)
    rest = [event for event in due if event not in events]
    if plan.events or not rest:
        return plan, left_out
    # What is left to a batch must not hide what is behind it.
    behind = _claimable(rest, planner, quick_first=quick_first)
    further = planned(behind)
    further.batchable += plan.batchable
    return further, len(rest) - len(behind)


def _plan_beside(
    due: Sequence[ClaimedEvent], planned: Callable[[Sequence[ClaimedEvent]], ClaimPlan], room: Room
) -> tuple[ClaimPlan, int]:
    """Plan for a worker that runs many at once; return the plan, and how many due events it has no room for.

    What was under way is looked at in any case, and not run.
    """
    running = EventStatus.RUNNING
    events = [e for e in due if e.status == running or room.fits(e.source, e.provider, e.type)]
    return planned(events), len(due) - len(events)


def _by_handler(runs: Sequence[BatchableRun]) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for run in runs:
        found.setdefault(run.handler, []).append(run.event.id)
    return found


def _bury(connection: psycopg.Connection, planner: Planner, ids: Sequence[int], budget: timedelta) -> None:
    """End the runs of events that can't be read as dead, each with one attempt: the others must go on."""
    events, token = unreadable.labels(connection, ids), uuid.uuid4()
    plan = ClaimPlan(
        events, planner, claim_reads.existing_runs(connection, events), PausedHandlers(), token, is_alone=True
    )
    claim_writes.write(connection, plan, token, budget, starts=len(plan.leased))
    for event in events:
        handlers = [run.handler for run in plan.leased if run.event.id == event.id]
        error = unreadable.reason(connection, event.id, due_events.VALUES, due_events.HEAVY)
        log.error("%s", error, extra={"event": event.id, "source": event.source, "type": event.type})
        buried = {
            "events": [event.id] * len(handlers),
            "handlers": handlers,
            "buried": [True] * len(handlers),
        }
        connection.execute(claim_writes.END_EXPIRED, buried | {"error": error})
    connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": [event.id for event in events]})


def _plan(  # noqa: PLR0913  the last two by keyword
    connection: psycopg.Connection,
    events: Sequence[ClaimedEvent],
    planner: Planner,
    paused: Paused,
    token: uuid.UUID,
    *,
    beside: bool = False,
    only_suspects: bool = False,
) -> ClaimPlan:
    """Decide on locked events; runs that are to be parked have their pause locked.

    Before a run is buried for want of attempts, the numbers of other workers are read.
    """
    existing = claim_reads.existing_runs(connection, events) if events else {}
    announced: Mapping[str, int] = {}

    def planned(handlers: PausedHandlers) -> ClaimPlan:
        return ClaimPlan(
            events,
            planner,
            existing,
            handlers,
            token,
            beside=beside,
            only_suspects=only_suspects,
            announced=announced,
        )

    plan = planned(paused.handlers)
    if plan.spent:
        announced = most_attempts(connection, plan.spent)
        plan = planned(paused.handlers)
    if not plan.parked:
        return plan
    names = {handler for _, handler in plan.parked}
    left = parking.lock_pauses(connection, Parked.HANDLER, names)
    # What is parked already stays so: whoever ends its pause finds it, and waits for our locks.
    if left == names:
        return plan
    return planned(paused.handlers._replace(names=paused.handlers.names - (names - left)))


def _park(
    connection: psycopg.Connection, planner: Planner, paused: Paused, plan: ClaimPlan, cursor: DueCursor
) -> int:
    """Park what is paused beside what a claim has met; return how many events. Committed.

    The claim is committed before: what it has leased must be run, even if this fails.
    """
    parked = 0
    try:
        if paused.sources:
            parked = _park_sources(connection, cursor)
        if 2 * len({event for event, _ in plan.parked_whole}) > len(plan.events):
            parked += _park_head(connection, planner, paused, cursor.since)
    except psycopg.Error as error:
        log.warning("what is paused was not parked: %s", type(error).__name__)
    return parked


def _park_sources(connection: psycopg.Connection, cursor: DueCursor) -> int:
    """Park what is due of paused sources, and now and then what lies before the cursor; return how many. Committed."""
    since = None if cursor.parking.begin() else cursor.since
    parked = parking.park_sources(connection, since)
    if not parked:  # what finds something is worth its time
        cursor.parking.end()
    return parked


def _park_head(
    connection: psycopg.Connection, planner: Planner, paused: Paused, since: datetime | None
) -> int:
    """Park what only paused handlers take at the head of the queue; return the number of events. Committed.

    Where most of what a claim has met is of that kind, many more may come: they would keep all others waiting.
    """
    token = uuid.uuid4()
    with connection.pipeline(), connection.transaction():
        cursor = connection.cursor(row_factory=args_row(ClaimedEvent))
        due = cursor.execute(due_events.DUE_HEAD, {"since": since}, prepare=True, binary=True).fetchall()
        plan = _plan(connection, due, planner, paused, token)
        runs = plan.parked_whole
        events = sorted({event for event, _ in runs})
        if events:
            writes = [RunWrite(*run, claim_writes.NOW, Parked.HANDLER) for run in runs]
            claim_writes.write_runs(connection, writes, token)
            connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": events}, prepare=True)
    return len(events)


def _claimable(due: Sequence[ClaimedEvent], planner: Planner, *, quick_first: bool) -> Sequence[ClaimedEvent]:
    """Choose the events that may be claimed together."""
    running = EventStatus.RUNNING
    if not due or due[0].status == running:
        return due[:1]
    fresh = [event for event in due if event.status != running]
    quick = [event for event in fresh if not planner.is_slow(event.source, event.provider, event.type)]
    if not quick or (quick[0] is not fresh[0] and not quick_first):
        return fresh[:1]
    return quick


# Of those of paused sources, which are yet to be parked, no more than these are passed over: a worker parks them.
_ANYTHING_DUE = f"""
WITH head AS MATERIALIZED (
    SELECT source, due_at FROM hookonce.events
    WHERE {IS_DUE_SINCE} ORDER BY due_at LIMIT {_LOOK})
SELECT EXISTS (SELECT FROM head WHERE {IS_NOT_PAUSED}) OR (SELECT count(*) FROM head) = {_LOOK},
       coalesce((SELECT min(due_at) FROM head), now())
"""  # noqa: S608  constants


def is_anything_due(connection: psycopg.Connection, mark: SweepMark | None = None) -> bool:
    """Return whether there is something to do for a worker: an event to be claimed, or many to be parked.

    `mark` says from where on to look, and is told what was found.
    """
    mark = mark or SweepMark()
    row = connection.execute(_ANYTHING_DUE, {"since": mark.look()}).fetchone()
    is_due, first = row or (False, None)
    if first is not None:
        mark.found(first)
    return bool(is_due)
