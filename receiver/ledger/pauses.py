"""Pauses what `receiver.ledger.reasons` has pauses of: deliveries are taken in all the same, runs wait.

A pause is a row, so it is instant whatever it stops; what it stops is parked by those who meet it, and made due again
when it ends: see `receiver.ledger.runs.parking`.
"""

import time
from datetime import datetime, timedelta
from typing import Literal

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.reasons import HANDLER, MATCHES, SOURCE
from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as
from hookonce.receiver.ledger.runs import breakers, parking

PATIENCE = timedelta(seconds=2)
"""How long a page or an API call makes due what was parked; what is left then, the sweep does."""

_PAUSE = "INSERT INTO hookonce.pauses (kind, name) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING name"
# Claims lock rows of `pauses` for a moment, one after another: who waits for a row would not be served in turn.
_IN_TURN = "LOCK TABLE hookonce.pauses IN EXCLUSIVE MODE"
_RESUME = "DELETE FROM hookonce.pauses WHERE kind = %s AND name = %s RETURNING name"
_PAUSED = """
SELECT kind, name, since, CASE WHEN kind = 'handler' AND EXISTS (
    SELECT FROM hookonce.breakers WHERE handler = name AND opened_at IS NOT NULL) THEN 'breaker' ELSE 'person' END AS by
FROM hookonce.pauses ORDER BY kind, name
"""
_KEEPING = f"""
SELECT DISTINCT kind, name FROM hookonce.queue, LATERAL (
    SELECT kind, name FROM hookonce.pauses WHERE {MATCHES} OFFSET 0) AS p
WHERE event = %s ORDER BY kind, name
"""  # noqa: S608  constants


class Pause(ResponseModel):
    """A pause: deliveries are taken in all the same, runs wait."""

    kind: Ours
    name: Ours
    by: Literal["person", "breaker"] = Field(
        description="`breaker`: the handler's own, which ends it when a try succeeds; pause it, and the pause is yours"
    )
    since: datetime


def paused(connection: psycopg.Connection) -> list[Pause]:
    """Return what is paused."""
    return all_as(Pause, connection, _PAUSED)


def by_handler(connection: psycopg.Connection) -> dict[str, Pause]:
    """Return the pauses of handlers."""
    return {each.name: each for each in paused(connection) if each.kind == HANDLER.kind}


def sources(connection: psycopg.Connection) -> set[str]:
    """Return the names of the sources that are paused."""
    return {each.name for each in paused(connection) if each.kind == SOURCE.kind}


def keeping(connection: psycopg.Connection, event: int) -> list[tuple[str, str]]:
    """Return what keeps the whole of an event waiting, or will as soon as a worker meets it: kinds and names."""
    return connection.execute(_KEEPING, [event]).fetchall()


def pause(connection: psycopg.Connection, kind: str, name: str, who: str) -> bool:
    """Begin a pause of one of `PAUSES`; return whether it was not paused before. Audited."""
    with connection.transaction():
        connection.execute(_IN_TURN)  # a breaker that closes meanwhile would end this pause as its own
        changed = connection.execute(_PAUSE, [kind, name]).fetchone() is not None
        if kind == HANDLER.kind and breakers.hand_over(connection, name):
            changed = True
        if changed:
            audit_log.note(connection, who, "pause", f"{kind} {name}")
    return changed


def resume(
    connection: psycopg.Connection, kind: str, name: str, who: str, patience: timedelta | None = None
) -> bool:
    """End a pause; return whether there was one. What waited is due at once, retries included. Audited.

    Not in a transaction of the caller's. With `patience`, a sweep makes due what could not be in that time.
    """
    until = time.monotonic() + patience.total_seconds() if patience else None
    with connection.transaction():
        connection.execute(_IN_TURN)
        was_paused = connection.execute(_RESUME, [kind, name]).fetchone() is not None
        if kind == HANDLER.kind:
            breakers.close(connection, name)
        if was_paused:
            audit_log.note(connection, who, "resume", f"{kind} {name}")
    parking.hasten(connection, kind, name)
    parking.unpark(connection, kind, name, until)
    return was_paused
