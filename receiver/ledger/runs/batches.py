"""Runs that one handler takes together: leased, ended and let go of as one, each of them a run of its own.

A row of `batches` with a token is a batch under way; it is written with the lease and deleted with the end, so what is
left of a worker that died says which runs were beside each other. A batch that fails or is lost costs none of them an
attempt: two rows without a token take its place, each half of it, to be tried by itself. So who fails is found in as
many steps as the size can be halved, whatever dies meanwhile, and stands alone when it is counted. Such parts are
`receiver.ledger.runs.batch_parts`.

Lock order: a row of `batches`, then as in `receiver.ledger.runs.transitions`.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Any

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database.arrays import array
from hookonce.receiver.ledger.runs import batch_parts, event_status, marks, run_end
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.run_end import Also, AttemptResult, LeaseLost
from hookonce.receiver.ledger.states import EventStatus, RunStatus


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """Runs under one lease, in the order their events became due; `is_full`: there may be more of them."""

    handler: str
    token: uuid.UUID
    runs: Sequence[ClaimedRun]
    is_full: bool = False

    @property
    def events(self) -> list[int]:
        """The events, in the order of their ids."""
        return sorted(run.event.id for run in self.runs)


# The first try of each, or one of those that ended with nobody charged.
_LEASE = f"""
WITH leased AS (
    INSERT INTO hookonce.runs AS r (event, handler, status, due_at, token, lease_until, started_at)
    SELECT event, %(handler)s, '{RunStatus.RUNNING}', now() + %(lease)s, %(token)s, now() + %(lease)s, now()
    FROM unnest(%(events)b::bigint[]) AS t (event)
    ON CONFLICT (event, handler) DO UPDATE SET
        beside = false, status = excluded.status, due_at = excluded.due_at, token = excluded.token, finished_at = NULL,
        lease_until = excluded.lease_until, started_at = excluded.started_at, parked = NULL, slot_at = NULL
), followed AS (
    UPDATE hookonce.events SET status = '{EventStatus.RUNNING}', due_at = now() + %(lease)s, parked = NULL
    WHERE id = ANY(%(sole)b::bigint[])
)
INSERT INTO hookonce.batches (handler, events, token, lease_until)
VALUES (%(handler)s, %(events)b::bigint[], %(token)s, now() + %(lease)s)
"""  # noqa: S608  constants

_LOCK = "SELECT FROM hookonce.batches WHERE token = %s FOR UPDATE"

# All of them or none: fails by dividing by zero, so that a COMMIT behind it in the pipeline does nothing.
_END = f"""
WITH gone AS (
    DELETE FROM hookonce.batches WHERE token = %(token)s RETURNING 1
), followed AS (
    UPDATE hookonce.events SET status = '{EventStatus.DONE}', due_at = NULL, parked = NULL
    WHERE id = ANY(%(sole)b::bigint[])
), ended AS (
    UPDATE hookonce.runs SET status = '{RunStatus.DONE}', token = NULL, lease_until = NULL, due_at = NULL,
                    attempts = attempts + 1, result = t.result::json, sealed_result = t.sealed, key_id = t.key,
                    finished_at = clock_timestamp()
    FROM unnest(%(events)b::bigint[], %(results)b::text[], %(sealed)b::bytea[], %(keys)b::text[])
         AS t (event, result, sealed, key)
    WHERE runs.event = t.event AND handler = %(handler)s AND token = %(token)s
          AND status = '{RunStatus.RUNNING}' AND (SELECT count(*) FROM gone) = 1
          AND (%(xact_id)s::text IS NULL OR %(xact_id)s::text::xid8 = pg_current_xact_id_if_assigned())
    RETURNING 1
), counted AS (
    INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings)
    VALUES (%(handler)s, 1, %(count)s, 0)
    ON CONFLICT (handler) DO UPDATE SET batches = c.batches + 1, events = c.events + excluded.events
)
SELECT 1 / ((SELECT count(*) FROM ended) = %(count)s)::int
"""  # noqa: S608  constants

# As `transitions` does it for a run by itself.
_DROP_BODIES = f"""
DELETE FROM hookonce.bodies b USING hookonce.events e
WHERE b.event = ANY(%s) AND b.received_at BETWEEN %s AND %s AND (e.id, e.received_at) = (b.event, b.received_at)
      AND e.status = '{EventStatus.DONE}'
"""  # noqa: S608  constants

_TAKE_BACK = """
DELETE FROM hookonce.batches WHERE token = %s RETURNING handler, events
"""
# One of a batch, by itself: its verdict is known.
_VERDICT = f"""
WITH ended AS (
    UPDATE hookonce.runs SET status = %(status)s, token = NULL, lease_until = NULL,
                    attempts = attempts + %(counted)s, due_at = now() + %(delay)s::interval,
                    finished_at = CASE WHEN %(status)s <> '{RunStatus.WAITING}' THEN clock_timestamp() END
    WHERE event = %(event)s AND handler = %(handler)s AND token = %(token)s AND status = '{RunStatus.RUNNING}'
    RETURNING cycle, attempts
)
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback, key_id)
SELECT %(event)s, %(handler)s, cycle, attempts, %(error)s, %(traceback)s::bytea, %(key_id)s::text FROM ended
WHERE %(error)s::text IS NOT NULL
"""  # noqa: S608  constants
_IS_OURS = f"""
SELECT count(*) FROM hookonce.runs
WHERE event = ANY(%s) AND handler = %s AND token = %s AND status = '{RunStatus.RUNNING}'
"""  # noqa: S608  constants


def lease(connection: psycopg.Connection, batch: ClaimedBatch, span: timedelta) -> None:
    """Start all runs of a batch under its token, in the caller's transaction, which has locked their events."""
    values = {
        "handler": batch.handler,
        "token": batch.token,
        "events": array("bigint", batch.events),
        "sole": array("bigint", _sole(batch)),
        "lease": span,
    }
    connection.execute(_LEASE, values, prepare=True)


def end(
    connection: psycopg.Connection,
    batch: ClaimedBatch,
    endings: Sequence[AttemptResult],
    *,
    also: Also | None = None,
    xact_id: str | None = None,
) -> None:
    """End all runs of a batch as done, each with its result, and commit, in one round trip.

    Raises `LeaseLost` if one of them is no longer ours, or the transaction not the one called `xact_id`; the caller
    must roll back.
    """
    by_event = dict(zip((run.event.id for run in batch.runs), endings, strict=True))
    events = batch.events
    ordered = [by_event[event] for event in events]
    values = {
        "handler": batch.handler,
        "token": batch.token,
        "events": array("bigint", events),
        "sole": array("bigint", sole := _sole(batch)),
        "results": array("text", [_json(each.result) for each in ordered]),
        "sealed": array("bytea", [each.sealed_result for each in ordered]),
        "keys": array("text", [each.key_id for each in ordered]),
        "count": len(events),
        "xact_id": xact_id,
    }
    resets = run_end.taking_out(connection)
    try:
        with connection.pipeline():
            taken_out = [connection.execute(statement) for statement in resets]
            connection.execute(_LOCK, [batch.token], prepare=True)
            connection.execute(event_status.LOCK_EVENTS, [events], prepare=True)
            ended = connection.execute(_END, values, prepare=True)
            if len(sole) < len(events):
                others = sorted(set(events) - set(sole))
                connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": others}, prepare=True)
            if unkept := [run.event for run in batch.runs if not run.event.keep_body]:
                times = [event.received_at for event in unkept]
                connection.execute(_DROP_BODIES, [[event.id for event in unkept], min(times), max(times)])
            if xact_id is not None:
                marks.delete(connection, marked(batch))
            if also is not None:
                also(connection)
            reach("batch.ended")
            connection.execute("COMMIT")
    except psycopg.errors.DivisionByZero:
        if run_end.is_theirs(taken_out, ended):
            raise
        raise lost(batch) from None


def mark(cursor: psycopg.Cursor[Any], batch: ClaimedBatch) -> str:
    """Mark all runs of a batch, as `run_end.mark` does one."""
    if (xact_id := marks.insert(cursor, marked(batch))) is None:
        raise lost(batch)
    return xact_id


def marked(batch: ClaimedBatch) -> marks.Marked:
    """Return what an attempt of a batch marks."""
    return marks.Marked(batch.events, batch.handler, batch.token, is_batch=True)


class Apart(Enum):
    """What came of a batch that was to be let go of: another has it, it was, or its handler had committed it."""

    LOST = auto()
    DONE = auto()
    COMMITTED = auto()


def take_apart(  # noqa: PLR0913  by keyword
    connection: psycopg.Connection,
    batch: ClaimedBatch,
    parts: Sequence[Sequence[int]],
    *,
    verdicts: Mapping[int, AttemptResult] | None = None,
    delay: timedelta = timedelta(0),
    error: str | None = None,
    committed: AttemptResult | None = None,
) -> Apart:
    """Let go of a batch that did not succeed, and commit; return what came of it. The connection is idle.

    `parts`: which of its events are to be tried by themselves; two of them are a halving. `verdicts`: how those ended
    that are known. All others are due after `delay`, and charged with nothing. With `committed` it is asked whether the
    handler has committed by itself: then this is how all of them end.
    """
    found: list[object] = []

    def take_back() -> None:
        found[:] = [connection.execute(_TAKE_BACK, [batch.token]).fetchone()]

    def write(has_committed: bool) -> Apart:  # noqa: FBT001
        if found == [None]:
            return Apart.LOST
        connection.execute(event_status.LOCK_EVENTS, [batch.events])
        known, left = verdicts or {}, parts
        if has_committed and committed is not None:
            known, left = dict.fromkeys(batch.events, committed), ()
            marks.delete(connection, marked(batch))
        for event, ending in known.items():
            connection.execute(_VERDICT, _verdict(batch, event, ending))
        batch_parts.let_go(connection, batch.handler, batch.token, batch.events, delay)
        batch_parts.write(connection, batch.handler, left, error)
        connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": batch.events})
        reach("batch.apart")
        return Apart.COMMITTED if has_committed else Apart.DONE

    if committed is not None:
        return marks.settle(connection, marked(batch), write, first=take_back)
    with connection.transaction():
        take_back()
        return write(False)  # noqa: FBT003  the same function for both


def is_ours(connection: psycopg.Connection, batch: ClaimedBatch) -> bool:
    """Return whether all runs of a batch are still under its token."""
    row = connection.execute(_IS_OURS, [batch.events, batch.handler, batch.token]).fetchone()
    return row is not None and row[0] == len(batch.runs)


def lost(batch: ClaimedBatch) -> LeaseLost:
    """Return what says that a batch is no longer ours."""
    return LeaseLost(
        f"the lease on a batch of {len(batch.runs)} events (handler {batch.handler}) ran out and another worker "
        "may have some of them; this batch's writes are rolled back"
    )


def _verdict(batch: ClaimedBatch, event: int, ending: AttemptResult) -> dict[str, Any]:
    return {
        "event": event,
        "handler": batch.handler,
        "token": batch.token,
        "status": ending.status,
        "counted": int(ending.counted),
        "delay": ending.delay,
        "error": ending.error,
        "traceback": ending.traceback,
        "key_id": ending.key_id,
    }


def _sole(batch: ClaimedBatch) -> list[int]:
    return sorted(run.event.id for run in batch.runs if run.is_sole)


def _json(result: Any) -> str | None:  # noqa: ANN401  whatever the handler returned
    return None if result is None else json.dumps(result)
