"""Claims and ends as a worker makes them, one by one and in the test's process."""

from datetime import timedelta

from hookonce.jobs.plan import EVERYTHING, Plan
from hookonce.receiver.ledger.runs import batch_claims, claims, due_rows, ends, failed_attempts, leases
from hookonce.receiver.ledger.runs.batch_claims import BatchHandler
from hookonce.receiver.ledger.runs.ends import Ended

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

    def most_attempts(self, _):
        return self._most

    def pause_after(self, *_):
        return NO_TIME


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
    names = [plan.name for plan in handlers]
    run = claims.claim_suspect(connection, Plan(handlers), names)
    if run is not None:
        leases.note_start(connection, run)
    return run


def claim_batch(connection, handlers, name="handler", **options):
    """Claim what a handler of batches is to take next."""
    handler = BatchHandler(name, handlers.named(name).batch, handlers.patterns(name))
    return batch_claims.claim(connection, Plan(handlers, EVERYTHING), handler, **options)


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
