"""Parts of batches: rows of `batches`, whose events are to be tried by themselves.

A row is a hint, no lock: whoever claims a part deletes its row, and whatever of it can't be run goes back to all
others. It is kept for a day; then its runs are taken up as any.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.stats import batch_figures

FORGOTTEN_AFTER = timedelta(days=1)
"""How long a part is remembered that nobody comes for; its runs are taken up as any."""


class Part(NamedTuple):
    """A row of `batches`."""

    id: int
    events: list[int]


_PARTS = """
SELECT id, events FROM hookonce.batches WHERE handler = %s ORDER BY cardinality(events), id FOR UPDATE SKIP LOCKED
"""
_DELETE = "DELETE FROM hookonce.batches WHERE id = ANY(%s)"
_WRITE = "INSERT INTO hookonce.batches (handler, events, error) VALUES (%s, %s, %s)"
_FORGET = "DELETE FROM hookonce.batches WHERE made_at < now() - %s::interval"


def locked(connection: psycopg.Connection, handler: str) -> list[Part]:
    """Lock what is to be tried by itself, the smallest part first."""
    return [Part(*row) for row in connection.execute(_PARTS, [handler], prepare=True)]


def delete(connection: psycopg.Connection, ids: Sequence[int]) -> None:
    """Delete rows of `batches`, in the caller's transaction."""
    connection.execute(_DELETE, [list(ids)])


def halves(events: Sequence[int]) -> list[Sequence[int]]:
    """Return both halves of what failed together."""
    middle = (len(events) + 1) // 2
    return [events[:middle], events[middle:]]


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
    """Delete parts that nobody has come for in a long time. Safe in many processes at once."""
    connection.execute(_FORGET, [FORGOTTEN_AFTER])
