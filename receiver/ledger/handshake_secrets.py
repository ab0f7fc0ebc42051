"""Secrets that senders hand out with a probe, one per source; the only secrets hookonce keeps itself.

The first one stays: whoever can reach a source's URL can send such a probe, so only an operator makes room
for another.
"""

from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from hookonce.receiver.ledger.access import audit_log

_KEEP = "INSERT INTO hookonce.handed_secrets (source, secret) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING source"
_KEPT = "SELECT secret FROM hookonce.handed_secrets WHERE source = %s"
_ALL = "SELECT source, secret, handed_at FROM hookonce.handed_secrets ORDER BY source"
_FORGET = "DELETE FROM hookonce.handed_secrets WHERE source = %s RETURNING source"


@dataclass(frozen=True, slots=True)
class Handed:
    """A secret as it is kept."""

    source: str
    secret: str = field(repr=False)
    at: datetime


def keep(connection: psycopg.Connection, source: str, secret: str) -> bool:
    """Keep a secret unless the source has one; return whether it is kept by this call. Committed when it returns."""
    return connection.execute(_KEEP, [source, secret]).fetchone() is not None


def kept(connection: psycopg.Connection, source: str) -> str | None:
    """Return the secret that is kept for a source."""
    row = connection.execute(_KEPT, [source]).fetchone()
    return str(row[0]) if row else None


def all_kept(connection: psycopg.Connection) -> list[Handed]:
    """Return what is kept, by source."""
    return [Handed(*row) for row in connection.execute(_ALL)]


def forget(connection: psycopg.Connection, source: str, who: str) -> bool:
    """Make room for another secret; return whether one was kept. Audited."""
    with connection.transaction():
        was_kept = connection.execute(_FORGET, [source]).fetchone() is not None
        if was_kept:
            audit_log.note(connection, who, "forget secret", f"source {source}")
    return was_kept
