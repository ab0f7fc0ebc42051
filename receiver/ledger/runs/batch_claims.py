"""Claims what one handler takes together: a part of a batch that failed, by itself, or what is due of its events.

The claims of all others (`receiver.ledger.runs.claims`) leave these runs alone and say which handlers have some.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import (
    batch_parts,
    batches,
    claim_reads,
    claim_writes,
    claimed,
    due_events,
    due_for_batch,
    event_status,
    takeover,
)
from hookonce.receiver.ledger.runs.batch_parts import Part
from hookonce.receiver.ledger.runs.batch_size import BatchSize
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claim_plan import BatchableRun, ClaimPlan, PausedHandlers, Plan, Planner
from hookonce.receiver.ledger.runs.claim_writes import RunWrite
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun, ExistingRun
from hookonce.receiver.ledger.runs.due_cursor import BatchCursor, DueCursor
from hookonce.receiver.ledger.runs.due_for_batch import Wanted
from hookonce.receiver.ledger.states import EventStatus

LOST = "the worker stopped in the middle of a batch, or took longer than its lease"
MAX_BYTES = 32 * 1024 * 1024
"""Of the bodies of one batch."""
_LOOKS = 50
"""After which a claim goes on next time, where all it met had nothing for its handler."""
_FARTHER = 4
"""How many times as far a look goes that got nowhere: all it met became due at the same moment."""


class BatchPlanner(Planner, Protocol):
    """The handlers of one worker that takes batches."""

    def patterns(self, name: str) -> Sequence[tuple[str, str]]:
        """Return the places and patterns of a handler."""
        ...


class BatchClaim(NamedTuple):
    """What came of it: a batch, or a run that is alone and charged, or how long what is due waits for more."""

    batch: ClaimedBatch | None = None
    alone: ClaimedRun | None = None
    unripe: timedelta | None = None


def claim(  # noqa: PLR0913  all but three by keyword
    connection: psycopg.Connection,
    planner: BatchPlanner,
    name: str,
    *,
    ids: Sequence[int] = (),
    cursor: BatchCursor | None = None,
    beside: bool = False,
) -> BatchClaim:
    """Lease what a handler of batches is to take next, and start it; committed. `ids`: events that it takes, if due.

    What is alone is charged with its attempt here, as any run is that starts; `beside`: others run in this process.
    """
    handler = planner.named(name)
    if handler is None or handler.batch is None:
        return BatchClaim()
    size = handler.batch
    with connection.pipeline(), connection.transaction():
        pauses = connection.execute(claim_reads.PAUSED, prepare=True)
        clock = connection.execute("SELECT now()", prepare=True)
        waiting = batch_parts.locked(connection, name)
        paused = claim_reads.Paused.of(pauses.fetchall()).handlers
        if name in paused.names:
            return BatchClaim()
        found = _of_parts(connection, planner, name, _halved(connection, name, waiting), paused)
        is_full = False
        if not found:
            wanted = Wanted(name, planner.patterns(name), size.most, MAX_BYTES, size.wait)
            met = _met(
                connection,
                planner,
                wanted,
                ids=ids,
                cursor=cursor or BatchCursor(DueCursor()),
                paused=paused,
            )
            found, is_full = _bounded(met), met.is_full
            now = clock.fetchall()[0][0]
            if found and not is_full and (unripe := _unripe(found, size, now)):
                return BatchClaim(unripe=unripe)
        if not found:
            return BatchClaim()
        started = _start(connection, planner, handler, found, is_full=is_full, beside=beside)
        reach("batch.leased")
    return started


def _halved(connection: psycopg.Connection, name: str, waiting: Sequence[Part]) -> Sequence[Part]:
    """Take apart what was lost; return what is to be tried by itself."""
    lost = [part for part in waiting if part.is_lost]
    if not lost:
        return waiting
    held = {part.id for part in lost if not takeover.settle_batch(connection, part.events)}
    lost = [part for part in lost if part.id not in held]
    batch_parts.halve_lost(connection, name, lost, LOST)
    return [part for part in batch_parts.locked(connection, name) if part.id not in held]


def _of_parts(
    connection: psycopg.Connection,
    planner: Planner,
    name: str,
    waiting: Sequence[Part],
    paused: PausedHandlers,
) -> Sequence[BatchableRun]:
    """Return the runs of the first part of a batch that has any left; it is a batch now, and no part any more."""
    for part in waiting:
        due = due_events.locked_named(connection, part.events)
        batch_parts.delete(connection, [part.id])
        if found := _batchable(connection, planner, name, due, paused):
            return found
    return []


def _batchable(
    connection: psycopg.Connection,
    planner: Planner,
    name: str,
    due: Sequence[ClaimedEvent],
    paused: PausedHandlers,
) -> Sequence[BatchableRun]:
    """Return the runs of a handler that may be beside others, of locked events."""
    if not due:
        return []
    existing: dict[int, Sequence[ExistingRun]] = {event.id: () for event in due}
    if begun := [event for event in due if event.status != EventStatus.RECEIVED]:
        existing |= claim_reads.existing_runs(connection, begun)
    plan = ClaimPlan(due, planner, existing, paused, uuid.uuid4())
    return [run for run in plan.batchable if run.handler == name]


class _Met(NamedTuple):
    """What a look has met: the runs that may be beside each other, and the bytes up to each event.

    `is_full`: there may be more than a batch holds.
    """

    runs: Sequence[BatchableRun]
    totals: Mapping[int, int]
    is_full: bool


def _met(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    planner: Planner,
    wanted: Wanted,
    *,
    ids: Sequence[int],
    cursor: BatchCursor,
    paused: PausedHandlers,
) -> _Met:
    """Look for what a handler may take now, and pass by what has nothing for it."""

    def look(since: datetime | None, reach: int) -> _Met:
        due = due_for_batch.locked(connection, wanted, ids, since, reach)
        runs = _batchable(connection, planner, wanted.handler, due.events, paused)
        is_full = len(due.events) == wanted.most or max(due.totals, default=0) > wanted.most_bytes
        return _Met(runs, dict(zip((event.id for event in due.events), due.totals, strict=True)), is_full)

    since, reach = cursor.look(wanted.wait), (shortest := max(2 * wanted.most, due_for_batch.REACH))
    met = look(since, reach)
    if met.runs:
        cursor.found(met.runs[0].event.due_at)
        return met
    for _ in range(_LOOKS):
        # Asked first: whatever others take away meanwhile, the look reaches at least as far.
        end = due_for_batch.end_of_reach(connection, since, reach)
        met = look(since, reach)
        if met.runs or end is None:
            cursor.found(met.runs[0].event.due_at if met.runs else since)
            return met
        is_farther = since is None or end > since
        since, reach = end, shortest if is_farther else _FARTHER * reach
    cursor.goes_on(since)
    return met


def _unripe(found: Sequence[BatchableRun], size: BatchSize, now: datetime) -> timedelta | None:
    """Return how long these wait for others, if they do."""
    left = size.wait - (now - min(run.event.due_at for run in found))
    return left if left > timedelta(0) else None


def _bounded(met: _Met) -> Sequence[BatchableRun]:
    """Return as many as fit into the memory that a batch may take; one, whatever it takes."""
    return [run for run in met.runs if met.totals[run.event.id] <= MAX_BYTES] or met.runs[:1]


def _start(  # noqa: PLR0913  the last by keyword
    connection: psycopg.Connection,
    planner: Planner,
    handler: Plan,
    found: Sequence[BatchableRun],
    *,
    is_full: bool,
    beside: bool,
) -> BatchClaim:
    token, span = uuid.uuid4(), handler.timeout + claimed.LEASE_MARGIN
    runs = [
        ClaimedRun(run.event, handler.name, 1, run.cycle, token, span, run.is_sole, beside) for run in found
    ]
    others = _beside(planner, handler.name, found)
    if len(runs) == 1:
        (run,) = runs
        leased = [RunWrite(run.event.id, run.handler, span)]
        claim_writes.write_runs(connection, others, token, leased, beside=beside)
        connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": [run.event.id]}, prepare=True)
        return BatchClaim(alone=run)
    batch = ClaimedBatch(handler.name, token, runs, is_full)
    batches.lease(connection, batch, span)
    claim_writes.write_runs(connection, others, token)
    if shared := sorted(run.event.id for run in runs if not run.is_sole):
        connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": shared}, prepare=True)
    return BatchClaim(batch)


def _beside(planner: Planner, name: str, found: Sequence[BatchableRun]) -> list[RunWrite]:
    """Return the runs that other handlers get of new events; they are due, and left to other claims."""
    return [
        RunWrite(run.event.id, plan.name, claim_writes.NOW)
        for run in found
        if run.is_new and not run.is_sole
        for plan in planner.matching(run.event.source, run.event.provider, run.event.type)
        if plan.name != name
    ]
