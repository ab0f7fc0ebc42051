"""Rejected deliveries that were kept, and conflicts: bodies that came under an id already taken."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.decryption import decrypt_rejected

PAGE_SIZE = 10_000

_REJECTED = """
SELECT id, rejected_at, source, reason, detail, headers, body_prefix, key_id FROM hookonce.rejected
WHERE (%(source)s::text IS NULL OR source = %(source)s) AND (%(reason)s::text IS NULL OR reason = %(reason)s)
      AND (%(since)s::timestamptz IS NULL OR rejected_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR rejected_at < %(until)s)
      AND (%(before)s::bigint IS NULL OR id < %(before)s)
ORDER BY id DESC LIMIT %(limit)s
"""


_CONFLICTS = """
SELECT c.id, c.event, e.source, e.event_id, e.type, c.first_at, c.last_at, c.deliveries,
       octet_length(c.body) - CASE WHEN c.key_id IS NULL THEN 0 ELSE 28 END AS bytes  -- a nonce and a tag
FROM hookonce.conflicts c JOIN hookonce.events e ON e.id = c.event
WHERE (%(source)s::text IS NULL OR e.source = %(source)s)
      AND (%(since)s::timestamptz IS NULL OR c.last_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR c.last_at < %(until)s)
      AND (%(before)s::bigint IS NULL OR c.id < %(before)s)
ORDER BY c.id DESC LIMIT %(limit)s
"""


def rejected_deliveries(  # noqa: PLR0913  all but two by keyword
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
    """Return rejected deliveries that were kept, opened, newest first, those with ids below `before`.

    `limit` 0 gives all.
    """
    wanted: dict[str, object] = {"source": source, "reason": reason, "since": since, "until": until}
    return (decrypt_rejected(keyring, row) for row in _paged(connection, _REJECTED, wanted, limit, before))


def conflicts(  # noqa: PLR0913, PLR0917  all but four by keyword
    connection: psycopg.Connection,
    source: str | None,
    since: datetime | None,
    limit: int,
    before: int | None = None,
    until: datetime | None = None,
) -> Iterator[dict[str, Any]]:
    """Return the bodies that came under an id taken by another, newest first; pages as in `rejected_deliveries`."""
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
        size = PAGE_SIZE if limit == 0 else min(left, PAGE_SIZE)
        yield size
        left -= size
