"""Takes events in. The unique key (source, event_id) decides what is new; nothing else does.

One statement inserts a batch's events and bodies together and commits by itself, so a receiver that dies
or hangs never holds a key without its body, nor a key at all. Rows go in sorted by key: two receivers
with the same events in different order would deadlock otherwise. A concurrent twin waits on the unique
index until the first commits, and then finds its row a duplicate (READ COMMITTED).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import psycopg

from receiver.failpoints import reach
from receiver.ledger import upkeep

Key = tuple[str, str]
Row = tuple[str, str, int, str]


class Verdict(StrEnum):
    """What the ledger made of an arriving event."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event on its way in; text is free of NUL and lone surrogates, `event_id` at most 255 bytes.

    `fingerprint` is the SHA-256 of the body without what the provider calls volatile. `body` is the
    delivery's raw bytes, or the element's own where `is_element`. `hold_repeats`: store as held, not run,
    if another event of the source has the same fingerprint (only looked for where the id is unsigned).
    `traceparent` (W3C) is the delivery's span, where deliveries are traced.
    """

    source: str
    provider: str
    event_id: str
    type: str
    account: str | None
    fingerprint: bytes
    id_is_signed: bool
    occurred_at: datetime | None
    url: str
    headers: str
    body: bytes
    is_element: bool = False
    is_readable: bool = True
    hold_repeats: bool = False
    key_id: str | None = None
    traceparent: str | None = None

    @property
    def key(self) -> Key:
        """The pair that makes an event unique."""
        return (self.source, self.event_id)


@dataclass(frozen=True, slots=True)
class Stored:
    """The ledger's answer for one event: its row and the fingerprint that row keeps."""

    id: int
    verdict: Verdict
    fingerprint: bytes


_INSERT = """
WITH incoming AS MATERIALIZED (
    SELECT *
    FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::bytea[], %b::bool[],
                %b::timestamptz[], %b::text[], %b::text[], %b::bytea[], %b::bool[], %b::bool[], %b::bool[],
                %b::text[], %b::text[])
         AS t (source, provider, event_id, type, account, fingerprint, id_is_signed,
               occurred_at, url, headers, body, is_element, is_readable, hold_repeats, key_id,
               traceparent)
), judged AS (
    SELECT i.*, CASE WHEN NOT i.id_is_signed THEN
        (SELECT min(e.id) FROM events e
         WHERE e.source = i.source AND e.fingerprint = i.fingerprint AND NOT e.id_is_signed) END AS repeat_of
    FROM incoming i
), stored AS (
    INSERT INTO events (source, provider, event_id, type, account, fingerprint, id_is_signed,
                        occurred_at, repeat_of, status, due_at)
    SELECT source, provider, event_id, type, account, fingerprint, id_is_signed, occurred_at, repeat_of,
           CASE WHEN NOT is_readable THEN 'dead'
                WHEN hold_repeats AND repeat_of IS NOT NULL THEN 'held'
                ELSE 'received' END,
           CASE WHEN is_readable AND NOT (hold_repeats AND repeat_of IS NOT NULL) THEN now() END
    FROM judged ORDER BY source, event_id
    ON CONFLICT (source, event_id) DO NOTHING
    RETURNING id, source, event_id, received_at, status
), kept AS (
    INSERT INTO bodies (event, received_at, url, headers, body, is_element, key_id, traceparent)
    SELECT s.id, s.received_at, i.url, i.headers::json, i.body, i.is_element, i.key_id, i.traceparent
    FROM stored s JOIN incoming i USING (source, event_id)
)
SELECT source, event_id, id, status FROM stored
"""

_FIND = """
SELECT e.source, e.event_id, e.id, e.fingerprint
FROM unnest(%b::text[], %b::text[]) AS k (source, event_id) JOIN events e USING (source, event_id)
"""

_CONFLICT = """
INSERT INTO conflicts (event, fingerprint, headers, body, key_id) VALUES (%b, %b, %b::text::json, %b, %b)
ON CONFLICT (event, fingerprint) DO UPDATE SET deliveries = conflicts.deliveries + 1, last_at = now()
"""

_LOCK_FINGERPRINT = "SELECT pg_advisory_xact_lock(hashtextextended(%b, 0))"


def store(connection: psycopg.Connection, batch: Sequence[NewEvent]) -> dict[Key, Stored]:
    """Insert what is new and tell, for every key of the batch, what the ledger now holds.

    Keys must be distinct. Committed when it returns. An event whose key is taken by another body is a
    `CONFLICT`: the row stays as it is, the other body is kept in `conflicts`.
    """
    answers = _insert(connection, batch)
    known = [event for event in batch if event.key not in answers]
    if known:
        answers |= _compare(connection, known)
    return answers


def _insert(connection: psycopg.Connection, batch: Sequence[NewEvent]) -> dict[Key, Stored]:
    try:
        rows = _rows(connection, batch)
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name:  # else no partition takes the row; the text may be in any language
            raise
        _make_partitions(connection)
        rows = _rows(connection, batch)
    fingerprints = {event.key: event.fingerprint for event in batch}
    return {
        (source, event_id): Stored(
            row_id, Verdict.HELD if status == "held" else Verdict.ACCEPTED, fingerprints[source, event_id]
        )
        for source, event_id, row_id, status in rows
    }


def _rows(connection: psycopg.Connection, batch: Sequence[NewEvent]) -> list[Row]:
    guarded = sorted({e.fingerprint.hex() + e.source for e in batch if e.hold_repeats and not e.id_is_signed})
    if guarded:
        return _insert_guarded(connection, batch, guarded)
    return connection.execute(_INSERT, _columns(batch), prepare=True).fetchall()


def _insert_guarded(
    connection: psycopg.Connection, batch: Sequence[NewEvent], guarded: Iterable[str]
) -> list[Row]:
    """Insert while holding one lock per fingerprint: two equal bodies at once must not both look first."""
    with connection.transaction():
        for name in guarded:
            connection.execute(_LOCK_FINGERPRINT, [name])
        rows = connection.execute(_INSERT, _columns(batch)).fetchall()
        reach("ledger.inserted")
        return rows


def _compare(connection: psycopg.Connection, known: Sequence[NewEvent]) -> dict[Key, Stored]:
    keys = [event.key for event in known]
    rows = connection.execute(_FIND, [[k[0] for k in keys], [k[1] for k in keys]], prepare=True).fetchall()
    held = {
        (source, event_id): (row_id, bytes(fingerprint)) for source, event_id, row_id, fingerprint in rows
    }
    answers: dict[Key, Stored] = {}
    for event in known:
        if event.key not in held:  # pruned between the two statements: it is new after all
            answers |= store(connection, [event])
            continue
        row_id, fingerprint = held[event.key]
        verdict = Verdict.DUPLICATE
        if fingerprint != event.fingerprint:
            connection.execute(
                _CONFLICT, [row_id, event.fingerprint, event.headers, event.body, event.key_id]
            )
            reach("conflict.recorded")
            verdict = Verdict.CONFLICT
        answers[event.key] = Stored(row_id, verdict, fingerprint)
    return answers


def _columns(batch: Sequence[NewEvent]) -> list[list[object]]:
    return [
        [event.source for event in batch],
        [event.provider for event in batch],
        [event.event_id for event in batch],
        [event.type for event in batch],
        [event.account for event in batch],
        [event.fingerprint for event in batch],
        [event.id_is_signed for event in batch],
        [event.occurred_at for event in batch],
        [event.url for event in batch],
        [event.headers for event in batch],
        [event.body for event in batch],
        [event.is_element for event in batch],
        [event.is_readable for event in batch],
        [event.hold_repeats for event in batch],
        [event.key_id for event in batch],
        [event.traceparent for event in batch],
    ]


def _make_partitions(connection: psycopg.Connection) -> None:
    """Make the partitions that `db upgrade` and the sweep should have made in time."""
    today = connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date").fetchone()
    first = today[0] if today else datetime.now(UTC).date()
    for ahead in range(3):
        upkeep.make_partition(connection, first + timedelta(days=ahead))
