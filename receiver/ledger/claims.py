"""Claims due events for one worker: leases their runs under a random token, and starts one of them.

What to lease is `receiver.ledger.triage`'s to say; here it is read, locked and written. Lock order as in
`receiver.ledger.runs`: events by id (or skipped, if another holds them), then runs.
"""

import logging
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import TupleRow

from receiver.failpoints import reach
from receiver.ledger import runs
from receiver.ledger.runs import ClaimedRun
from receiver.ledger.triage import ClaimedEvent, ExistingRun, Planner, Triage

log = logging.getLogger(__name__)

UNKNOWN_HANDLER_PAUSE = timedelta(seconds=30)
LEASE_RAN_OUT = "the worker stopped, or took longer than its lease"
HEAVY = 256 * 1024
"""Bodies above this are loaded when their run starts, so that a batch of them does not fill the memory."""


class Claim(NamedTuple):
    """The runs leased, the first of them started; `events`: due ones looked at, `is_more`: some may be left."""

    runs: list[ClaimedRun]
    events: int
    is_more: bool = False


_DUE = """
WITH due AS MATERIALIZED (
    SELECT id, source, provider, event_id, type, account, received_at, occurred_at, repeat_of, due_at, status,
           fingerprint
    FROM events
    WHERE due_at <= now() {named} AND source NOT IN (SELECT name FROM pauses WHERE kind = 'source')
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
SELECT d.id, d.source, d.provider, d.event_id, d.type, d.account, d.received_at, d.occurred_at, d.repeat_of,
       b.url, b.headers, CASE WHEN octet_length(b.body) <= %(heavy)s THEN b.body END,
       coalesce(b.is_element, false), d.fingerprint, b.key_id, b.traceparent, d.status
FROM due d LEFT JOIN bodies b ON b.event = d.id AND b.received_at = d.received_at
ORDER BY d.due_at, d.id
"""
_DUE_ANY = _DUE.format(named="")
_DUE_NAMED = _DUE.format(named="AND id = ANY(%(ids)s)")

# Event by event, whatever the planner thinks of the table: it may have been empty when the plan was made.
_RUNS = """
SELECT r.event, r.handler, r.status, r.attempts, r.cycle, r.due_at <= now()
FROM unnest(%s::bigint[]) AS t (event), LATERAL (SELECT * FROM runs WHERE event = t.event OFFSET 0) AS r
"""

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

_IGNORE = """
WITH ignored AS (UPDATE events SET status = 'ignored', due_at = NULL WHERE id = ANY(%s) RETURNING source)
INSERT INTO event_counts (source, what, count) SELECT source, 'ignored', count(*) FROM ignored GROUP BY source
"""


def claim(  # noqa: PLR0913  all but two by keyword
    connection: psycopg.Connection,
    planner: Planner,
    *,
    budget: timedelta,
    ids: Sequence[int] | None = None,
    limit: int = 50,
    quick_first: bool = True,
) -> Claim:
    """Lease due events (those of `ids`, or any) and start the first run of the first one; committed.

    An event whose lease ran out is claimed alone, so that a poisonous one takes nobody with it. `budget` is how
    long after the claim an unstarted run may still be started; after that it must be released. One that a slow
    handler takes is claimed alone too, and with `quick_first` only if no other is due: nobody waits behind it.
    """
    token = uuid.uuid4()
    with connection.pipeline(), connection.transaction():
        query = _DUE_ANY if ids is None else _DUE_NAMED
        wanted = {"limit": limit, "ids": list(ids or ()), "heavy": HEAVY}
        rows = connection.execute(query, wanted, prepare=True, binary=True).fetchall()
        if not rows:
            return Claim([], 0)
        events = [ClaimedEvent(*row[:-1]) for row in _together(rows, planner, quick_first=quick_first)]
        triage = Triage(events, planner, *_existing(connection, events))
        _write(connection, triage, token, budget)
        reach("run.leased")
    _report(triage)
    leased = [
        ClaimedRun(
            todo.event,
            todo.plan.name,
            todo.attempt,
            todo.cycle,
            token,
            todo.plan.timeout + runs.LEASE_MARGIN,
            todo.is_sole,
        )
        for todo in triage.leased
    ]
    return Claim(leased, len(rows), is_more=len(rows) == limit or len(events) < len(rows))


def _together(rows: Sequence[TupleRow], planner: Planner, *, quick_first: bool) -> Sequence[TupleRow]:
    """Choose the rows that may be claimed together."""
    if rows[0][-1] == "running":
        return rows[:1]
    fresh = [row for row in rows if row[-1] != "running"]
    quick = [row for row in fresh if not planner.is_slow(row[1], row[2], row[4])]
    if not quick or (quick[0] is not fresh[0] and not quick_first):
        return fresh[:1]
    return quick


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
    leased = [(t.event.id, t.plan.name, budget + runs.UNSTARTED_MARGIN, True) for t in triage.leased]
    if triage.leased:
        leased[0] = (*leased[0][:2], triage.leased[0].plan.timeout + runs.LEASE_MARGIN, True)
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
    connection.execute(runs.DERIVE, {"events": [event.id for event in triage.events]}, prepare=True)


def _report(triage: Triage) -> None:
    """Log what was ignored, as its runs are where it has some."""
    if triage.ignored and log.isEnabledFor(logging.INFO):
        ignored = frozenset(triage.ignored)
        for event in triage.events:
            if event.id in ignored:
                said = {"event": event.id, "source": event.source, "type": event.type}
                log.info("ignored", extra=said)


def _existing(
    connection: psycopg.Connection, events: Sequence[ClaimedEvent]
) -> tuple[dict[int, dict[str, ExistingRun]], set[str]]:
    """Give the runs there are by event and handler, and the handlers that are paused."""
    found: dict[int, dict[str, ExistingRun]] = {event.id: {} for event in events}
    existing = connection.execute(_RUNS, [list(found)], prepare=True)
    paused = connection.execute(_PAUSED, prepare=True)
    for event, handler, *rest in existing:
        found[event][handler] = ExistingRun(*rest)
    return found, {row[0] for row in paused}
