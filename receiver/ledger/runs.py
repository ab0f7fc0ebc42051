"""Carries events through their handlers: what was claimed (receiver.ledger.claims) is ended or released.

Times are the database's, never ours.

One column drives everything: `events.due_at` is the earliest `due_at` of the event's runs; for a leased run
that is the lease's end. A claim leases whole events under one random token and starts one run only, so
a worker that dies costs one attempt of one run. Ending a run starts the next in the same transaction.
Whoever's lease ran out finds no row with its token: `LeaseLost`, and its writes roll back.

Lock order everywhere: events by id, then runs.
"""

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from receiver.failpoints import reach
from receiver.ledger.triage import ClaimedEvent, Planner

LEASE_MARGIN = timedelta(seconds=15)
"""How much longer than its time limit a started run stays ours."""
UNSTARTED_MARGIN = timedelta(seconds=5)
"""How much longer than the worker's budget an unstarted one does."""


class LeaseLost(Exception):  # noqa: N818  a verdict about who may write
    """The run is no longer ours: its lease ran out and somebody has taken it, or it was ended for us."""


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """One run under our lease.

    `attempt` is the number its next start gets, `lease` how long a start is good for, `is_sole` whether the
    event has no other run. A start by `end` leaves the event's `due_at` at the claim's: whoever comes for it
    then finds the run running, and sets it right.
    """

    event: ClaimedEvent
    handler: str
    attempt: int
    cycle: int
    token: uuid.UUID
    lease: timedelta
    is_sole: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended: `done` with a result, `waiting` for `delay`, or `dead`; `error` says why.

    `counted` is False for an attempt that does not use one up (RetryLater).
    """

    status: str
    result: Any = None
    error: str | None = None
    delay: timedelta | None = None
    counted: bool = True


_IGNORED = """
SELECT DISTINCT source, provider, type FROM events
WHERE received_at > now() - %s::interval AND status = 'ignored'
"""

_WAKE = """
WITH woken AS (
    UPDATE events SET status = 'received', due_at = now()
    WHERE id IN (SELECT e.id FROM events e
                 JOIN unnest(%s::text[], %s::text[], %s::text[]) AS t (source, provider, type)
                      USING (source, provider, type)
                 WHERE e.status = 'ignored' AND e.received_at > now() - %s::interval ORDER BY e.id FOR UPDATE OF e)
    RETURNING id, source
), counted AS (
    INSERT INTO event_counts (source, what, count) SELECT source, 'ignored', -count(*) FROM woken GROUP BY source
)
SELECT id FROM woken
"""

LOCK = "SELECT id FROM events WHERE id = ANY(%s) ORDER BY id FOR UPDATE"

# Ends one run and starts the next, each only if it is still ours; fails by dividing by zero if the first is not, so
# that a COMMIT behind it in the pipeline does nothing. A sole run's event is locked by following it at once; with
# siblings, LOCK comes before and DERIVE after, to see what others committed.
_END = """
WITH followed AS (
    UPDATE events SET status = %(status)s, due_at = statement_timestamp() + %(delay)s::interval
    WHERE id = %(event)s AND %(is_sole)s
    RETURNING 1
), ended AS (
    UPDATE runs SET status = %(status)s, token = NULL, lease_until = NULL, result = %(result)s::text::json,
                    attempts = attempts - %(refund)s, due_at = statement_timestamp() + %(delay)s::interval,
                    finished_at = CASE WHEN %(status)s <> 'waiting' THEN clock_timestamp() END
    WHERE event = %(event)s AND handler = %(handler)s AND token = %(token)s AND status = 'running'
          AND (EXISTS (SELECT FROM followed) OR NOT %(is_sole)s)
    RETURNING cycle, attempts + %(refund)s AS attempt
), failed AS (
    INSERT INTO failures (event, handler, cycle, attempt, error)
    SELECT %(event)s, %(handler)s, cycle, attempt, %(error)s FROM ended WHERE %(error)s::text IS NOT NULL
), started AS (
    UPDATE runs SET status = 'running', attempts = attempts + 1, started_at = clock_timestamp(),
                    lease_until = clock_timestamp() + %(lease)s::interval,
                    due_at = clock_timestamp() + %(lease)s::interval
    WHERE event = %(next_event)s AND handler = %(next_handler)s AND token = %(token)s AND status = 'waiting'
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM ended), (SELECT count(*) FROM started)
"""

# Status and due time of events follow from their runs: running > waiting > dead > done. Event by event, whatever
# the planner thinks of the table: it may have been empty when the plan was made.
DERIVE = """
UPDATE events SET status = d.status, due_at = d.due_at
FROM unnest(%(events)s::bigint[]) AS t (event), LATERAL (
    SELECT min(due_at) AS due_at,
           CASE WHEN bool_or(status = 'running' OR token IS NOT NULL) THEN 'running'
                WHEN bool_or(status = 'waiting') THEN 'waiting'
                WHEN bool_or(status = 'dead') THEN 'dead' ELSE 'done' END AS status
    FROM runs WHERE runs.event = t.event HAVING count(*) > 0
) AS d
WHERE id = t.event
"""

_BODY = "SELECT body, key_id FROM bodies WHERE event = %s AND received_at = %s"

_RELEASE = """
UPDATE runs SET token = NULL, lease_until = NULL, due_at = now()
WHERE event = ANY(%(events)s) AND token = %(token)s AND status = 'waiting'
RETURNING event
"""


def end(
    connection: psycopg.Connection,
    run: ClaimedRun,
    ending: Ending,
    following: ClaimedRun | None = None,
    *,
    chain: bool = False,
) -> bool:
    """End an attempt, start the `following` run and commit, in one round trip; tell whether that started.

    What the transaction holds besides is committed with it; `chain` begins the next one in the same round trip.
    Raises `LeaseLost` if the run is no longer ours; the caller must roll back.
    """
    try:
        with connection.pipeline():
            if not run.is_sole:
                connection.execute(LOCK, [[run.event.id]], prepare=True)
            ended = connection.execute(_END, _values(run, ending, following), prepare=True)
            if not run.is_sole:
                connection.execute(DERIVE, {"events": [run.event.id]}, prepare=True)
            reach("run.ended" if ending.status == "done" else "failure.ended")
            connection.execute("COMMIT AND CHAIN" if chain else "COMMIT")
    except psycopg.errors.DivisionByZero:
        if ended.rowcount > 0:  # it was at the COMMIT: a deferred trigger of the user's
            raise
        raise LeaseLost(
            f"lease on event {run.event.id} (handler {run.handler}) ran out and another worker may have it; "
            "this attempt's writes are rolled back"
        ) from None
    row = ended.fetchone()
    return bool(row and row[1])


def _values(run: ClaimedRun, ending: Ending, following: ClaimedRun | None) -> dict[str, Any]:
    return {
        "event": run.event.id,
        "handler": run.handler,
        "token": run.token,
        "status": ending.status,
        "result": None if ending.result is None else json.dumps(ending.result),
        "error": ending.error,
        "refund": 0 if ending.counted else 1,
        "delay": ending.delay,
        "next_event": following.event.id if following else None,
        "next_handler": following.handler if following else None,
        "lease": following.lease if following else None,
        "is_sole": run.is_sole,
    }


def release(connection: psycopg.Connection, runs: Iterable[ClaimedRun]) -> list[int]:
    """Let go of claimed runs that were not started; their events are due at once. Gives their ids."""
    rest = list(runs)
    if not rest:
        return []
    events = sorted({run.event.id for run in rest})
    with connection.transaction():
        connection.execute(LOCK, [events])
        rows = connection.execute(_RELEASE, {"events": events, "token": rest[0].token}).fetchall()
        connection.execute(DERIVE, {"events": events})
    return sorted({row[0] for row in rows})


def wake_ignored(connection: psycopg.Connection, planner: Planner, span: timedelta) -> list[int]:
    """Make events that nobody took, received within `span`, due again if this worker takes them; give their ids.

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
