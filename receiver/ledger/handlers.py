"""The handlers that workers know, as they say themselves at their start and now and then: nobody else can tell."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg.rows import class_row

ANNOUNCED_TTL = timedelta(minutes=5)
"""How often it is written down again that a handler is still there."""
FORGOTTEN_AFTER = timedelta(days=1)
"""Until when a handler is shown that no worker names any more."""


@dataclass(frozen=True, slots=True)
class KnownHandler:
    """One pattern of one handler: its name, the source or provider, the pattern, and its limits."""

    handler: str
    place: str
    pattern: str
    attempts: int
    timeout: timedelta
    announced_at: datetime


_ANNOUNCE = """
INSERT INTO hookonce.handlers (handler, place, pattern, attempts, timeout)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::int[], %s::interval[]) AS t ORDER BY 1, 2, 3
ON CONFLICT (handler, place, pattern)
DO UPDATE SET attempts = excluded.attempts, timeout = excluded.timeout, announced_at = now()
WHERE handlers.announced_at < now() - %s::interval OR handlers.attempts <> excluded.attempts
      OR handlers.timeout <> excluded.timeout
"""
_FORGET = "DELETE FROM hookonce.handlers WHERE announced_at < now() - %s::interval"
_ANNOUNCED = """
SELECT handler, place, pattern, attempts, timeout, announced_at FROM hookonce.handlers ORDER BY handler, place, pattern
"""

Row = tuple[str, str, str, int, timedelta]


def register_handlers(connection: psycopg.Connection, rows: Iterable[Row]) -> None:
    """Write down handlers: (name, place, pattern, attempts, timeout)."""
    known = {row[:3]: row for row in rows}
    columns = [list(column) for column in zip(*known.values(), strict=True)]
    with connection.transaction():
        if columns:
            connection.execute(_ANNOUNCE, [*columns, ANNOUNCED_TTL])
        connection.execute(_FORGET, [FORGOTTEN_AFTER])


def known_handlers(connection: psycopg.Connection) -> list[KnownHandler]:
    """Return what workers announced lately, by handler."""
    with connection.cursor(row_factory=class_row(KnownHandler)) as cursor:
        return cursor.execute(_ANNOUNCED).fetchall()
