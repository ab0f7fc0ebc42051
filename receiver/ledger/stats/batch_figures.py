"""Outcomes of batches, by handler: counted in the transactions that end them."""

import psycopg
from psycopg.rows import class_row
from pydantic import Field

from hookonce.receiver.ledger.rows import Ours, ResponseModel
from hookonce.receiver.ledger.states import Waits


class BatchFigures(ResponseModel):
    """The outcomes of the batches of a handler that takes many events at once."""

    handler: Ours
    batches: int = Field(description="that succeeded")
    events: int = Field(description="in these")
    halvings: int = Field(description="batches that were split since they failed, or their worker died")
    size: int | None = Field(
        description="events of the smallest part that is to be tried by itself; null if there is none"
    )
    waiting: int = Field(description="parts that are to be tried by themselves")
    error: str | None = Field(description="by which they failed")


_COUNT_ENDED = """
INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings) VALUES (%s, 1, %s, 0)
ON CONFLICT (handler) DO UPDATE SET batches = c.batches + 1, events = c.events + excluded.events
"""
_COUNT_HALVING = """
INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings, error) VALUES (%s, 0, 0, 1, %s)
ON CONFLICT (handler) DO UPDATE SET halvings = c.halvings + 1, error = excluded.error
"""
_FIGURES = f"""
SELECT handler, coalesce(c.batches, 0) AS batches, coalesce(c.events, 0) AS events,
       coalesce(c.halvings, 0) AS halvings, g.size, coalesce(g.waiting, 0) AS waiting,
       CASE WHEN g.waiting > 0 THEN c.error END AS error
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
    with connection.cursor(row_factory=class_row(BatchFigures)) as cursor:
        return {each.handler: each for each in cursor.execute(_FIGURES)}


def count_ended(connection: psycopg.Connection, handler: str, events: int) -> None:
    """Count a batch whose end does not do so: of one event, or in Django's transaction."""
    connection.execute(_COUNT_ENDED, [handler, events], prepare=True)


def count_halving(connection: psycopg.Connection, handler: str, error: str | None) -> None:
    """Count a batch that is taken apart into halves, by an error if that is known."""
    connection.execute(_COUNT_HALVING, [handler, error])
