"""The handlers of the benchmark: one database write each, under a primary key that would catch a second run."""

import time
from typing import Any

from sqlalchemy import Connection, text

from hookonce import on, on_batch

_WRITE = text("INSERT INTO effects (event) VALUES (:event)")
_JOB = text("INSERT INTO job_effects (job) VALUES (:job)")
_JOBS = text("INSERT INTO job_effects (job) SELECT unnest(CAST(:jobs AS bigint[]))")
_UPSERT = text("""
INSERT INTO effects (event) SELECT unnest(CAST(:events AS bigint[]))
ON CONFLICT (event) DO UPDATE SET at = clock_timestamp()
""")


@on("github", "push", name="write")
def write(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Make one write."""
    tx.execute(_WRITE, {"event": event.id})


@on("github", "job", name="job", timeout=2)
def job(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Make the write that task queues make, into a table where a second run would be seen; its lease takes 17 s."""
    tx.execute(_JOB, {"job": event.id})


@on_batch("github", "jobs", name="jobs", most=500, timeout=2)
def jobs(events: list[Any], tx: Connection) -> None:
    """Make the same write for all of them."""
    tx.execute(_JOBS, {"jobs": [event.id for event in events]})


@on_batch("github", "many", name="many", most=500)
def many(events: list[Any], tx: Connection) -> None:
    """Make one upsert of them all."""
    tx.execute(_UPSERT, {"events": [event.id for event in events]})


@on("github", "rated", name="rated", rate="100/m")
def rated(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Make one write, a hundred times a minute at most."""
    tx.execute(_WRITE, {"event": event.id})


@on("github", "slow", name="slow")
def slow(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Take a second, then make one write."""
    time.sleep(1)
    tx.execute(_WRITE, {"event": event.id})


@on("github", "waits", name="waits")
def waits(event: Any, tx: Connection) -> None:  # noqa: ANN401
    """Wait for 200 ms, as for somebody else's API, then make one write."""
    time.sleep(0.2)
    tx.execute(_WRITE, {"event": event.id})
