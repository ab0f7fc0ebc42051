"""Carries events through their handlers: claim, start, end, release. Times are the database's, never ours.

One column drives everything: `events.due_at` is the earliest `due_at` of the event's runs; for a leased run
that is the lease's end. A claim leases whole events under one random token and starts one run only, so
a worker that dies costs one attempt of one run. Ending a run starts the next in the same transaction.
Whoever's lease ran out finds no row with its token: `LeaseLost`, and its writes roll back.

Lock order everywhere: events by id, then runs.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg

from receiver.failpoints import reach
from receiver.ledger.triage import ClaimedEvent, ExistingRun, Planner, Triage

LEASE_MARGIN = timedelta(seconds=15)
"""How much longer than its time limit a started run stays ours."""
UNSTARTED_MARGIN = timedelta(seconds=5)
"""How much longer than the worker's budget an unstarted one does."""
UNKNOWN_HANDLER_PAUSE = timedelta(seconds=30)
LEASE_RAN_OUT = "the worker stopped, or took longer than its lease"
HEAVY = 256 * 1024
"""Bodies above this are loaded when their run starts, so that a batch of them does not fill the memory."""


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


class Claim(NamedTuple):
    """The runs leased, the first of them started, and how many due events were looked at for it."""

    runs: list[ClaimedRun]
    events: int


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


_DUE = """
WITH due AS MATERIALIZED (
    SELECT id, source, provider, event_id, type, account, received_at, occurred_at, repeat_of, due_at, status
    FROM events
    WHERE due_at <= now() {named} AND source NOT IN (SELECT name FROM pauses WHERE kind = 'source')
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
SELECT d.id, d.source, d.provider, d.event_id, d.type, d.account, d.received_at, d.occurred_at, d.repeat_of,
       b.url, b.headers, CASE WHEN octet_length(b.body) <= %(heavy)s THEN b.body END,
       coalesce(b.is_element, false), d.status
FROM due d LEFT JOIN bodies b ON b.event = d.id AND b.received_at = d.received_at
ORDER BY d.due_at, d.id
"""
_DUE_ANY = _DUE.format(named="")
_DUE_NAMED = _DUE.format(named="AND id = ANY(%(ids)s)")

_RUNS = "SELECT event, handler, status, attempts, cycle, due_at <= now() FROM runs WHERE event = ANY(%s)"

_PAUSED = "SELECT name FROM pauses WHERE kind = 'handler'"

# Leases runs, starting those marked; the upsert creates the runs of an event that is claimed first.
_LEASE = """
INSERT INTO runs (event, handler, status, attempts, due_at, token, lease_until, started_at)
SELECT event, handler, CASE WHEN starts THEN 'running' ELSE 'waiting' END, starts::int,
       now() + lease, CASE WHEN leased THEN %(token)s END, CASE WHEN leased THEN now() + lease END,
       CASE WHEN starts THEN now() END
FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(leases)s::interval[], %(leased)s::bool[],
            %(starts)s::bool[]) AS t (event, handler, lease, leased, starts)
ORDER BY event, handler
ON CONFLICT (event, handler) DO UPDATE SET
    status = excluded.status, attempts = runs.attempts + excluded.attempts, due_at = excluded.due_at,
    token = excluded.token, lease_until = excluded.lease_until,
    started_at = coalesce(excluded.started_at, runs.started_at), finished_at = NULL
"""

_BURY = """
WITH lost AS (
    UPDATE runs SET status = CASE WHEN buried THEN 'dead' ELSE runs.status END,
                    due_at = CASE WHEN buried THEN NULL ELSE runs.due_at END,
                    token = NULL, lease_until = NULL,
                    finished_at = CASE WHEN buried THEN now() ELSE runs.finished_at END
    FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(buried)s::bool[]) AS t (event, handler, buried)
    WHERE runs.event = t.event AND runs.handler = t.handler
    RETURNING runs.event, runs.handler, runs.cycle, runs.attempts
)
INSERT INTO failures (event, handler, cycle, attempt, error)
SELECT event, handler, cycle, attempts, %(error)s FROM lost
"""

_IGNORE = "UPDATE events SET status = 'ignored', due_at = NULL WHERE id = ANY(%s)"

_IGNORED = """
SELECT DISTINCT source, provider, type FROM events
WHERE received_at > now() - %s::interval AND status = 'ignored'
"""

_WAKE = """
UPDATE events SET status = 'received', due_at = now()
WHERE id IN (SELECT e.id FROM events e
             JOIN unnest(%s::text[], %s::text[], %s::text[]) AS t (source, provider, type)
                  USING (source, provider, type)
             WHERE e.status = 'ignored' AND e.received_at > now() - %s::interval ORDER BY e.id FOR UPDATE OF e)
RETURNING id
"""

_LOCK = "SELECT id FROM events WHERE id = ANY(%s) ORDER BY id FOR UPDATE"

# Ends one run and starts the next, each only if it is still ours; says which of the two happened. A sole run's
# event follows it at once; with siblings, _LOCK comes before and _DERIVE after, to see what others committed.
_END = """
WITH locked AS MATERIALIZED (
    SELECT id FROM events WHERE id = %(event)s FOR UPDATE
), ended AS (
    UPDATE runs SET status = %(status)s, token = NULL, lease_until = NULL, result = %(result)s::text::json,
                    attempts = attempts - %(refund)s, due_at = clock_timestamp() + %(delay)s::interval,
                    finished_at = CASE WHEN %(status)s <> 'waiting' THEN clock_timestamp() END
    FROM locked
    WHERE event = locked.id AND handler = %(handler)s AND token = %(token)s AND status = 'running'
    RETURNING cycle, attempts + %(refund)s AS attempt, due_at
), followed AS (
    UPDATE events SET status = %(status)s, due_at = ended.due_at
    FROM ended WHERE id = %(event)s AND %(is_sole)s
), failed AS (
    INSERT INTO failures (event, handler, cycle, attempt, error)
    SELECT %(event)s, %(handler)s, cycle, attempt, %(error)s FROM ended WHERE %(error)s::text IS NOT NULL
), started AS (
    UPDATE runs SET status = 'running', attempts = attempts + 1, started_at = clock_timestamp(),
                    lease_until = clock_timestamp() + %(lease)s::interval,
                    due_at = clock_timestamp() + %(lease)s::interval
    WHERE event = %(next_event)s AND handler = %(next_handler)s AND token = %(token)s AND status = 'waiting'
          AND EXISTS (SELECT FROM ended)
    RETURNING 1
)
SELECT (SELECT count(*) FROM ended), (SELECT count(*) FROM started)
"""

_DERIVE = """
UPDATE events SET status = d.status, due_at = d.due_at
FROM (
    SELECT event, min(due_at) AS due_at,
           CASE WHEN bool_or(status = 'running' OR token IS NOT NULL) THEN 'running'
                WHEN bool_or(status = 'waiting') THEN 'waiting'
                WHEN bool_or(status = 'dead') THEN 'dead' ELSE 'done' END AS status
    FROM runs WHERE event = ANY(%(events)s) GROUP BY event
) AS d
WHERE id = d.event
"""

_BODY = "SELECT body FROM bodies WHERE event = %s AND received_at = %s"

_RELEASE = """
UPDATE runs SET token = NULL, lease_until = NULL, due_at = now()
WHERE event = ANY(%(events)s) AND token = %(token)s AND status = 'waiting'
RETURNING event
"""


def claim(
    connection: psycopg.Connection,
    planner: Planner,
    *,
    budget: timedelta,
    ids: Sequence[int] | None = None,
    limit: int = 50,
) -> Claim:
    """Lease due events (those of `ids`, or any) and start the first run of the first one; committed.

    An event whose lease ran out is claimed alone, so that a poisonous one takes nobody with it. `budget` is how
    long after the claim an unstarted run may still be started; after that it must be released.
    """
    token = uuid.uuid4()
    with connection.transaction():
        query = _DUE_ANY if ids is None else _DUE_NAMED
        wanted = {"limit": limit, "ids": list(ids or ()), "heavy": HEAVY}
        rows = connection.execute(query, wanted, prepare=True).fetchall()
        if not rows:
            return Claim([], 0)
        rows = rows[:1] if rows[0][-1] == "running" else [row for row in rows if row[-1] != "running"]
        events = [ClaimedEvent(*row[:-1]) for row in rows]
        triage = Triage(events, planner, _existing(connection, events), _paused(connection))
        _write(connection, triage, token, budget)
        reach("run.leased")
    leased = [
        ClaimedRun(
            todo.event,
            todo.plan.name,
            todo.attempt,
            todo.cycle,
            token,
            todo.plan.timeout + LEASE_MARGIN,
            todo.is_sole,
        )
        for todo in triage.leased
    ]
    return Claim(leased, len(events))


def end(
    connection: psycopg.Connection, run: ClaimedRun, ending: Ending, following: ClaimedRun | None = None
) -> bool:
    """End an attempt, and start the `following` run, in the caller's transaction; tell whether that started.

    Raises `LeaseLost` if the run is no longer ours; the caller must roll back.
    """
    if not run.is_sole:
        connection.execute(_LOCK, [[run.event.id]], prepare=True)
    row = connection.execute(
        _END,
        {
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
        },
        prepare=True,
    ).fetchone()
    ended, started = row or (0, 0)
    if not ended:
        raise LeaseLost(
            f"lease on event {run.event.id} (handler {run.handler}) ran out and another worker may have it; "
            "this attempt's writes are rolled back"
        )
    if not run.is_sole:
        connection.execute(_DERIVE, {"events": [run.event.id]}, prepare=True)
    return bool(started)


def release(connection: psycopg.Connection, runs: Iterable[ClaimedRun]) -> list[int]:
    """Let go of claimed runs that were not started; their events are due at once. Gives their ids."""
    rest = list(runs)
    if not rest:
        return []
    events = sorted({run.event.id for run in rest})
    with connection.transaction():
        connection.execute(_LOCK, [events])
        rows = connection.execute(_RELEASE, {"events": events, "token": rest[0].token}).fetchall()
        connection.execute(_DERIVE, {"events": events})
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


def load_body(connection: psycopg.Connection, event: ClaimedEvent) -> bytes | None:
    """Fetch the body of an event; None if retention has dropped it."""
    row = connection.execute(_BODY, [event.id, event.received_at]).fetchone()
    return row[0] if row else None


def _write(connection: psycopg.Connection, triage: Triage, token: uuid.UUID, budget: timedelta) -> None:
    """Write what the triage decided, all of it in the claim's transaction."""
    if triage.lost:
        events, handlers, buried = zip(*triage.lost, strict=True)
        connection.execute(
            _BURY,
            {
                "events": list(events),
                "handlers": list(handlers),
                "buried": list(buried),
                "error": LEASE_RAN_OUT,
            },
        )
    leased = [(t.event.id, t.plan.name, budget + UNSTARTED_MARGIN, True) for t in triage.leased]
    if triage.leased:
        leased[0] = (*leased[0][:2], triage.leased[0].plan.timeout + LEASE_MARGIN, True)
    waiting = [(event, handler, UNKNOWN_HANDLER_PAUSE, False) for event, handler in triage.put_off]
    if leased or waiting:
        events, handlers, leases, is_leased = zip(*leased, *waiting, strict=True)
        connection.execute(
            _LEASE,
            {
                "events": list(events),
                "handlers": list(handlers),
                "leases": list(leases),
                "leased": list(is_leased),
                "starts": [n == 0 and bool(leased) for n in range(len(events))],
                "token": token,
            },
            prepare=True,
        )
    if triage.ignored:
        connection.execute(_IGNORE, [triage.ignored])
    connection.execute(_DERIVE, {"events": [event.id for event in triage.events]}, prepare=True)


def _existing(
    connection: psycopg.Connection, events: Sequence[ClaimedEvent]
) -> dict[int, dict[str, ExistingRun]]:
    found: dict[int, dict[str, ExistingRun]] = {event.id: {} for event in events}
    for event, handler, *rest in connection.execute(_RUNS, [list(found)], prepare=True):
        found[event][handler] = ExistingRun(*rest)
    return found


def _paused(connection: psycopg.Connection) -> set[str]:
    return {row[0] for row in connection.execute(_PAUSED, prepare=True)}
