"""Parts of batches: rows of `batches` that nobody is at, to be tried by themselves; and batches that were lost.

A row is a hint, no lock: whoever claims a part deletes its row, and whatever of it can't be run goes back to all
others. It is kept for a day; then its runs are taken up as any.
"""

import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.runs import event_status
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import batch_figures, counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

FORGOTTEN_AFTER = timedelta(days=1)
"""How long a batch is remembered that nobody comes for; its runs are taken up as any."""


class Part(NamedTuple):
    """A row of `batches` that nobody is at."""

    id: int
    events: list[int]
    token: uuid.UUID | None
    is_lost: bool


_PARTS = """
SELECT id, events, token, token IS NOT NULL FROM hookonce.batches
WHERE handler = %s AND (token IS NULL OR lease_until <= now()) ORDER BY cardinality(events), id
FOR UPDATE SKIP LOCKED
"""
_DELETE = "DELETE FROM hookonce.batches WHERE id = ANY(%s)"

_LET_GO = f"""
UPDATE hookonce.runs SET status = '{RunStatus.WAITING}', token = NULL, lease_until = NULL, due_at = now() + %(delay)s
WHERE event = ANY(%(events)s) AND handler = %(handler)s AND token = %(token)s AND status = '{RunStatus.RUNNING}'
RETURNING event
"""  # noqa: S608  constants
_SOURCES = "SELECT DISTINCT source FROM hookonce.events WHERE id = ANY(%s) ORDER BY source"
_WRITE = "INSERT INTO hookonce.batches (handler, events, error) VALUES (%s, %s, %s)"
_FORGET = "DELETE FROM hookonce.batches WHERE coalesce(lease_until, made_at) < now() - %s::interval"


def locked(connection: psycopg.Connection, handler: str) -> list[Part]:
    """Lock what nobody is at: parts of batches to be tried by themselves, smallest first, and lost batches."""
    return [Part(*row) for row in connection.execute(_PARTS, [handler], prepare=True)]


def delete(connection: psycopg.Connection, ids: Sequence[int]) -> None:
    """Delete rows of `batches`, in the caller's transaction."""
    connection.execute(_DELETE, [list(ids)])


def halve_lost(connection: psycopg.Connection, handler: str, parts: Sequence[Part], error: str) -> None:
    """Take batches apart whose worker has gone, or was too slow; in the caller's transaction."""
    recovered: Counter[Tally] = Counter()
    for part in parts:
        delete(connection, [part.id])
        connection.execute(event_status.LOCK_EVENTS, [part.events])
        if part.token is not None:
            lost = let_go(connection, handler, part.token, part.events, timedelta(0))
            sources = connection.execute(_SOURCES, [lost])
            recovered.update(Tally(Kind.RECOVERED, source, "again") for (source,) in sources)
        write(connection, handler, halves(part.events), error)
        connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": part.events})
    if recovered:  # behind the last lock on events: claims lock theirs first, too
        counters.add(connection, recovered)


def halves(events: Sequence[int]) -> list[Sequence[int]]:
    """Return both halves of what failed together."""
    middle = (len(events) + 1) // 2
    return [events[:middle], events[middle:]]


def let_go(
    connection: psycopg.Connection, handler: str, token: uuid.UUID, events: Sequence[int], delay: timedelta
) -> list[int]:
    """Have those of these runs wait that are under a token; return their events. In the caller's transaction."""
    values = {"events": list(events), "handler": handler, "token": token, "delay": delay}
    return [event for (event,) in connection.execute(_LET_GO, values)]


def write(
    connection: psycopg.Connection, handler: str, parts: Sequence[Sequence[int]], error: str | None
) -> None:
    """Write down what is to be tried by itself, in the caller's transaction; two parts are a halving."""
    for part in parts:
        if part:
            connection.execute(_WRITE, [handler, list(part), error])
    if len(parts) > 1:
        batch_figures.count_halving(connection, handler)


def forget(connection: psycopg.Connection) -> None:
    """Delete rows of batches that nobody has come for in a long time. Safe in many processes at once."""
    connection.execute(_FORGET, [FORGOTTEN_AFTER])
