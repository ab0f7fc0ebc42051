"""Takes events in: the unique key (source, event_id) alone decides what is new; under it another body is a conflict.

One statement inserts a batch's events, bodies and rows of the queue together and commits by itself, so a
receiver that dies or hangs never holds a key without its body, nor a key at all. Rows go in sorted by key: two
receivers with the same events in different order would deadlock otherwise. A concurrent twin waits on the
unique index until the first commits, and then finds its row a duplicate (READ COMMITTED).

Two attempts to deliver an event may differ in its id (`RetryId`), so the same statement looks for the other's. It is
believed only where the fingerprint is equal too: two events may share a retry id. That is no unique key, so copies that
know each other's id are stored one after the other, under a lock (`retry_locks`); no other event waits for it. When it
does not hold: docs/decisions/0034.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Annotated, NamedTuple
from zlib import crc32

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger import states
from hookonce.receiver.ledger.database.arrays import array
from hookonce.receiver.ledger.database.statements import fetched
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.ledger.rows import Column, InBodies, InEvents, types, values
from hookonce.receiver.ledger.states import EventStatus, RunStatus
from hookonce.receiver.processes.waits import IN_THREAD, Waits, run

UNKNOWN = bytes(32)
"""The fingerprint of an event whose body is not as its sender delivers it: no other body is in conflict with it."""
Key = tuple[str, str]
Row = tuple[str, str, int, bool]


class Verdict(StrEnum):
    """The verdict of the ledger on an arriving event."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    HELD = "held"


class RetryId(NamedTuple):
    """An id that another attempt to deliver an event may have; believed of an equal fingerprint that came `within`."""

    event_id: str
    within: timedelta


class NewEvent(NamedTuple):
    """An event on its way in; text is free of NUL and lone surrogates, `event_id` at most 255 bytes.

    `fingerprint` is the SHA-256 of the body without what the provider calls volatile. `body` is the
    delivery's raw bytes, or the element's own where `is_element`. `hold`: store as held, not run.
    `hold_repeats`: do so if another event of the source has the same fingerprint (only looked for where the id is
    unsigned), or the same `repeat_mark`: the SHA-256 of what was signed, of a sender that does not sign the body's
    bytes.
    `traceparent` (W3C) is the delivery's span, where deliveries are traced. `is_test`: an
    operator sent it. `origin`: how it came, where no delivery brought it. Without `keep_body` its body goes when its
    last run is done (`runs.ends`). `put_off`: it is due so much later. `unreadable`: why its adapter could not read
    it; it is dead then, and no handler gets it.
    `unwanted`: why its source does not accept it; it is ignored then.
    `retry_ids`: an event that is stored under one of these is this one, unless an event has its own id. A field that
    is a column says of which table; it is written by that name.
    """

    source: InEvents[str]
    provider: InEvents[str]
    event_id: InEvents[str]
    type: InEvents[str]
    account: InEvents[str | None]
    fingerprint: InEvents[bytes]
    id_is_signed: InEvents[bool]
    occurred_at: InEvents[datetime | None]
    url: InBodies[str]
    headers: Annotated[str, Column("bodies", "headers::json")]
    body: InBodies[bytes]
    is_element: InBodies[bool] = False
    unreadable: str | None = None
    unwanted: str | None = None
    hold_repeats: bool = False
    key_id: InBodies[str | None] = None
    traceparent: InBodies[str | None] = None
    is_test: InEvents[bool] = False
    origin: InEvents[str | None] = None
    keep_body: InEvents[bool] = True
    put_off: timedelta | None = None
    repeat_mark: bytes | None = None
    retry_ids: tuple[RetryId, ...] = ()
    hold: bool = False

    @property
    def key(self) -> Key:
        """The pair that makes an event unique."""
        return (self.source, self.event_id)


class Stored(NamedTuple):
    """The ledger's answer for one event: its row and the fingerprint that row keeps.

    retry_id: the id that the row has, where it is one of the event's retry ids
    is_put_off: it is new, and not due yet
    """

    id: int
    verdict: Verdict
    fingerprint: bytes
    retry_id: str | None = None
    is_put_off: bool = False


_TYPES = types(NewEvent)
_IN_EVENTS = ", ".join(values(NewEvent, "events"))
_IN_BODIES = values(NewEvent, "bodies")

_IS_TAKEN = "coalesce(unreadable, unwanted) IS NULL"
_IS_HELD = "(hold OR hold_repeats AND repeat_of IS NOT NULL)"

_INSERT_NEW = f"""
WITH incoming AS MATERIALIZED (
    SELECT *
    FROM unnest({", ".join(f"%b::{name}[]" for name in _TYPES.values())})
         AS t ({", ".join(_TYPES)})
), judged AS (
    SELECT i.*, CASE WHEN NOT i.id_is_signed THEN %r
        -- Repeats are not looked at, and are in no index: a body may come a million times.
        (SELECT min(e.id) FROM hookonce.events e WHERE e.source = i.source AND e.fingerprint = i.fingerprint
         AND NOT e.id_is_signed AND e.repeat_of IS NULL)%m END AS repeat_of
    FROM incoming i
    %s
), stored AS (
    INSERT INTO hookonce.events ({_IN_EVENTS}, repeat_of)
    SELECT {_IN_EVENTS}, repeat_of
    FROM judged ORDER BY source, event_id
    ON CONFLICT (source, event_id) DO NOTHING
    RETURNING id, source, event_id, type, received_at, repeat_of
), kept AS (
    INSERT INTO hookonce.bodies (event, received_at, {", ".join(_IN_BODIES)})
    SELECT id, received_at, {", ".join(_IN_BODIES.values())} FROM stored JOIN incoming USING (source, event_id)
), queued AS (
    INSERT INTO hookonce.queue (event, received_at, source, type, due_at, waits)
    SELECT id, received_at, source, stored.type, now() + coalesce(put_off, interval '0'),
           CASE WHEN {_IS_HELD} THEN '{states.Waits.HELD}' END
    FROM stored JOIN incoming USING (source, event_id) WHERE {_IS_TAKEN}
)%u%k
SELECT source, event_id, id, {_IS_TAKEN} AND {_IS_HELD} FROM stored JOIN incoming USING (source, event_id)
"""  # noqa: S608  constants

_RETRY_TYPES = ("text", "text", "bytea", "text", "interval")
_RETRIED = f"""unnest({", ".join(f"%b::{kind}[]" for kind in _RETRY_TYPES)})
             AS r (source, event_id, fingerprint, retry_id, within)
         JOIN hookonce.events e ON (e.source, e.event_id) = (r.source, r.retry_id) AND e.fingerprint = r.fingerprint"""
_UNLESS_RETRIED = f"""WHERE NOT EXISTS (
        SELECT FROM {_RETRIED}
        WHERE (r.source, r.event_id) = (i.source, i.event_id) AND e.received_at > now() - r.within)"""
_NOT_TAKEN = f""", ended AS (
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
    SELECT id, '', 1, CASE WHEN unreadable IS NULL THEN '{EventStatus.IGNORED}' ELSE '{RunStatus.DEAD}' END, 0, now()
    FROM stored JOIN incoming USING (source, event_id) WHERE NOT {_IS_TAKEN}
), explained AS (
    INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)
    SELECT id, '', 1, 0, coalesce(unreadable, unwanted)
    FROM stored JOIN incoming USING (source, event_id) WHERE NOT {_IS_TAKEN}
)"""  # noqa: S608  constants
_MARKED = {
    "%r": "least(",
    "%m": """,
        -- Whoever has a mark keeps it: a repeat finds the first.
        (SELECT m.event FROM hookonce.repeat_marks m WHERE (m.source, m.mark) = (i.source, i.repeat_mark)))""",
    "%k": """, marked AS (
    INSERT INTO hookonce.repeat_marks (source, mark, event)
    SELECT DISTINCT ON (source, repeat_mark) source, repeat_mark, id
    FROM stored JOIN incoming USING (source, event_id)
    WHERE repeat_mark IS NOT NULL AND NOT id_is_signed ORDER BY source, repeat_mark, id
    ON CONFLICT DO NOTHING
)""",
}


@cache
def _insert_statement(*, unless_retried: bool, marked: bool, all_taken: bool) -> str:
    """Return the statement that inserts a batch, with what its events need and nothing besides."""
    parts = {
        "%s": _UNLESS_RETRIED if unless_retried else "",
        "%u": "" if all_taken else _NOT_TAKEN,
        **(_MARKED if marked else dict.fromkeys(_MARKED, "")),
    }
    statement = _INSERT_NEW
    for place, part in parts.items():
        statement = statement.replace(place, part)
    return statement


_FIND = """
SELECT e.source, e.event_id, e.id, e.fingerprint
FROM unnest(%b::text[], %b::text[]) AS k (source, event_id) JOIN hookonce.events e USING (source, event_id)
"""

_FIND_RETRIED = f"""
SELECT r.source, r.event_id, e.id, e.fingerprint, e.event_id
FROM {_RETRIED}
WHERE e.received_at > now() - r.within ORDER BY e.id DESC
"""  # noqa: S608  constants

_CONFLICT = """
INSERT INTO hookonce.conflicts (event, fingerprint, headers, body, key_id) VALUES (%b, %b, %b::text::json, %b, %b)
ON CONFLICT (event, fingerprint) DO UPDATE SET deliveries = conflicts.deliveries + 1, last_at = now()
"""

_LOCK_FINGERPRINT = "SELECT pg_advisory_xact_lock(hashtextextended(%b, 0))"
LOCK_RETRIES = "SELECT pg_advisory_xact_lock(1212892239, n) FROM unnest(%b::int[]) AS n"
_RETRY_LOCKS = 256
"""Locks for events with retry ids, so that a batch of any size takes few; PostgreSQL has room for some thousand."""


def store(connection: psycopg.Connection, batch: Sequence[NewEvent]) -> dict[Key, Stored]:
    """Store events, the calling thread waiting for it; as `store_in`."""
    return run(store_in(connection, batch, IN_THREAD))


async def store_in(
    connection: psycopg.Connection, batch: Sequence[NewEvent], waits: Waits
) -> dict[Key, Stored]:
    """Insert what is new and tell, for every key of the batch, what the ledger now holds.

    Keys must be distinct. Committed when it returns. An event whose key is taken by another body is a
    `CONFLICT`: the row stays as it is, the other body is kept in `conflicts`.
    """
    events = {event.key: event for event in batch}
    answers = await insert(connection, events, waits)
    if len(answers) < len(events):
        known = [event for key, event in events.items() if key not in answers]
        answers |= await waits.ask_server(_compare, connection, known)
    return answers


async def insert(
    connection: psycopg.Connection, events: Mapping[Key, NewEvent], waits: Waits
) -> dict[Key, Stored]:
    """Insert the events that are new, with bodies and rows of the queue; return what each of those is stored as."""
    batch = list(events.values())
    try:
        rows = await _rows(connection, batch, waits)
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name:  # else no partition takes the row; the text may be in any language
            raise
        await waits.ask_server(_make_partitions, connection)
        rows = await _rows(connection, batch, waits)
    answers: dict[Key, Stored] = {}
    for source, event_id, row_id, is_held in rows:
        event = events[source, event_id]
        verdict = Verdict.HELD if is_held else Verdict.ACCEPTED
        answers[source, event_id] = Stored(
            row_id, verdict, event.fingerprint, None, event.put_off is not None
        )
    return answers


def retry_locks(batch: Iterable[NewEvent]) -> list[int]:
    """Return the locks of a batch's events with retry ids, in the order in which every receiver takes them.

    All attempts to deliver an event have its fingerprint in common, whatever its id.
    """
    found = {(event.source, event.fingerprint) for event in batch if event.retry_ids}
    return sorted(
        {crc32(fingerprint, crc32(source.encode())) % _RETRY_LOCKS for source, fingerprint in found}
    )


async def _rows(connection: psycopg.Connection, batch: Sequence[NewEvent], waits: Waits) -> list[Row]:
    guarded = {
        mark.hex() + event.source
        for event in batch
        if event.hold_repeats and not event.id_is_signed
        for mark in (event.fingerprint, event.repeat_mark)
        if mark is not None
    }
    retried = retry_locks(batch)
    if guarded or retried:
        return await waits.ask_server(_insert_guarded, connection, batch, sorted(guarded), retried)
    return await fetched(connection, *_insertion(batch), waits)


def _insert_guarded(
    connection: psycopg.Connection, batch: Sequence[NewEvent], guarded: Iterable[str], retried: Sequence[int]
) -> list[Row]:
    """Insert while holding a lock per fingerprint and mark: two equal bodies at once must not both look first.

    `retried` are the locks of events with retry ids; each transaction takes them first.
    """
    with connection.transaction():
        if retried:
            connection.execute(LOCK_RETRIES, [retried])
        for name in guarded:
            connection.execute(_LOCK_FINGERPRINT, [name])
        rows = connection.execute(*_insertion(batch)).fetchall()
        reach("ledger.inserted")
        return rows


def _compare(connection: psycopg.Connection, known: Sequence[NewEvent]) -> dict[Key, Stored]:
    held = _held(connection, known)
    answers: dict[Key, Stored] = {}
    for event in known:
        if event.key not in held:  # pruned between the two statements: it is new after all
            answers |= store(connection, [event])
            continue
        row = held[event.key]
        if UNKNOWN not in {row.fingerprint, event.fingerprint} and row.fingerprint != event.fingerprint:
            connection.execute(_CONFLICT, [row.id, event.fingerprint, *_kept_of_conflict(event)])
            reach("conflict.recorded")
            row = row._replace(verdict=Verdict.CONFLICT)
        answers[event.key] = row
    return answers


def _kept_of_conflict(event: NewEvent) -> tuple[str, bytes, str | None]:
    """Return headers, body and key of what came under a known id; of a source that keeps no bodies, nothing."""
    return (event.headers, event.body, event.key_id) if event.keep_body else ("{}", b"", None)


def _held(connection: psycopg.Connection, known: Sequence[NewEvent]) -> dict[Key, Stored]:
    """Return the row of each event as a duplicate's, where there is one: under its own id, or under a retry id."""
    keys = [event.key for event in known]
    rows = connection.execute(_FIND, [[k[0] for k in keys], [k[1] for k in keys]], prepare=True).fetchall()
    held = {
        (source, event_id): Stored(row_id, Verdict.DUPLICATE, bytes(fingerprint))
        for source, event_id, row_id, fingerprint in rows
    }
    others = [event for event in known if event.retry_ids and event.key not in held]
    retried = connection.execute(_FIND_RETRIED, _retry_columns(others)).fetchall() if others else ()
    return held | {
        (source, event_id): Stored(row_id, Verdict.DUPLICATE, bytes(fingerprint), retry_id)
        for source, event_id, row_id, fingerprint, retry_id in retried
    }


def _insertion(batch: Sequence[NewEvent]) -> tuple[str, list[object]]:
    """Return the statement that inserts a batch, and its parameters."""
    retried = _retry_columns(batch) if any(event.retry_ids for event in batch) else []
    statement = _insert_statement(
        unless_retried=bool(retried),
        marked=any(event.repeat_mark is not None for event in batch),
        all_taken=not any(event.unreadable or event.unwanted for event in batch),
    )
    return statement, [*_columns(batch), *retried]


def _columns(batch: Sequence[NewEvent]) -> list[object]:
    """Return the events' fields as `_INSERT_NEW` takes them: an array for each."""
    columns = dict(zip(NewEvent._fields, zip(*batch, strict=True), strict=True))
    return [array(kind, columns[name]) for name, kind in _TYPES.items()]


def _retry_columns(batch: Sequence[NewEvent]) -> list[object]:
    """Return key and fingerprint of the events for each retry id, with that."""
    found = [
        (*event.key, event.fingerprint, each.event_id, each.within)
        for event in batch
        for each in event.retry_ids
    ]
    return list(map(array, _RETRY_TYPES, zip(*found, strict=True)))


def _make_partitions(connection: psycopg.Connection) -> None:
    """Make the partitions that `db upgrade` and the sweep should have made in time."""
    today = connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date").fetchone()
    first = today[0] if today else datetime.now(UTC).date()
    for ahead in range(3):
        partitions.make_partition(connection, first + timedelta(days=ahead))
