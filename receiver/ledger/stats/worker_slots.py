"""The slots of workers: the attempts that take long, and of those that run many at once the slots in use and lost."""

import json
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel, all_as
from hookonce.receiver.ledger.states import Waits

REPORT_INTERVAL = timedelta(seconds=5)
"""The longest time between two reports: what changes is told within a second or two."""
GONE_AFTER = timedelta(seconds=30)
"""A worker that has not reported for so long is no more."""
LONG_AFTER = timedelta(seconds=2)
"""For so long a transaction may have written and wait for something else, before it is named: it holds vacuum back."""
MAX_SUSPECTS = 10_000

# Nobody waits for another's row: after an outage all may take all others for gone, each with its own row locked.
_REPORT = """
WITH gone AS (DELETE FROM hookonce.worker_slots WHERE worker = ANY(ARRAY(
    SELECT worker FROM hookonce.worker_slots WHERE seen_at < now() - %(gone)s AND worker <> %(worker)s
    FOR UPDATE SKIP LOCKED)))
INSERT INTO hookonce.worker_slots (worker, name, slots, busy, lost, attempts)
VALUES (%(worker)s, %(name)s, %(slots)s, %(busy)s, %(lost)s, %(attempts)s::text::json)
ON CONFLICT (worker) DO UPDATE SET
    busy = excluded.busy, lost = excluded.lost, attempts = excluded.attempts, seen_at = now()
"""
_WORKERS = """
SELECT name, slots, busy, lost, seen_at, greatest(round(extract(epoch FROM clock_timestamp() - seen_at)), 0)::int
       AS seconds_ago
FROM hookonce.worker_slots
WHERE seen_at > now() - %s AND slots > 1 ORDER BY name, worker
"""
# A transaction that began after the report may be another attempt's: a connection outlives them, and the number of a
# backend that has ended is given to others, in whatever database.
_LONG = """
SELECT a.handler, a.event, extract(epoch FROM clock_timestamp() - s.xact_start)::float AS seconds
FROM hookonce.worker_slots w, json_to_recordset(w.attempts) AS a (handler text, event bigint, backend int)
JOIN pg_stat_activity s ON s.pid = a.backend
WHERE w.seen_at > now() - %s AND s.datname = current_database() AND s.xact_start <= w.seen_at
      AND s.state LIKE 'idle in transaction%%' AND s.backend_xid IS NOT NULL
      AND s.state_change < clock_timestamp() - %s
ORDER BY 3 DESC
"""
_SUSPECTS = f"""
SELECT handler, count(*) FROM (
    SELECT handler FROM hookonce.queue WHERE waits = '{Waits.SUSPECT}' LIMIT {MAX_SUSPECTS}) AS found
GROUP BY handler ORDER BY handler
"""  # noqa: S608  constants


class LongAttempt(NamedTuple):
    """An attempt that takes long, and the backend its connection is with."""

    handler: str
    event: int
    backend: int | None


class SlotReport(NamedTuple):
    """How many runs a worker may have under way, how many it has, and how many slots no time limit could free."""

    slots: int
    busy: int
    lost: int


class WorkerSlots(ResponseModel):
    """A worker process with several slots, as it last reported."""

    name: Ours = Field(description="host and process id")
    slots: int = Field(description="runs it may have under way at once")
    busy: int
    lost: int = Field(description="slots whose handler no time limit could end")
    seen_at: datetime
    seconds_ago: int


class LongTransaction(ResponseModel):
    """An attempt that wrote and waits for something else in its transaction, which holds vacuum back."""

    handler: Ours
    event: Identifier
    seconds: float


def report(
    connection: psycopg.Connection,
    worker: uuid.UUID,
    name: str,
    slots: SlotReport,
    attempts: Sequence[LongAttempt],
) -> None:
    """Write down what a worker is at, and forget those that are gone. Committed."""
    values = {
        "worker": worker,
        "name": name,
        **slots._asdict(),
        "attempts": json.dumps([each._asdict() for each in attempts]),
        "gone": GONE_AFTER,
    }
    with connection.transaction():
        connection.execute(_REPORT, values)


def forget(connection: psycopg.Connection, worker: uuid.UUID) -> None:
    """Forget a worker that ends. Committed."""
    with connection.transaction():
        connection.execute("DELETE FROM hookonce.worker_slots WHERE worker = %s", [worker])


def workers(connection: psycopg.Connection) -> list[WorkerSlots]:
    """Return the workers that run many at once."""
    return all_as(WorkerSlots, connection, _WORKERS, [GONE_AFTER])


def long_transactions(connection: psycopg.Connection) -> list[LongTransaction]:
    """Return attempts that wrote and then wait inside their transaction, the longest first.

    Where the role may not see other roles' statistics, none of theirs.
    """
    return all_as(LongTransaction, connection, _LONG, [GONE_AFTER, LONG_AFTER])


def suspects(connection: psycopg.Connection) -> dict[str, int]:
    """Return how many runs are to be run by themselves, by handler; `MAX_SUSPECTS` at most."""
    return dict(connection.execute(_SUSPECTS).fetchall())
