"""The handlers that workers know, as they say themselves at their start and now and then: nobody else can tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.rows import class_row

ANNOUNCED_TTL = timedelta(minutes=5)
"""How often it is written down again that a handler is still there."""
FORGOTTEN_AFTER = timedelta(days=1)
"""Until when a handler is shown that no worker names any more."""


@dataclass(frozen=True, slots=True)
class KnownHandler:
    """One pattern of one handler: its name, the source or provider, the pattern, and its limits.

    `batch` is how many events it takes at once, None if it takes one.
    """

    handler: str
    place: str
    pattern: str
    attempts: int
    timeout: timedelta
    batch: int | None
    announced_at: datetime


_ANNOUNCE = """
INSERT INTO hookonce.handlers (handler, place, pattern, attempts, timeout, batch)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::int[], %s::interval[], %s::int[]) AS t ORDER BY 1, 2, 3
ON CONFLICT (handler, place, pattern)
DO UPDATE SET attempts = excluded.attempts, timeout = excluded.timeout, batch = excluded.batch,
              announced_at = now()
WHERE handlers.announced_at < now() - %s::interval OR handlers.attempts <> excluded.attempts
      OR handlers.timeout <> excluded.timeout OR handlers.batch IS DISTINCT FROM excluded.batch
"""
_DESCRIBE = """
UPDATE hookonce.handlers SET models = t.models::json
FROM unnest(%s::text[], %s::text[]) AS t (handler, models)
WHERE handlers.handler = t.handler AND handlers.models::text IS DISTINCT FROM t.models
"""
_MODELS = "SELECT handler, models FROM hookonce.handlers WHERE handler = ANY(%s) AND models IS NOT NULL"
_FORGET = "DELETE FROM hookonce.handlers WHERE announced_at < now() - %s::interval"
_ANNOUNCED = """
SELECT handler, place, pattern, attempts, timeout, batch, announced_at FROM hookonce.handlers
ORDER BY handler, place, pattern
"""

Row = tuple[str, str, str, int, timedelta, int | None]


def register_handlers(
    connection: psycopg.Connection, rows: Iterable[Row], models: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write down handlers: (name, place, pattern, attempts, timeout, most events in a batch).

    `models`: what commands take and give, as JSON, by name.
    """
    known = {row[:3]: row for row in rows}
    columns = [list(column) for column in zip(*known.values(), strict=True)]
    with connection.transaction():
        if columns:
            connection.execute(_ANNOUNCE, [*columns, ANNOUNCED_TTL])
        if models:
            connection.execute(_DESCRIBE, [list(models), list(models.values())])
        connection.execute(_FORGET, [FORGOTTEN_AFTER])


def models_of(connection: psycopg.Connection, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what the handlers of commands take and give (JSON Schema), by name, as far as workers have said so."""
    return dict(connection.execute(_MODELS, [list(names)]).fetchall())


def known_handlers(connection: psycopg.Connection) -> list[KnownHandler]:
    """Return what workers announced lately, by handler."""
    with connection.cursor(row_factory=class_row(KnownHandler)) as cursor:
        return cursor.execute(_ANNOUNCED).fetchall()
