"""Waits of handlers for other events: what each run waits for, and the first event of each key that has come.

A key is the hash of source, type, place and value. The side that waits and the side that notes an arrival lock the key
in their transactions, and look at each other's rows in later statements: so one of the two sees the other.
A wait has one answer, which is kept with it: an event, or none in time.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import psycopg
from pydantic import Field

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel, all_as

LONGEST: Final = timedelta(days=90)
"""How long a handler may wait, and how long arrivals are kept before any has said for how long it waits."""
MOST_LISTED: Final = 1000


class Awaited(NamedTuple):
    """A source or a provider, a type, and the place of the value by which its events are told apart."""

    source: str
    type: str
    place: str

    def key(self, value: str) -> bytes:
        """Return the key of a value (32 bytes)."""
        return hashlib.sha256(json.dumps([*self, value]).encode()).digest()


class Wait(ResponseModel):
    """A wait of a run for another event; `ended_at` is null while it lasts."""

    name: Ours
    source: Ours
    type: Ours
    since: datetime
    until: datetime
    ended_at: datetime | None
    answer: Identifier | None = Field(description="event that came; null if none came in time")


class OpenWait(Wait):
    """A wait that lasts, and the event and the handler that wait."""

    event: Identifier
    handler: Ours


class Noted(ResponseModel):
    """Events that handlers may wait for, which are noted since a worker has first declared so."""

    source: Ours
    type: Ours
    place: Ours
    since: datetime
    longest_seconds: float | None = Field(
        description="how long handlers have waited at most; null if none has yet"
    )


class State(NamedTuple):
    """The state of a wait: its key, whether it has its answer, that answer, and how long it lasts otherwise."""

    key: bytes
    has_ended: bool
    answer: int | None
    left: timedelta


def _lock_of(key: bytes) -> int:
    return int.from_bytes(key[:8], signed=True)


# In the order that is given, so that no two transactions wait for each other.
_LOCK = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key"
_THIS = "event = %(event)s AND handler = %(handler)s AND cycle = %(cycle)s AND name = %(name)s"
_DECLARE = """
INSERT INTO hookonce.waits (event, handler, cycle, name, key, source, type, until)
SELECT event, handler, cycle, %(name)s, %(key)s, %(source)s, %(type)s, now() + %(timeout)s
FROM hookonce.queue
WHERE event = %(event)s AND n = %(n)s AND token = %(token)s AND handler = %(handler)s AND cycle = %(cycle)s
ON CONFLICT DO NOTHING
"""
_RAISE_LONGEST = """
UPDATE hookonce.awaited SET longest = %(timeout)s
WHERE source = %(source)s AND type = %(type)s AND place = %(place)s AND coalesce(longest < %(timeout)s, true)
"""
_END = f"""
UPDATE hookonce.waits w SET ended_at = now(), answer = (SELECT a.event FROM hookonce.arrivals a WHERE a.key = w.key)
WHERE {_THIS} AND key = %(key)s AND ended_at IS NULL
      AND (until <= now() OR EXISTS (SELECT FROM hookonce.arrivals a WHERE a.key = w.key))
"""  # noqa: S608  a constant
_STATE = f"SELECT key, ended_at IS NOT NULL, answer, until - now() FROM hookonce.waits WHERE {_THIS}"  # noqa: S608

OF_RUN: Final = """coalesce((
    SELECT json_agg(w ORDER BY since) FROM hookonce.waits w
    WHERE (w.event, w.handler, w.cycle) = (r.event, r.handler, r.cycle)), '[]')"""
"""SQL: the waits of a row `r` of `run_states`, as JSON."""

_NOTE = """
INSERT INTO hookonce.arrivals (key, event)
SELECT DISTINCT ON (key) key, event FROM unnest(%s::bytea[], %s::bigint[]) AS t (key, event) ORDER BY key, event
ON CONFLICT DO NOTHING
"""
# A run that waits no more, since its event was discarded or replayed, has no row under this cycle.
_WAKE = """
WITH waiting AS MATERIALIZED (
    SELECT w.key, q.event, q.n FROM hookonce.waits w JOIN hookonce.queue q USING (event, handler, cycle)
    WHERE w.key = ANY(%s) AND w.ended_at IS NULL
), free AS MATERIALIZED (
    SELECT q.event, q.n FROM hookonce.queue q JOIN waiting w ON q.event = w.event AND q.n = w.n
    WHERE q.token IS NULL ORDER BY q.event, q.n FOR UPDATE OF q SKIP LOCKED
), woken AS (
    UPDATE hookonce.queue q SET due_at = least(q.due_at, now()) FROM free WHERE q.event = free.event AND q.n = free.n
)
SELECT DISTINCT key FROM waiting w WHERE NOT EXISTS (SELECT FROM free f WHERE f.event = w.event AND f.n = w.n)
"""

_OPEN = """
SELECT event, handler, name, w.source, w.type, since, until, ended_at, answer
FROM hookonce.waits w JOIN hookonce.queue q USING (event, handler, cycle)
WHERE ended_at IS NULL AND q.token IS NULL AND event = coalesce(%s, event) AND handler = coalesce(%s, handler)
ORDER BY until, event LIMIT %s
"""
_NOTED = """
SELECT source, type, place, since, extract(epoch FROM longest)::float AS longest_seconds
FROM hookonce.awaited ORDER BY 1, 2, 3
"""
_GIVE_UP = """
WITH free AS (
    SELECT event, n, handler, cycle FROM hookonce.queue
    WHERE event = %(event)s AND handler = %(handler)s AND token IS NULL FOR UPDATE
), ended AS (
    UPDATE hookonce.waits w SET until = least(until, now()) FROM free
    WHERE w.event = free.event AND w.handler = free.handler AND w.cycle = free.cycle AND w.ended_at IS NULL
    RETURNING free.n
)
UPDATE hookonce.queue q SET due_at = least(due_at, now()) FROM ended WHERE q.event = %(event)s AND q.n = ended.n
"""


def wait(
    connection: psycopg.Connection,
    who: Mapping[str, object],
    awaited: Awaited,
    key: bytes,
    timeout: timedelta,
) -> State | None:
    """Declare a wait of a run, unless it was; end it where its event has come or its time is over; return its state.

    `who`: the run by its row of the queue (event, n, token), its handler and cycle, and the name that its wait has.
    `connection` is in autocommit mode. None: the run is no longer ours.
    """
    values = {**who, **awaited._asdict(), "key": key, "timeout": timeout}
    with connection.transaction():
        connection.execute(_LOCK, [[_lock_of(key)]])
        connection.execute(_DECLARE, values)
        connection.execute(_RAISE_LONGEST, values)
        connection.execute(_END, values)
        row = connection.execute(_STATE, values).fetchone()
        reach("wait.declared")
    return None if row is None else State(*row)


def note(connection: psycopg.Connection, arrivals: Sequence[tuple[bytes, int]]) -> set[bytes]:
    """Note which events (key, event) have come, and have who waits be due; the first event of a key stays.

    Return the keys for which a run waits that is under way or locked: it may yet be put off, so they are to be noted
    again. `connection` is in autocommit mode. The transaction need not wait for the disk: the end of the run that
    notes is flushed after it, and where that is lost, it notes again.
    """
    keys, events = map(list, zip(*arrivals, strict=True))
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = off")
        connection.execute(_LOCK, [sorted(map(_lock_of, set(keys)))])
        connection.execute(_NOTE, [keys, events])
        busy = {key for (key,) in connection.execute(_WAKE, [keys])}
        reach("wait.noted")
    return busy


def listed(
    connection: psycopg.Connection, most: int, *, event: int | None = None, handler: str | None = None
) -> list[OpenWait]:
    """Return the waits that last of runs that are not under way, those that end first before others."""
    return all_as(OpenWait, connection, _OPEN, [event, handler, most])


def noted(connection: psycopg.Connection) -> list[Noted]:
    """Return what workers note, and since when."""
    return all_as(Noted, connection, _NOTED)


def give_up(connection: psycopg.Connection, event: int, handler: str, who: str) -> bool:
    """End the time of what a run waits for, so that its handler goes on without; return whether it waited. Audited."""
    with connection.transaction():
        is_woken = connection.execute(_GIVE_UP, {"event": event, "handler": handler}).rowcount > 0
        if is_woken:
            audit_log.note(connection, who, "wake", f"event {event}", {"handler": handler})
    return is_woken
