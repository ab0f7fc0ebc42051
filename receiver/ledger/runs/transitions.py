"""Carries events through their handlers: what was claimed (`receiver.ledger.runs.claims`) is started or released.

How it is ended is in `receiver.ledger.runs.run_end`. Times are the database's, never ours.

One column drives everything: `events.due_at` is the earliest `due_at` of the event's runs; for a leased run
that is the lease's end. Runs that are parked (`receiver.ledger.runs.parking`) do not count, unless all are.
A claim leases whole events under one random token and starts one run only, so a worker that dies costs one attempt
of one run. Ending a run starts the next in the same transaction.

Lock order everywhere: events by id, then runs.
"""

from collections.abc import Iterable
from datetime import timedelta

import psycopg

from hookonce.receiver.ledger.runs import event_status, marks
from hookonce.receiver.ledger.runs.claim_plan import Planner
from hookonce.receiver.ledger.runs.claimed import Attempt, ClaimedEvent, ClaimedRun
from hookonce.receiver.ledger.runs.marks import Marked
from hookonce.receiver.ledger.states import EventStatus, Parked, RunStatus
from hookonce.receiver.ledger.stats import event_counts

_IS_OURS = f"""
SELECT FROM hookonce.runs WHERE event = %s AND handler = %s AND token = %s AND status = '{RunStatus.RUNNING}'
"""

# Takes the run from the transaction of the worker that died, which may still be on its way. The lease stays.
_END_OF_WORKER = f"""
WITH taken AS (
    UPDATE hookonce.runs SET token = gen_random_uuid()
    WHERE event = %s AND handler = %s AND token = %s AND status = '{RunStatus.RUNNING}'
    RETURNING event, handler, cycle, attempts
)
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)
SELECT event, handler, cycle, attempts, %s FROM taken
"""  # noqa: S608  constants

_GIVE_BACK = f"""
UPDATE hookonce.runs SET status = '{RunStatus.WAITING}', attempts = attempts - 1, parked = '{Parked.SUSPECT}',
                token = NULL, lease_until = NULL, due_at = now()
WHERE event = %s AND handler = %s AND token = %s AND status = '{RunStatus.RUNNING}'
"""  # noqa: S608  constants

_IGNORED = f"""
SELECT DISTINCT source, provider, type FROM hookonce.events
WHERE received_at > now() - %s::interval AND status = '{EventStatus.IGNORED}'
"""  # noqa: S608  constants

_WAKE = f"""
WITH woken AS (
    UPDATE hookonce.events SET status = '{EventStatus.RECEIVED}', due_at = now()
    WHERE id IN (SELECT e.id FROM hookonce.events e
                 JOIN unnest(%s::text[], %s::text[], %s::text[]) AS t (source, provider, type)
                      USING (source, provider, type)
                 WHERE e.status = '{EventStatus.IGNORED}' AND e.received_at > now() - %s::interval
                 ORDER BY e.id FOR UPDATE OF e)
    RETURNING id, source
), counted AS ({event_counts.no_longer_ignored("woken")}
)
SELECT id FROM woken
"""  # noqa: S608  constants

_BODY = "SELECT body, key_id FROM hookonce.bodies WHERE event = %s AND received_at = %s"

_START = f"""
UPDATE hookonce.runs SET status = '{RunStatus.RUNNING}', attempts = attempts + 1, started_at = clock_timestamp(),
                slot_at = NULL, beside = %(beside)s, lease_until = clock_timestamp() + %(lease)s::interval,
                due_at = clock_timestamp() + %(lease)s::interval
WHERE event = %(event)s AND handler = %(handler)s AND token = %(token)s AND status = '{RunStatus.WAITING}'
"""  # noqa: S608  constants

_RELEASE = f"""
UPDATE hookonce.runs SET token = NULL, lease_until = NULL, due_at = now(), parked = NULL
WHERE event = ANY(%(events)s) AND token = %(token)s AND status = '{RunStatus.WAITING}'
RETURNING event
"""  # noqa: S608  constants


def start(connection: psycopg.Connection, run: ClaimedRun) -> bool:
    """Start a claimed run by itself; return whether it was still ours."""
    values = {
        "event": run.event.id,
        "handler": run.handler,
        "token": run.token,
        "lease": run.lease,
        "beside": run.beside,
    }
    with connection.transaction():
        return connection.execute(_START, values, prepare=True).rowcount == 1


def note_end_of_worker(connection: psycopg.Connection, attempt: Attempt, error: str) -> bool:
    """Note that an attempt has failed since its worker died; return whether it was under way. Committed.

    It is tried again when its lease is over, as before: what kills workers must not do so every second.
    """

    def write(has_committed: bool) -> bool:  # noqa: FBT001
        # One that has is buried when its lease is over, which says more.
        return not has_committed and connection.execute(_END_OF_WORKER, [*attempt, error]).rowcount > 0

    return marks.settle(connection, Marked.of(attempt), write)


def give_back_suspect(connection: psycopg.Connection, attempt: Attempt) -> bool:
    """Give back what was run alone by a process that was told to end: due at once, alone again, and not counted.

    Return whether it was under way. Committed.
    """

    def write(has_committed: bool) -> bool:  # noqa: FBT001
        is_given_back = not has_committed and connection.execute(_GIVE_BACK, [*attempt]).rowcount > 0
        connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": [attempt.event]})
        return is_given_back

    return marks.settle(connection, Marked.of(attempt), write)


def is_ours(connection: psycopg.Connection, run: ClaimedRun) -> bool:
    """Return whether a started run is still under our token."""
    return connection.execute(_IS_OURS, [run.event.id, run.handler, run.token]).fetchone() is not None


def release(connection: psycopg.Connection, runs: Iterable[ClaimedRun]) -> list[int]:
    """Let go of claimed runs that were not started; their events are due at once. Return their ids."""
    rest = list(runs)
    if not rest:
        return []
    events = sorted({run.event.id for run in rest})
    with connection.transaction():
        connection.execute(event_status.LOCK_EVENTS, [events])
        rows = connection.execute(_RELEASE, {"events": events, "token": rest[0].token}).fetchall()
        connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": events})
    return sorted({row[0] for row in rows})


def requeue_ignored(connection: psycopg.Connection, planner: Planner, span: timedelta) -> list[int]:
    """Make events that nobody took, received within `span`, due again if this worker takes them; return their ids.

    In a rolling deploy the old workers ignore what only the new ones know.
    """
    with connection.transaction():
        kinds = [kind for kind in connection.execute(_IGNORED, [span]) if planner.matching(*kind)]
        if not kinds:
            return []
        columns = [list(column) for column in zip(*kinds, strict=True)]
        rows = connection.execute(_WAKE, [*columns, span]).fetchall()
    return sorted(row[0] for row in rows)


def load_body(connection: psycopg.Connection, event: ClaimedEvent) -> tuple[bytes, str | None] | None:
    """Fetch the body of an event and the id of the key it is sealed with; None if retention has dropped it."""
    row = connection.execute(_BODY, [event.id, event.received_at]).fetchone()
    return (row[0], row[1]) if row else None
