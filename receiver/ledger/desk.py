"""What an operator looks up: events, one event in full, rejected deliveries, conflicts. Reads only."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from receiver.ledger.desk_filter import MATCHES
from receiver.ledger.desk_filter import Filter as Filter  # noqa: PLC0414  whoever looks events up has it from here
from receiver.ledger.desk_scan import extent
from receiver.ledger.opened import Body, StoredBody, open_body, open_conflict, open_rejected
from receiver.sealing import Keyring

PAGE = 10_000
"""Rows of one page; of events, ids."""
STRETCHES = (100_000, 1_000_000)
"""Of ids, the newest ones first, that are walked down; among those below, all that match are found and sorted."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One row of the ledger."""

    id: int
    source: str
    provider: str
    event_id: str
    type: str
    account: str | None
    status: str
    due_at: datetime | None
    received_at: datetime
    occurred_at: datetime | None
    deliveries: int
    repeat_of: int | None


@dataclass(frozen=True, slots=True)
class RunRow:
    """One handler's run; `error` is that of the latest failed attempt, unless the run is done.

    A `result` nested deeper than most writers of JSON go is its text.
    """

    handler: str
    status: str
    attempts: int
    cycle: int
    due_at: datetime | None
    lease_until: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    result: Any
    error: str | None

    def __post_init__(self) -> None:
        if _is_deep(self.result):
            object.__setattr__(self, "result", json.dumps(self.result))


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything the ledger knows of an event; `body` is None once retention has dropped it."""

    event: EventRow
    body: Body | None
    runs: list[RunRow]
    failures: list[dict[str, Any]]
    conflicts: list[dict[str, Any]]
    repeats: list[int]


_DEEP = 100


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEP):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [
            each
            for found in inner
            if not isinstance(found, str) and isinstance(found, Iterable)
            for each in found
        ]
    return bool(level)


COLUMNS = """id, source, provider, event_id, type, account, status, due_at, received_at, occurred_at, deliveries,
repeat_of"""

# Events of a range of ids, newest first: ids grow with time, so the primary key gives the order, and the walk down it
# ends with the last row that is wanted.
_NEAR = f"""
SELECT {COLUMNS} FROM events WHERE {MATCHES} AND id >= %(low)s AND id < %(top)s ORDER BY id DESC LIMIT %(limit)s
"""  # noqa: S608  constants of this module

# The same, all matches found first: asked for the order of the primary key, PostgreSQL would walk down it, row by row,
# however long nothing matches.
_FAR = _NEAR.replace("ORDER BY id DESC", "ORDER BY id + 0 DESC")

_EVENT = f"SELECT {COLUMNS} FROM events WHERE id = %s"  # noqa: S608  a constant of this module

_BODY = """
SELECT b.url, b.headers, b.body, b.key_id, e.source, e.event_id, e.fingerprint
FROM bodies b JOIN events e ON e.id = b.event WHERE b.event = %s AND b.received_at = %s
"""

_RUNS = """
SELECT r.handler, r.status, r.attempts, r.cycle, r.due_at, r.lease_until, r.started_at, r.finished_at, r.result,
       CASE WHEN r.status <> 'done' THEN
           (SELECT f.error FROM failures f WHERE f.event = r.event AND f.handler = r.handler ORDER BY f.id DESC LIMIT 1)
       END AS error
FROM runs r WHERE r.event = %s ORDER BY r.handler
"""

_FAILURES = "SELECT handler, cycle, attempt, failed_at, error FROM failures WHERE event = %s ORDER BY id"

_CONFLICTS_OF = """
SELECT id, first_at, last_at, deliveries, headers, body, key_id, fingerprint FROM conflicts
WHERE event = %s ORDER BY id
"""

# By what repeats have in common, which there is an index for: of events whose ids are not signed.
_REPEATS = """
SELECT r.id FROM events e JOIN events r ON r.source = e.source AND r.fingerprint = e.fingerprint
WHERE e.id = %s AND NOT r.id_is_signed AND r.repeat_of = e.id ORDER BY r.id LIMIT 100
"""

_REJECTED = """
SELECT id, rejected_at, source, reason, detail, headers, body_prefix, key_id FROM rejected
WHERE (%(source)s::text IS NULL OR source = %(source)s) AND (%(reason)s::text IS NULL OR reason = %(reason)s)
      AND (%(since)s::timestamptz IS NULL OR rejected_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR rejected_at < %(until)s)
      AND (%(before)s::bigint IS NULL OR id < %(before)s)
ORDER BY id DESC LIMIT %(limit)s
"""

_CONFLICTS = """
SELECT c.id, c.event, e.source, e.event_id, e.type, c.first_at, c.last_at, c.deliveries,
       octet_length(c.body) - CASE WHEN c.key_id IS NULL THEN 0 ELSE 28 END AS bytes  -- a nonce and a tag
FROM conflicts c JOIN events e ON e.id = c.event
WHERE (%(source)s::text IS NULL OR e.source = %(source)s)
      AND (%(since)s::timestamptz IS NULL OR c.last_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR c.last_at < %(until)s)
      AND (%(before)s::bigint IS NULL OR c.id < %(before)s)
ORDER BY c.id DESC LIMIT %(limit)s
"""


def events(
    connection: psycopg.Connection, wanted: Filter, limit: int = 0, before: int | None = None
) -> Iterator[EventRow]:
    """Give matching events, newest first, those with ids below `before`.

    `limit` 0 gives all, a range of ids at a time, so memory stays small.
    """
    low, top = extent(connection, wanted, before)
    with connection.cursor(row_factory=class_row(EventRow)) as cursor:

        def matching(query: str, low: int, top: int, limit: int | None) -> list[EventRow]:
            page = wanted.parameters | {"low": low, "top": top, "limit": limit}
            return cursor.execute(query.encode(), page, prepare=False).fetchall()

        if not limit:
            for end in range(top, low, -PAGE):
                yield from matching(_NEAR, max(end - PAGE, low), end, None)
            return
        for query, stretch in [*((_NEAR, ids) for ids in STRETCHES), (_FAR, top)]:
            if top <= low or not limit:
                return
            end, top = top, max(top - stretch, low)
            rows = matching(query, top, end, limit)
            limit -= len(rows)
            yield from rows


def detail(connection: psycopg.Connection, event: int, keyring: Keyring) -> Detail | None:
    """Give everything known of an event as of one moment, opened; None where it is gone."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        with connection.cursor(row_factory=class_row(EventRow)) as cursor:
            row = cursor.execute(_EVENT, [event]).fetchone()
        if row is None:
            return None
        with connection.cursor(row_factory=class_row(StoredBody)) as cursor:
            body = cursor.execute(_BODY, [event, row.received_at]).fetchone()
        with connection.cursor(row_factory=class_row(RunRow)) as cursor:
            runs = cursor.execute(_RUNS, [event]).fetchall()
        with connection.cursor(row_factory=dict_row) as cursor:
            failures = cursor.execute(_FAILURES, [event]).fetchall()
            others = cursor.execute(_CONFLICTS_OF, [event]).fetchall()
        repeats = [found[0] for found in connection.execute(_REPEATS, [event])]
    conflicts = [open_conflict(keyring, row.source, row.event_id, other) for other in others]
    return Detail(row, open_body(keyring, body), runs, failures, conflicts, repeats)


def rejected(  # noqa: PLR0913  all but two by keyword
    connection: psycopg.Connection,
    keyring: Keyring,
    *,
    source: str | None = None,
    reason: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 0,
    before: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Give rejected deliveries that were kept, opened, newest first, those with ids below `before`.

    `limit` 0 gives all.
    """
    wanted: dict[str, object] = {"source": source, "reason": reason, "since": since, "until": until}
    return (open_rejected(keyring, row) for row in _paged(connection, _REJECTED, wanted, limit, before))


def conflicts(  # noqa: PLR0913, PLR0917  all but four by keyword
    connection: psycopg.Connection,
    source: str | None,
    since: datetime | None,
    limit: int,
    before: int | None = None,
    until: datetime | None = None,
) -> Iterator[dict[str, Any]]:
    """Give the bodies that came under an id already taken by another body, newest first; pages as in `rejected`."""
    wanted: dict[str, object] = {"source": source, "since": since, "until": until}
    return _paged(connection, _CONFLICTS, wanted, limit, before)


def _paged(
    connection: psycopg.Connection, query: str, wanted: Mapping[str, object], limit: int, before: int | None
) -> Iterator[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        for size in _pages(limit):
            rows = cursor.execute(query.encode(), {**wanted, "before": before, "limit": size}).fetchall()
            yield from rows
            if len(rows) < size:
                return
            before = rows[-1]["id"]


def _pages(limit: int) -> Iterator[int]:
    """The sizes of the pages that give `limit` rows, or for ever."""
    left = limit
    while left > 0 or limit == 0:
        size = PAGE if limit == 0 else min(left, PAGE)
        yield size
        left -= size
