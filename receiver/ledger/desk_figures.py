"""Figures of handlers and sources over what is recent: bounded, so as quick with millions of events as with few."""

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.rows import class_row

RUNS = 20_000
"""The newest runs, which the figures of handlers are about."""
_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class HandlerFigures:
    """A handler's newest runs: by status, the attempts among them, how long (seconds) the last attempts took."""

    handler: str
    runs: int
    done: int
    open: int
    dead: int
    attempts: int
    failed: int
    p50: float | None
    p99: float | None
    latest: datetime | None

    @property
    def failure_rate(self) -> float:
        """The share of attempts that failed."""
        return self.failed / self.attempts if self.attempts else 0.0


_HANDLERS = """
WITH recent AS MATERIALIZED (
    SELECT handler, status, attempts, started_at, finished_at,
           extract(epoch FROM finished_at - started_at)::float AS took
    FROM runs ORDER BY event DESC, handler DESC LIMIT %s
)
SELECT handler, count(*) AS runs, count(*) FILTER (WHERE status = 'done') AS done,
       count(*) FILTER (WHERE status IN ('waiting', 'running')) AS open,
       count(*) FILTER (WHERE status = 'dead') AS dead, sum(attempts)::int AS attempts,
       sum(greatest(attempts - CASE WHEN status IN ('done', 'running') THEN 1 ELSE 0 END, 0))::int AS failed,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY took) AS p50,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY took) AS p99, max(started_at) AS latest
FROM recent GROUP BY handler ORDER BY handler
"""

_LATEST = """
SELECT source, max(received_at) FROM (SELECT source, received_at FROM events ORDER BY id DESC LIMIT %s) AS newest
GROUP BY source
"""


def handlers(connection: psycopg.Connection) -> list[HandlerFigures]:
    """Sum up the newest `RUNS` runs by handler."""
    with connection.cursor(row_factory=class_row(HandlerFigures)) as cursor:
        return cursor.execute(_HANDLERS, [RUNS]).fetchall()


def latest(connection: psycopg.Connection) -> dict[str, datetime]:
    """Say when sources last sent an event, those that did among the newest thousand."""
    return {row[0]: row[1] for row in connection.execute(_LATEST, [_EVENTS])}
