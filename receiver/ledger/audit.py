"""What people did: written with every change, read newest first."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row


@dataclass(frozen=True, slots=True)
class Change:
    """One thing somebody did, and to what."""

    id: int
    at: datetime
    who: str
    action: str
    subject: str
    detail: Any


_NOTE = "INSERT INTO audit (who, action, subject, detail) VALUES (%s, %s, %s, %s::json)"
_LATEST = """
SELECT id, at, who, action, subject, detail FROM audit
WHERE %(before)s::bigint IS NULL OR id < %(before)s ORDER BY id DESC LIMIT %(limit)s
"""

# A link's id is kept where keys of requests are, for as long: a day, and so longer than any link is good for.
_USE_LINK = """
INSERT INTO idempotency (token, key, fingerprint, status) VALUES ('sign-in link', %s, '', 200)
ON CONFLICT DO NOTHING RETURNING key
"""


def note(
    connection: psycopg.Connection,
    who: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Write down that somebody did something."""
    connection.execute(_NOTE, [who, action, subject, json.dumps(dict(detail or {}))])


def latest(connection: psycopg.Connection, limit: int, before: int | None = None) -> list[Change]:
    """Give the newest changes, those with ids below `before`."""
    with connection.cursor(row_factory=class_row(Change)) as cursor:
        return cursor.execute(_LATEST, {"limit": limit, "before": before}).fetchall()


def use_link(connection: psycopg.Connection, link: str) -> bool:
    """Take a one-time sign-in link; False if somebody did before."""
    return connection.execute(_USE_LINK, [link]).fetchone() is not None
