"""What became of batches, by handler: counted in the transactions that end them."""

from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.states import Waits


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
INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings, error) VALUES (%s, 0, 0, 1, %s)
ON CONFLICT (handler) DO UPDATE SET halvings = c.halvings + 1, error = excluded.error
"""
_FIGURES = f"""
SELECT handler, coalesce(c.batches, 0), coalesce(c.events, 0), coalesce(c.halvings, 0), g.size, coalesce(g.waiting, 0),
       CASE WHEN g.waiting > 0 THEN c.error END
FROM hookonce.batch_counts c FULL JOIN (
    SELECT handler, min(size) AS size, count(*) AS waiting FROM (
        SELECT waiting_handler AS handler, count(*) AS size FROM hookonce.queue
        WHERE waits > '{Waits.BATCH}:' AND waits < '{Waits.BATCH};' AND token IS NULL
        GROUP BY waits, waiting_handler) AS parts
    GROUP BY handler) AS g USING (handler)
ORDER BY handler
"""  # noqa: S608  constants


def figures(connection: psycopg.Connection) -> dict[str, BatchFigures]:
    """Return what became of batches, by handler."""
    return {handler: BatchFigures(*row) for handler, *row in connection.execute(_FIGURES)}


def count_ended(connection: psycopg.Connection, handler: str, events: int) -> None:
    """Count a batch whose end does not do so: of one event, or in Django's transaction."""
    connection.execute(_COUNT_ENDED, [handler, events], prepare=True)


def count_halving(connection: psycopg.Connection, handler: str, error: str | None) -> None:
    """Count a batch that is taken apart into halves, by an error if that is known."""
    connection.execute(_COUNT_HALVING, [handler, error])
