"""Claims what one handler takes together: a part of a batch that failed, by itself, or what is due of its events.

The claims of all others (`receiver.ledger.runs.claims`) leave these runs alone and say which handlers have some.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import plans
from hookonce.receiver.ledger.runs import batch_parts, claims, due_for_batch, due_rows
from hookonce.receiver.ledger.runs.batch_parts import Part
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun, QueuedRun
from hookonce.receiver.ledger.runs.decisions import Decide, Decision, Paused, PlannedRun
from hookonce.receiver.ledger.runs.due_cursor import BatchCursor, DueCursor
from hookonce.receiver.ledger.runs.due_for_batch import Wanted
from hookonce.receiver.ledger.runs.run_limits import BatchSize

MAX_BYTES = 32 * 1024 * 1024
"""Of the bodies of one batch."""
_LOOKS = 50
"""After which a claim goes on next time, where all it met had nothing for its handler."""
_FARTHER = 4
"""How many times as far a look goes that got nowhere: all it met became due at the same moment."""


class BatchHandler(NamedTuple):
    """A handler of batches, and the places and patterns of what it takes."""

    name: str
    size: BatchSize
    patterns: Sequence[tuple[str, str]]


class BatchClaim(NamedTuple):
    """What came of it: a batch, or a run that is alone and charged, or how long what is due waits for more."""

    batch: ClaimedBatch | None = None
    alone: ClaimedRun | None = None
    unripe: timedelta | None = None


def claim(
    connection: psycopg.Connection,
    decide: Decide,
    handler: BatchHandler,
    *,
    ids: Sequence[int] = (),
    cursor: BatchCursor | None = None,
) -> BatchClaim:
    """Lease what a handler of batches is to take next; committed. `ids`: events that it takes, if due."""
    size = handler.size
    with plans.claiming(connection):
        pauses = connection.execute(claims.PAUSED, prepare=True)
        clock = connection.execute("SELECT now()", prepare=True)
        waiting = batch_parts.locked(connection, handler.name)
        paused = claims.paused_of(pauses.fetchall())
        if handler.name in paused.handlers:
            return BatchClaim()
        found = _of_parts(connection, decide, handler.name, waiting, paused)
        is_full = False
        if not found:
            met = _met(
                connection,
                decide,
                Wanted(handler.name, handler.patterns, size.most, MAX_BYTES, size.wait),
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
        leased = _lease(connection, decide, handler.name, found, paused, is_full=is_full)
        reach("batch.leased")
    return leased


def _of_parts(
    connection: psycopg.Connection, decide: Decide, name: str, waiting: Sequence[Part], paused: Paused
) -> Sequence[PlannedRun]:
    """Return the runs of the first part of a batch that has any left; it is a batch now, and no part any more."""
    for part in waiting:
        due = due_rows.of_handler(connection, name, part.events)
        batch_parts.delete(connection, [part.id])
        if found := _batchable(decide, name, due, paused):
            return found
    return []


def _batchable(decide: Decide, name: str, rows: Sequence[QueuedRun], paused: Paused) -> Sequence[PlannedRun]:
    """Return the runs of a handler that may be beside others, of locked rows."""
    return [each for each in decide(rows, paused) if each.decision is Decision.BATCH and each.handler == name]


class _Met(NamedTuple):
    """What a look has met: the runs that may be beside each other, and the bytes up to each event.

    `is_full`: there may be more than a batch holds.
    """

    runs: Sequence[PlannedRun]
    totals: Mapping[int, int]
    is_full: bool


def _met(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    decide: Decide,
    wanted: Wanted,
    *,
    ids: Sequence[int],
    cursor: BatchCursor,
    paused: Paused,
) -> _Met:
    """Look for what a handler may take now, and pass by what has nothing for it."""

    def look(since: datetime | None, reach: int) -> _Met:
        due = due_for_batch.locked(connection, wanted, ids, since, reach)
        runs = _batchable(decide, wanted.handler, due.rows, paused)
        is_full = len(due.rows) == wanted.most or max(due.totals, default=0) > wanted.most_bytes
        return _Met(runs, dict(zip((row.event.id for row in due.rows), due.totals, strict=True)), is_full)

    since, reach = cursor.look(wanted.wait), (shortest := max(2 * wanted.most, due_for_batch.REACH))
    met = look(since, reach)
    if met.runs:
        cursor.found(met.runs[0].row.due_at)
        return met
    for _ in range(_LOOKS):
        # Asked first: whatever others take away meanwhile, the look reaches at least as far.
        end = due_for_batch.end_of_reach(connection, since, reach)
        met = look(since, reach)
        if met.runs or end is None:
            cursor.found(met.runs[0].row.due_at if met.runs else since)
            return met
        is_farther = since is None or end > since
        since, reach = end, shortest if is_farther else _FARTHER * reach
    cursor.goes_on(since)
    return met


def _unripe(found: Sequence[PlannedRun], size: BatchSize, now: datetime) -> timedelta | None:
    """Return how long these wait for others, if they do."""
    left = size.wait - (now - min(each.row.due_at for each in found))
    return left if left > timedelta(0) else None


def _bounded(met: _Met) -> Sequence[PlannedRun]:
    """Return as many as fit into the memory that a batch may take; one, whatever it takes."""
    return [each for each in met.runs if met.totals[each.row.event.id] <= MAX_BYTES] or met.runs[:1]


def _lease(  # noqa: PLR0913  the last by keyword
    connection: psycopg.Connection,
    decide: Decide,
    name: str,
    found: Sequence[PlannedRun],
    paused: Paused,
    *,
    is_full: bool,
) -> BatchClaim:
    """Lease runs as one; those that other handlers get of events which are met first are left due."""
    token = uuid.uuid4()
    runs = [
        ClaimedRun(each.row.event, each.n, name, each.row.attempts + 1, each.row.cycle, token)
        for each in found
    ]
    new = [each.row for each in found if each.row.handler is None]
    others = [
        each._replace(decision=Decision.LEAVE, waits=None)  # a claim of theirs makes them wait, if they must
        for each in decide(new, paused)
        if each.handler != name
    ]
    batch_of = name if len(runs) > 1 else None
    claims.write(connection, [*found, *others], runs, (), slots=1, batch_of=batch_of)
    if batch_of is None:
        return BatchClaim(alone=runs[0])
    return BatchClaim(ClaimedBatch(name, token, runs, is_full))
