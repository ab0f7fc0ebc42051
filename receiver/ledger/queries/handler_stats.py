"""Figures of handlers over what is recent: bounded, so as quick with millions of events as with few."""

from datetime import datetime

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as
from hookonce.receiver.ledger.states import OPEN_RUNS, RunStatus, one_of

RUNS_LOOKED_AT = 20_000
"""The newest runs, which the figures of handlers are about."""


class HandlerStats(ResponseModel):
    """A handler's newest runs: by status, how many attempts failed, and how long the last attempts took."""

    name: Ours
    runs: int = Field(default=0, description=f"among the newest {RUNS_LOOKED_AT} of all handlers")
    done: int = Field(default=0, description="runs among these that are done")
    open: int = 0
    dead: int = 0
    failure_rate: float = Field(default=0.0, description="the share of their attempts that failed")
    p50_seconds: float | None = Field(
        default=None, description="how long half of their last attempts took at most"
    )
    p99_seconds: float | None = None
    latest_run: datetime | None = None


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
SELECT handler AS name, count(*) AS runs, count(*) FILTER (WHERE status = '{RunStatus.DONE}') AS done,
       count(*) FILTER (WHERE {one_of("status", OPEN_RUNS)}) AS open,
       count(*) FILTER (WHERE status = '{RunStatus.DEAD}') AS dead,
       coalesce(sum(greatest(attempts - CASE WHEN {one_of("status", _UNFAILED)} THEN 1 ELSE 0 END, 0))::float
                / nullif(sum(attempts), 0), 0) AS failure_rate,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - started_at)::float) AS p50_seconds,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - started_at)::float) AS p99_seconds,
       max(started_at) AS latest_run
FROM recent GROUP BY handler ORDER BY handler
"""  # noqa: S608  constants


def handlers(connection: psycopg.Connection) -> list[HandlerStats]:
    """Sum up the newest `RUNS_LOOKED_AT` runs by handler."""
    return all_as(HandlerStats, connection, _HANDLERS, {"most": RUNS_LOOKED_AT})
