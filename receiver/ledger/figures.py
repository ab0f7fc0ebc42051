"""The numbers an operator watches."""

from datetime import datetime

import psycopg

_EVENTS = "SELECT source, status, count(*) FROM events GROUP BY source, status ORDER BY source, status"
_REJECTIONS = "SELECT source, reason, count FROM rejections ORDER BY source, reason"
_SECRETS = "SELECT source, slot, count, last_at FROM secret_use ORDER BY source, slot"
_OLDEST_DUE = "SELECT coalesce(extract(epoch FROM now() - min(due_at)), 0) FROM events WHERE due_at <= now()"
_CONFLICTS = "SELECT count(*) FROM conflicts"


def events_by_status(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count the ledger's events by source and status."""
    return connection.execute(_EVENTS).fetchall()


def rejections(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count refused deliveries by source ('' where no source has the name) and reason, since ever."""
    return connection.execute(_REJECTIONS).fetchall()


def secrets(connection: psycopg.Connection) -> list[tuple[str, int, int, datetime]]:
    """Count deliveries by source and by the slot (from 1) of the secret that verified them, and say when last."""
    return connection.execute(_SECRETS).fetchall()


def oldest_due(connection: psycopg.Connection) -> float:
    """Say how many seconds the longest-waiting due event has been due; 0 where none is."""
    row = connection.execute(_OLDEST_DUE).fetchone()
    return float(row[0]) if row else 0.0


def conflicts(connection: psycopg.Connection) -> int:
    """Count the (event, other body) pairs."""
    row = connection.execute(_CONFLICTS).fetchone()
    return int(row[0]) if row else 0
