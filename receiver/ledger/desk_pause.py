"""Pauses sources and handlers: deliveries are taken in all the same, runs wait."""

import psycopg

from receiver.ledger import audit
from receiver.ledger.runs import DERIVE, LOCK

BATCH = 500
RECENT = 10_000
"""Runs looked at for the names of handlers; there is no index by handler, and an operator asks of living ones."""

_PAUSE = "INSERT INTO pauses (kind, name) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING name"
_RESUME = "DELETE FROM pauses WHERE kind = %s AND name = %s RETURNING name"
_PAUSED = "SELECT kind, name FROM pauses ORDER BY kind, name"
_HANDLERS = """
SELECT DISTINCT handler FROM (SELECT handler FROM runs ORDER BY event DESC LIMIT %s) AS recent ORDER BY handler
"""

_PUT_OFF = """
SELECT event FROM runs
WHERE handler = %s AND status = 'waiting' AND token IS NULL AND due_at > now() AND event > %s
ORDER BY event LIMIT %s
"""
_HASTEN = """
UPDATE runs SET due_at = now() WHERE event = ANY(%s) AND handler = %s AND status = 'waiting' AND token IS NULL
"""


def paused(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """List what is paused, as (kind, name)."""
    return connection.execute(_PAUSED).fetchall()


def handlers(connection: psycopg.Connection) -> list[str]:
    """Name the handlers of recent runs."""
    return [row[0] for row in connection.execute(_HANDLERS, [RECENT])]


def pause(connection: psycopg.Connection, kind: str, name: str, who: str) -> bool:
    """Pause a `source` or a `handler`; tell whether it was not paused before. Audited."""
    with connection.transaction():
        changed = connection.execute(_PAUSE, [kind, name]).fetchone() is not None
        if changed:
            audit.note(connection, who, "pause", f"{kind} {name}")
    return changed


def resume(connection: psycopg.Connection, kind: str, name: str, who: str) -> bool:
    """End a pause; tell whether there was one. A handler's waiting runs are due at once. Audited."""
    with connection.transaction():
        was_paused = connection.execute(_RESUME, [kind, name]).fetchone() is not None
        if was_paused:
            audit.note(connection, who, "resume", f"{kind} {name}")
    if kind == "handler":
        _hasten(connection, name)
    return was_paused


def _hasten(connection: psycopg.Connection, handler: str) -> None:
    last = 0
    while events := [row[0] for row in connection.execute(_PUT_OFF, [handler, last, BATCH])]:
        with connection.transaction():
            connection.execute(LOCK, [events])
            connection.execute(_HASTEN, [events, handler])
            connection.execute(DERIVE, {"events": events})
        last = events[-1]
