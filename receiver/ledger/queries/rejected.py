"""Rejected deliveries that were kept, and conflicts: bodies that came under an id already taken."""

from datetime import datetime
from typing import Any, TypedDict, Unpack

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.rejected import Rejection, opened_rejection
from hookonce.receiver.ledger.rows import MAX_ID

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


class Wanted(TypedDict, total=False):
    """Which rows, `before` an id; what is None or left out takes all. A conflict has no `reason`."""

    source: str | None
    reason: str | None
    since: datetime | None
    until: datetime | None
    before: int | None


def rejected_deliveries(
    connection: psycopg.Connection, keyring: Keyring, limit: int, **wanted: Unpack[Wanted]
) -> list[Rejection]:
    """Return rejected deliveries that were kept, newest first; the desk knows what to do about them."""
    return [opened_rejection(keyring, row) for row in _rows(connection, _REJECTED, limit, wanted)]


def rejected_delivery(connection: psycopg.Connection, keyring: Keyring, number: int) -> Rejection | None:
    """Return a rejected delivery; None where it is not kept any more."""
    found = rejected_deliveries(connection, keyring, before=min(number, MAX_ID - 1) + 1, limit=1)
    return found[0] if found and found[0].id == number else None


def conflicts(connection: psycopg.Connection, limit: int, **wanted: Unpack[Wanted]) -> list[dict[str, Any]]:
    """Return the bodies that came under an id taken by another, newest first."""
    return _rows(connection, _CONFLICTS, limit, wanted)


def _rows(connection: psycopg.Connection, query: str, limit: int, wanted: Wanted) -> list[dict[str, Any]]:
    values = {**dict.fromkeys(Wanted.__annotations__), **wanted, "limit": limit}
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query.encode(), values).fetchall()
