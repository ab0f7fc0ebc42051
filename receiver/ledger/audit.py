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

# The ids of links that were used, and of sessions that were ended, are kept where keys of requests are, for as
# long: a day, and so longer than any link or session is good for.
_USE_LINK = """
INSERT INTO idempotency (token, key, fingerprint, status) VALUES ('sign-in link', %s, '', 200)
ON CONFLICT DO NOTHING RETURNING key
"""

_END_SESSION = """
INSERT INTO idempotency (token, key, fingerprint, status) VALUES ('session', %s, '', 200) ON CONFLICT DO NOTHING
"""
_HAS_ENDED = "SELECT FROM idempotency WHERE token = 'session' AND key = %s"


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


def end_session(connection: psycopg.Connection, session: str) -> None:
    """End a session of the dashboard, whoever holds a copy of its cookie."""
    connection.execute(_END_SESSION, [session])


def has_ended(connection: psycopg.Connection, session: str) -> bool:
    """Tell whether somebody has signed out of a session."""
    return connection.execute(_HAS_ENDED, [session]).fetchone() is not None
