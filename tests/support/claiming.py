"""Claims and ends as a worker makes them, one by one and in the test's process."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from hookonce.jobs.plan import Plan
from hookonce.receiver.ledger.runs import claims, due_rows, ends, failed_attempts, leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.due_rows import Waiting
from hookonce.receiver.ledger.runs.ends import Ended
from hookonce.receiver.ledger.states import Waits

NO_TIME = timedelta(0)


class Room:
    """There is room for whatever is due; so many of it are started together."""

    def __init__(self, slots):
        self.slots = slots

    def lanes(self, handlers):
        return [0] * len(handlers)


class Attempts:
    """Handlers that are given so many attempts each, one after the other at once."""

    def __init__(self, most):
        self._most = most

    def after(self, *_):
        return NO_TIME, self._most


def claim(connection, handlers, *, slots=1, **options):
    """Claim what is due for the handlers of a worker: a `Registry`, or what does as one."""
    return claims.claim(connection, Plan(handlers, Room(slots)), **options)


def end(connection, run, result):
    """End an attempt, committed."""
    if result.status == "done":
        connection.execute("BEGIN")
        ends.end(connection, Ended([run], [result], NO_TIME))
        return
    with connection.transaction():
        failed_attempts.fail(connection, [run], [result])


def claim_suspect(connection, handlers):
    """Claim a suspect, to be run alone, and begin it."""
    wanted = Waiting(Waits.SUSPECT, [plan.name for plan in handlers])
    runs = claims.claim(connection, Plan(handlers), wanted=wanted).runs
    for run in runs:
        leases.note_start(connection, run)
    return runs[0] if runs else None


class NoRoom:
    """There is room for nothing but batches."""

    slots = 1

    def lanes(self, handlers):
        return [None] * len(handlers)


class ClaimedForBatch(NamedTuple):
    """What a claim has leased for a handler of batches: a batch, or a run alone."""

    batch: Sequence[ClaimedRun] | None = None
    alone: ClaimedRun | None = None
    unripe: timedelta | None = None
    is_full: bool = False


def batch(connection, handlers):
    """Have what is due wait for its batch, where its handler takes batches."""
    claims.claim(connection, Plan(handlers, NoRoom()), limit=100_000)


def claim_batch(connection, handlers, name="handler"):
    """Claim what a handler of batches is to take next, of what is due and of what waits for it."""
    batch(connection, handlers)
    size = handlers.named(name).batch
    wanted = Waiting(Waits.BATCH, [name], size.most, size.wait)
    found = claims.claim(connection, Plan(handlers), wanted=wanted, at_once=size.most)
    if len(found.runs) > 1:
        return ClaimedForBatch(found.runs, is_full=found.is_more)
    return ClaimedForBatch(alone=found.runs[0] if found.runs else None, unripe=found.unripe)


def lapse(connection):
    """Let all leases be over, as some time after the deaths of their workers."""
    connection.execute("UPDATE hookonce.claims SET lease_until = now()")


def pages_read(connection, since=None):
    """Return how many pages a claim reads to find what is due."""
    claims_read = due_rows.reading(f"{due_rows.IS_DUE_SINCE} AND {due_rows.IS_NOT_PAUSED}")
    values = {"since": since, "limit": 50, "heavy": due_rows.HEAVY}
    row = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {claims_read}", values).fetchone()
    due = next(part for part in row[0][0]["Plan"]["Plans"] if part.get("Subplan Name") == "CTE due")
    return due["Shared Hit Blocks"] + due["Shared Read Blocks"]
