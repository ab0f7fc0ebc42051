"""Carries events through their handlers: what was claimed (hookonce.receiver.ledger.runs.claims) is ended or released.

Times are the database's, never ours.

One column drives everything: `events.due_at` is the earliest `due_at` of the event's runs; for a leased run
that is the lease's end. Runs that are parked (`receiver.ledger.runs.parking`) do not count, unless all are.
A claim leases whole events under one random token and starts one run only, so a worker that dies costs one attempt
of one run. Ending a run starts the next in the same transaction.
Whoever's lease ran out finds no row with its token: `LeaseLost`, and its writes roll back.

Lock order everywhere: events by id, then runs.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import scalar_row

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database.round_trip import failed_by, require, round_trip
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claim_plan import Planner
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun
from hookonce.receiver.ledger.states import EventStatus, RunStatus
from hookonce.receiver.ledger.stats import event_counts


class LeaseLost(leases.LeaseLost):
    """The run is no longer ours: its lease ran out and somebody has taken it, or it was ended for us."""


Also = Callable[[psycopg.Connection], None]


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended: `done` with a result, `waiting` for `delay`, or `dead`; `error` says why.

    `traceback` is sealed with the key `key_id`, unless that is None (`encryption.traceback_context`); so is
    `sealed_result`, which then stands for `result`. `counted` is
    False for an attempt that does not use one up (RetryLater). `also` is done in the transaction that ends it.
    """

    status: RunStatus
    result: Any = None
    error: str | None = None
    delay: timedelta | None = None
    counted: bool = True
    traceback: bytes | None = field(default=None, repr=False)
    key_id: str | None = None
    also: Also | None = None
    sealed_result: bytes | None = field(default=None, repr=False)


class Attempt(NamedTuple):
    """What tells an attempt from all others while it is under way."""

    event: int
    handler: str
    token: uuid.UUID


_XACT_ID = "SELECT pg_current_xact_id()::text"

# A server that took over after a failover may never have heard of an id; asked for one of the future, it fails.
# Asks with an id of its own, which is above all that were given out before: after a crash some may be unknown.
_IS_COMMITTED = """
SELECT CASE pg_xact_status(id) WHEN 'committed' THEN true WHEN 'in progress' THEN NULL ELSE false END
FROM (SELECT %s::text::xid8 AS id) AS asked WHERE id < pg_current_xact_id()
"""
_END_BACKEND = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = %s::text::xid8::xid"
)

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

LOCK_EVENTS = "SELECT id FROM hookonce.events WHERE id = ANY(%s) ORDER BY id FOR UPDATE"


def _end(event: str, run: str, *others: str) -> str:
    """Write a statement that ends one run and starts the next: what becomes of event and run, and what else is done.

    Each only if it is still ours, and only in the transaction `xact_id`; it fails by dividing by zero if the first is
    not, so that a COMMIT behind it in the pipeline does nothing. A sole run's event is locked by following it at once;
    with siblings, LOCK comes before and DERIVE after, to see what others committed.
    """
    return f"""
WITH followed AS (
    UPDATE hookonce.events SET {event}, parked = NULL WHERE id = %(event)s AND %(is_sole)s
    RETURNING 1
), ended AS (
    UPDATE hookonce.runs SET {run}, token = NULL, lease_until = NULL
    WHERE event = %(event)s AND handler = %(handler)s AND token = %(token)s AND status = '{RunStatus.RUNNING}'
          AND (EXISTS (SELECT FROM followed) OR NOT %(is_sole)s)
          AND (%(xact_id)s::text IS NULL OR %(xact_id)s::text::xid8 = pg_current_xact_id_if_assigned())
    RETURNING cycle, attempts
), {"".join(others)} started AS (
    UPDATE hookonce.runs SET status = '{RunStatus.RUNNING}', attempts = attempts + 1, started_at = clock_timestamp(),
                    slot_at = NULL, beside = %(next_beside)s,
                    lease_until = clock_timestamp() + %(lease)s::interval,
                    due_at = clock_timestamp() + %(lease)s::interval
    WHERE event = %(next_event)s AND handler = %(next_handler)s AND token = %(next_token)s
          AND status = '{RunStatus.WAITING}'
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM ended), (SELECT count(*) FROM started)
"""  # noqa: S608  constants


_END_DONE = _end(
    f"status = '{EventStatus.DONE}', due_at = NULL",
    f"""status = '{RunStatus.DONE}', due_at = NULL, finished_at = clock_timestamp(), result = %(result)s::text::json,
        sealed_result = %(sealed_result)s::bytea, key_id = %(result_key)s::text""",
)
_END_UNDONE = _end(
    "status = %(status)s, due_at = statement_timestamp() + %(delay)s::interval",
    f"""status = %(status)s, due_at = statement_timestamp() + %(delay)s::interval, attempts = attempts - %(refund)s,
        finished_at = CASE WHEN %(status)s <> '{RunStatus.WAITING}' THEN clock_timestamp() END,
        result = NULL, sealed_result = NULL, key_id = NULL""",
    """failed AS (
    INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback, key_id)
    SELECT %(event)s, %(handler)s, cycle, attempts + %(refund)s, %(error)s, %(traceback)s::bytea, %(key_id)s::text
    FROM ended WHERE %(error)s::text IS NOT NULL
),""",
)

# Status and due time of events follow from their runs: running > waiting > dead > done; parked are those whose open
# runs all are, and where only some are, the others say when it is due. An event of a paused source is parked anew by
# the next claim that meets it. Event by event, whatever the planner thinks of the table: it may have been empty when
# the plan was made.
DERIVE_EVENT_STATUS = f"""
UPDATE hookonce.events SET status = d.status, due_at = d.due_at, parked = d.parked
FROM unnest(%(events)s::bigint[]) AS t (event), LATERAL (
    SELECT coalesce(min(due_at) FILTER (WHERE parked IS NULL), min(due_at)) AS due_at,
           CASE WHEN bool_and(parked IS NOT NULL) FILTER (WHERE due_at IS NOT NULL) THEN min(parked) END AS parked,
           CASE WHEN bool_or(status = '{RunStatus.RUNNING}' OR token IS NOT NULL) THEN '{EventStatus.RUNNING}'
                WHEN bool_or(status = '{RunStatus.WAITING}') THEN '{EventStatus.WAITING}'
                WHEN bool_or(status = '{RunStatus.DEAD}') THEN '{EventStatus.DEAD}'
                ELSE '{EventStatus.DONE}' END AS status
    FROM hookonce.runs WHERE runs.event = t.event HAVING count(*) > 0
) AS d
WHERE id = t.event
"""  # noqa: S608  constants

# Of a source that keeps no bodies, in the transaction that ends the last run: what failed needs its body again.
_DROP_BODY = f"""
DELETE FROM hookonce.bodies b USING hookonce.events e
WHERE b.event = %s AND b.received_at = %s AND e.id = b.event AND e.status = '{EventStatus.DONE}'
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


def end(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    run: ClaimedRun,
    ending: AttemptResult,
    following: ClaimedRun | None = None,
    *,
    chain: bool = False,
    xact_id: str | None = None,
    is_session_ours: bool = True,
) -> bool:
    """End an attempt, start the `following` run and commit, in one round trip; return whether that started.

    What the transaction holds besides is committed with it; `chain` begins the next one in the same round trip.
    `is_session_ours`: no handler may have deallocated what is prepared in it.
    Raises `LeaseLost` if the run is no longer ours, or the transaction not the one called `xact_id`; the caller
    must roll back.
    """
    commit = "COMMIT AND CHAIN" if chain else "COMMIT"
    if run.is_sole and run.event.keep_body and ending.also is None:
        reach(_failpoint(ending))
        statements = [_ended(run, ending, following, xact_id), (commit, {})]
        return _has_started(round_trip(connection, statements, prepare=is_session_ours), run)
    try:
        with connection.pipeline():
            if not run.is_sole:
                connection.execute(LOCK_EVENTS, [[run.event.id]], prepare=True)
            ended = connection.execute(*_ended(run, ending, following, xact_id), prepare=True)
            if not run.is_sole:
                connection.execute(DERIVE_EVENT_STATUS, {"events": [run.event.id]}, prepare=True)
            if not run.event.keep_body:
                connection.execute(_DROP_BODY, [run.event.id, run.event.received_at])
            if ending.also is not None:
                ending.also(connection)
            reach(_failpoint(ending))
            connection.execute(commit)
    except psycopg.errors.DivisionByZero:
        if ended.rowcount > 0:  # it was at the COMMIT: a deferred trigger of the user's
            raise
        raise lost(run) from None
    row = ended.fetchone()
    return bool(row and row[1])


def _has_started(results: Sequence[PGresult], run: ClaimedRun) -> bool:
    """Read what came of the end of a run and of its commit: whether the next has been started."""
    if failed_by(results[0], psycopg.errors.DivisionByZero):
        raise lost(run)
    for result in results:
        require(result)
    return results[0].get_value(0, 1) == b"1"


def _failpoint(ending: AttemptResult) -> str:
    return "run.ended" if ending.status == RunStatus.DONE else "failure.ended"


def end_within(cursor: psycopg.Cursor[Any], run: ClaimedRun, ending: AttemptResult, xact_id: str) -> None:
    """End an attempt in the transaction that a cursor is in, where another than hookonce is to commit it.

    Raises `LeaseLost` as `end` does.
    """
    try:
        if not run.is_sole:
            cursor.execute(LOCK_EVENTS, [[run.event.id]])
        cursor.execute(*_ended(run, ending, None, xact_id))
        if not run.is_sole:
            cursor.execute(DERIVE_EVENT_STATUS, {"events": [run.event.id]})
        if not run.event.keep_body:
            cursor.execute(_DROP_BODY, [run.event.id, run.event.received_at])
    except psycopg.errors.DivisionByZero:
        raise lost(run) from None
    reach("run.ended")


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


def lost(run: ClaimedRun, so: str = "this attempt's writes are rolled back") -> LeaseLost:
    """Return what is to be raised where a run is no longer ours; `so` says what that means here."""
    return LeaseLost(
        f"lease on event {run.event.id} (handler {run.handler}) ran out and another worker may have it; {so}"
    )


def current_xact_id(connection: psycopg.Connection, *, begin: bool = False) -> str | None:
    """Return the id of the transaction that this is in, which has one from then on; None if it is aborted.

    `begin` is for one that no statement has begun yet.
    """
    if not begin and connection.info.transaction_status != TransactionStatus.INTRANS:
        return None
    return psycopg.Cursor(connection, row_factory=scalar_row).execute(_XACT_ID).fetchone()


def is_committed(connection: psycopg.Connection, xact_id: str) -> bool | None:
    """Return whether the transaction of this id was committed; None while it goes on, is committing or is prepared."""
    row = connection.execute(_IS_COMMITTED, [xact_id]).fetchone()
    return row[0] if row else False


def end_backend(connection: psycopg.Connection, xact_id: str) -> None:
    """End the backend of a transaction whose client is gone; one that waits for a standby stays committed."""
    connection.execute(_END_BACKEND, [xact_id])


def note_end_of_worker(connection: psycopg.Connection, attempt: Attempt, error: str) -> bool:
    """Note that an attempt has failed since its worker died; return whether it was under way. Committed.

    It is tried again when its lease is over, as before: what kills workers must not do so every second.
    """
    with connection.transaction():
        return connection.execute(_END_OF_WORKER, [*attempt, error]).rowcount > 0


def is_ours(connection: psycopg.Connection, run: ClaimedRun) -> bool:
    """Return whether a started run is still under our token."""
    return connection.execute(_IS_OURS, [run.event.id, run.handler, run.token]).fetchone() is not None


def _ended(
    run: ClaimedRun, ending: AttemptResult, following: ClaimedRun | None, xact_id: str | None
) -> tuple[LiteralString, dict[str, Any]]:
    """Return the statement that ends an attempt, and its values."""
    how: dict[str, Any]
    if ending.status == RunStatus.DONE:
        query = _END_DONE
        how = {
            "result": None if ending.result is None else json.dumps(ending.result),
            "sealed_result": ending.sealed_result,
            "result_key": None if ending.sealed_result is None else ending.key_id,
        }
    else:
        query = _END_UNDONE
        how = {
            "status": ending.status,
            "error": ending.error,
            "traceback": ending.traceback,
            "key_id": ending.key_id,
            "refund": 0 if ending.counted else 1,
            "delay": ending.delay,
        }
    return query, how | {
        "event": run.event.id,
        "handler": run.handler,
        "token": run.token,
        "xact_id": xact_id,
        "next_event": following.event.id if following else None,
        "next_handler": following.handler if following else None,
        "next_token": following.token if following else None,
        "next_beside": following.beside if following else False,
        "lease": following.lease if following else None,
        "is_sole": run.is_sole,
    }


def release(connection: psycopg.Connection, runs: Iterable[ClaimedRun]) -> list[int]:
    """Let go of claimed runs that were not started; their events are due at once. Return their ids."""
    rest = list(runs)
    if not rest:
        return []
    events = sorted({run.event.id for run in rest})
    with connection.transaction():
        connection.execute(LOCK_EVENTS, [events])
        rows = connection.execute(_RELEASE, {"events": events, "token": rest[0].token}).fetchall()
        connection.execute(DERIVE_EVENT_STATUS, {"events": events})
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
