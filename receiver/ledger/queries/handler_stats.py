"""Figures of handlers over what is recent: bounded, so as quick with millions of events as with few."""

from dataclasses import dataclass
from datetime import datetime

import psycopg

from hookonce.receiver.ledger.rows import all_as
from hookonce.receiver.ledger.states import OPEN_RUNS, RunStatus, one_of

RUNS_LOOKED_AT = 20_000
"""The newest runs, which the figures of handlers are about."""


@dataclass(frozen=True, slots=True)
class HandlerStats:
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


NONE = HandlerStats("", 0, 0, 0, 0, 0, 0, None, None, None)
"""Figures of a handler that has not run lately."""

_UNFAILED = (RunStatus.DONE, RunStatus.RUNNING)
"""Runs whose latest attempt has not failed."""

# The newest rows first, whatever they are, so that no more of them are read.
_HANDLERS = f"""
WITH queued AS MATERIALIZED (
    SELECT event, handler, token, attempts FROM hookonce.queue ORDER BY event DESC, n DESC LIMIT %(most)s
), ended AS MATERIALIZED (
    SELECT event, handler, status, is_last, attempts, started_at, finished_at
    FROM hookonce.runs
    WHERE event >= (SELECT CASE WHEN count(*) = %(most)s THEN min(event) ELSE 0 END FROM queued)
    ORDER BY event DESC, handler DESC, cycle DESC LIMIT %(most)s
), recent AS (
    SELECT q.event, q.handler,
           CASE WHEN q.token IS NULL THEN '{RunStatus.WAITING}' ELSE '{RunStatus.RUNNING}' END AS status,
           q.attempts + (q.token IS NOT NULL)::int AS attempts, c.made_at AS started_at, NULL AS finished_at
    FROM queued q LEFT JOIN hookonce.claims c ON c.token = q.token WHERE q.handler IS NOT NULL
    UNION ALL
    SELECT event, handler, status, attempts, started_at, finished_at FROM ended WHERE is_last AND handler <> ''
    ORDER BY event DESC, handler DESC LIMIT %(most)s
)
SELECT handler, count(*) AS runs, count(*) FILTER (WHERE status = '{RunStatus.DONE}') AS done,
       count(*) FILTER (WHERE {one_of("status", OPEN_RUNS)}) AS open,
       count(*) FILTER (WHERE status = '{RunStatus.DEAD}') AS dead, sum(attempts)::int AS attempts,
       sum(greatest(attempts - CASE WHEN {one_of("status", _UNFAILED)} THEN 1 ELSE 0 END, 0))::int AS failed,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - started_at)::float) AS p50,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - started_at)::float) AS p99,
       max(started_at) AS latest
FROM recent GROUP BY handler ORDER BY handler
"""  # noqa: S608  constants


def handlers(connection: psycopg.Connection) -> list[HandlerStats]:
    """Sum up the newest `RUNS_LOOKED_AT` runs by handler."""
    return all_as(HandlerStats, connection, _HANDLERS, {"most": RUNS_LOOKED_AT})
