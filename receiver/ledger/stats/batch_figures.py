"""What became of batches, by handler: counted in the transactions that end them."""

from typing import NamedTuple

import psycopg


class BatchFigures(NamedTuple):
    """What became of the batches of a handler.

    `size`: of the next, None while it is not halved. `waiting`: parts of batches that are to be tried by themselves.
    """

    batches: int = 0
    events: int = 0
    halvings: int = 0
    size: int | None = None
    waiting: int = 0
    error: str | None = None


_COUNT_ENDED = """
INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings) VALUES (%s, 1, %s, 0)
ON CONFLICT (handler) DO UPDATE SET batches = c.batches + 1, events = c.events + excluded.events
"""
_COUNT_HALVING = """
INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings) VALUES (%s, 0, 0, 1)
ON CONFLICT (handler) DO UPDATE SET halvings = c.halvings + 1
"""
_FIGURES = """
SELECT handler, coalesce(c.batches, 0), coalesce(c.events, 0), coalesce(c.halvings, 0), g.size, coalesce(g.waiting, 0),
       g.error
FROM hookonce.batch_counts c FULL JOIN (
    SELECT handler, min(cardinality(events)) AS size, count(*) AS waiting, max(error) AS error
    FROM hookonce.batches GROUP BY handler) AS g USING (handler)
ORDER BY handler
"""


def figures(connection: psycopg.Connection) -> dict[str, BatchFigures]:
    """Return what became of batches, by handler."""
    return {handler: BatchFigures(*row) for handler, *row in connection.execute(_FIGURES)}


def count_ended(connection: psycopg.Connection, handler: str, events: int) -> None:
    """Count a batch whose end does not do so: of one event, or in Django's transaction."""
    connection.execute(_COUNT_ENDED, [handler, events], prepare=True)


def count_halving(connection: psycopg.Connection, handler: str) -> None:
    """Count a batch that is taken apart into halves."""
    connection.execute(_COUNT_HALVING, [handler])
