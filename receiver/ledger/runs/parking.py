"""Parks what is paused, so that no claim has to look at it, and makes it due again when the pause is over.

A pause is one row, written at once; claims and sweeps then park what they meet, a batch at a time, while they hold
that row `FOR SHARE`. Who ends the pause deletes the row first, which waits for them, and un-parks by index after
that: whatever was parked for that pause is then committed and found. If he is stopped halfway, a sweep goes on: what
is parked under a pause that is gone is un-parked, whoever left it.

Runs of paused handlers are parked by claims only (hookonce.receiver.ledger.runs.claims): which handlers take an
event, workers alone know. Lock order as in `receiver.ledger.runs.transitions`.
"""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.ledger.due import IS_DUE, IS_DUE_SINCE
from hookonce.receiver.ledger.runs import event_status
from hookonce.receiver.ledger.states import EventStatus, Parked, RunStatus, one_of

PARK_BATCH = 2500
"""Due events among which those of paused sources are parked in one go; it takes some 100 ms."""
_MET = 100
"""Events at the head of the queue: if none of these is to be parked, claims have little to pass over."""
UNPARK_BATCH = 1000
SWEEP_TURN = timedelta(milliseconds=500)
"""How long a sweep goes on with what was left parked."""
_PAGE = 5000

# The row of a pause is locked only where there is something to park: otherwise claims would write to it all the time.
_PARK_SOURCES = f"""
WITH met AS MATERIALIZED (
    SELECT source FROM hookonce.events
    WHERE EXISTS (SELECT FROM hookonce.pauses WHERE kind = 'source') AND {IS_DUE_SINCE} ORDER BY due_at LIMIT {_MET}
), paused AS MATERIALIZED (
    SELECT name FROM hookonce.pauses WHERE kind = 'source' AND name IN (SELECT source FROM met) FOR SHARE
), head AS MATERIALIZED (
    SELECT id, source FROM hookonce.events
    WHERE {IS_DUE_SINCE} AND EXISTS (SELECT FROM paused) ORDER BY due_at LIMIT {PARK_BATCH}
), mine AS MATERIALIZED (
    SELECT id FROM hookonce.events
    WHERE id = ANY(ARRAY(SELECT id FROM head WHERE source IN (SELECT name FROM paused))) AND {IS_DUE}
    FOR UPDATE SKIP LOCKED
)
UPDATE hookonce.events SET parked = '{Parked.SOURCE}' WHERE id = ANY(ARRAY(SELECT id FROM mine))
"""  # noqa: S608  constants

_LOCK_PAUSES = "SELECT name FROM hookonce.pauses WHERE kind = %s AND name = ANY(%s) ORDER BY name FOR SHARE"

_PARKED_SOURCE = f"""
SELECT id FROM hookonce.events WHERE parked = '{Parked.SOURCE}' AND source = %s AND id > %s ORDER BY id LIMIT %s
"""  # noqa: S608  constants
_PARKED_HANDLER = f"""
SELECT event FROM hookonce.runs WHERE parked = '{Parked.HANDLER}' AND handler = %s AND event > %s
ORDER BY event LIMIT %s
"""  # noqa: S608  constants

# What waits, for its next attempt or for a worker that knows its handler, is due at once.
_HASTEN_SOURCE = f"""
UPDATE hookonce.runs SET due_at = now()
WHERE event = ANY(%(events)s) AND status = '{RunStatus.WAITING}' AND token IS NULL AND due_at > now()
"""  # noqa: S608  constants
_HASTEN_HANDLER = f"""
UPDATE hookonce.runs SET parked = NULL,
                due_at = CASE WHEN status = '{RunStatus.WAITING}' THEN least(due_at, now()) ELSE due_at END
WHERE event = ANY(%(events)s) AND handler = %(handler)s AND parked IS DISTINCT FROM '{Parked.SUSPECT}'
      AND (parked IS NOT NULL OR status = '{RunStatus.WAITING}' AND token IS NULL AND due_at > now())
"""  # noqa: S608  constants
_UNPARK_EVENTS = f"""
UPDATE hookonce.events SET parked = NULL,
                  due_at = CASE WHEN status = '{EventStatus.RECEIVED}' THEN least(due_at, now()) ELSE due_at END
WHERE id = ANY(%s)
"""  # noqa: S608  constants

# A page of what is open and not parked, by due time: where it ends, and which of it waits for its time.
_OPEN_PAGE = f"""
WITH page AS MATERIALIZED (
    SELECT id, due_at, source, status FROM hookonce.events
    WHERE due_at IS NOT NULL AND parked IS NULL AND (due_at, id) > (%(due_at)s, %(id)s)
    ORDER BY due_at, id LIMIT {_PAGE}
), early AS (
    SELECT id FROM page WHERE %(source)s::text IS NOT NULL AND source = %(source)s AND due_at > now()
                              AND status = '{EventStatus.RECEIVED}'
    UNION ALL
    SELECT id FROM page WHERE (%(source)s::text IS NULL OR source = %(source)s)
        AND {one_of("status", (EventStatus.RUNNING, EventStatus.WAITING))} AND EXISTS (
            SELECT FROM hookonce.runs r
            WHERE r.event = page.id AND (%(handler)s::text IS NULL OR r.handler = %(handler)s)
                   AND r.status = '{RunStatus.WAITING}' AND r.token IS NULL AND r.due_at > now() OFFSET 0)
)
SELECT due_at, id, ARRAY(SELECT id FROM early ORDER BY id) FROM page ORDER BY due_at DESC, id DESC LIMIT 1
"""  # noqa: S608  constants

# Jumps from one name to the next in the index.
_LEFT = """
WITH RECURSIVE named AS (
    (SELECT {name} AS name FROM hookonce.{table} WHERE parked = '{kind}' ORDER BY {name} LIMIT 1)
    UNION ALL
    SELECT (SELECT p.{name} FROM hookonce.{table} p WHERE p.parked = '{kind}' AND p.{name} > named.name
            ORDER BY p.{name} LIMIT 1)
    FROM named WHERE named.name IS NOT NULL)
SELECT '{kind}', name FROM named
WHERE name IS NOT NULL AND NOT EXISTS (SELECT FROM hookonce.pauses WHERE kind = '{kind}' AND pauses.name = named.name)
"""
_LEFT_PARKED = " UNION ALL ".join(
    f"({_LEFT.format(table=table, name=name, kind=kind)})"
    for table, name, kind in (("events", "source", Parked.SOURCE), ("runs", "handler", Parked.HANDLER))
)


def park_sources(connection: psycopg.Connection, since: datetime | None = None) -> int:
    """Park what is due of paused sources, `PARK_BATCH` events at most; return how many were. Committed.

    What was due before `since` is passed over.
    """
    with connection.transaction():
        return connection.execute(_PARK_SOURCES, {"since": since}).rowcount


def lock_pauses(connection: psycopg.Connection, kind: str, names: set[str]) -> set[str]:
    """Keep pauses from being ended before this transaction is; return those of `names` that there still are."""
    return {row[0] for row in connection.execute(_LOCK_PAUSES, [kind, sorted(names)])}


def unpark(connection: psycopg.Connection, kind: str, name: str, until: float | None = None) -> bool:
    """Make due what is parked for a source or a handler, retries included; return whether nothing is left.

    Its pause must be over: a claim would park it again. Committed batch by batch; ends `until` a time of our
    monotonic clock.
    """
    query = _PARKED_SOURCE if kind == "source" else _PARKED_HANDLER
    last = 0
    while events := [row[0] for row in connection.execute(query, [name, last, UNPARK_BATCH])]:
        _make_due(connection, events, None if kind == "source" else name)
        last = events[-1]
        if until is not None and time.monotonic() > until:
            return False
    return True


def hasten(connection: psycopg.Connection, kind: str, name: str) -> None:
    """Make due at once what waits for its time and is not parked, of a source or a handler. Committed in batches."""
    source, handler = (name, None) if kind == "source" else (None, name)
    for events in _early(connection, source, handler):
        for start in range(0, len(events), UNPARK_BATCH):
            _make_due(connection, events[start : start + UNPARK_BATCH], handler)


def unpark_left(connection: psycopg.Connection) -> None:
    """Un-park what is parked under a pause that is gone, for `SWEEP_TURN` at most. Safe in many processes at once."""
    until = time.monotonic() + SWEEP_TURN.total_seconds()
    for kind, name in connection.execute(_LEFT_PARKED).fetchall():
        if not unpark(connection, kind, name, until):
            return


def _make_due(connection: psycopg.Connection, events: list[int], handler: str | None) -> None:
    with connection.transaction():
        connection.execute(event_status.LOCK_EVENTS, [events])
        if handler is None:
            connection.execute(_HASTEN_SOURCE, {"events": events})
            connection.execute(_UNPARK_EVENTS, [events])
        else:
            connection.execute(_HASTEN_HANDLER, {"events": events, "handler": handler})
        connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": events})


def _early(connection: psycopg.Connection, source: str | None, handler: str | None) -> Iterator[list[int]]:
    place: tuple[datetime | str, int] = ("-infinity", 0)
    wanted = {"source": source, "handler": handler}
    while row := connection.execute(_OPEN_PAGE, {"due_at": place[0], "id": place[1], **wanted}).fetchone():
        place = (row[0], row[1])
        if row[2]:
            yield row[2]
