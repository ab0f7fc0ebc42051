"""Findings of `hookonce doctor` about workers with several slots: connections, lost slots, transactions that wait."""

from collections.abc import Iterator

import psycopg

from hookonce.receiver.cli.connections import registered_workers
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.worker_slots import WorkerSlots

BESIDES = 5
"""Connections of a worker process besides those of its slots: claims, batches, heartbeat, shared flushes, its end."""
ALONE = 4
"""Those of a worker that runs one at a time: its runs, the heartbeat, shared flushes, and reports of a long run."""
OF_CHILD = 4
"""Those of a child that runs suspects: its claims, its run, in a framework its handler's besides, and the heartbeat."""
CHILDREN = 2
"""The most children of one supervisor that run suspects, each by itself (`jobs.children.CHILDREN`)."""
STEPS = 4
"""At most, in any of them, where handlers use steps (`jobs.claimer.STEP_CONNECTIONS`)."""
# Whose sessions a role may not see in full, of those it sees neither state nor kind: who has a user and a database is
# taken for a client. Workers of an inbox in another database are others; ours are in the reports.
_MOST = """
WITH others AS MATERIALIZED (
    SELECT usename, datname FROM pg_stat_activity
    WHERE coalesce(backend_type = 'client backend', usesysid IS NOT NULL AND datid IS NOT NULL)
          AND (application_name = 'hookonce worker' AND datname = current_database()) IS NOT TRUE
), limits AS (
    SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(nullif(current_setting('reserved_connections', true), '')::int, 0) AS most,
           (SELECT count(*) FROM others) AS others, 'max_connections' AS name
    UNION ALL
    SELECT rolconnlimit, (SELECT count(*) FROM others WHERE usename = rolname),
           'the CONNECTION LIMIT of role ' || rolname
    FROM pg_roles WHERE rolname = session_user AND rolconnlimit >= 0 AND NOT rolsuper
    UNION ALL
    SELECT datconnlimit, (SELECT count(*) FROM others o WHERE o.datname = d.datname),
           'the CONNECTION LIMIT of database ' || d.datname
    FROM pg_database d WHERE datname = current_database() AND datconnlimit >= 0
)
SELECT most, others, name FROM limits ORDER BY most - others LIMIT 1
"""


def slots(connection: psycopg.Connection, settings: Settings) -> Iterator[Finding]:
    """Check what slots need and do."""
    reported = worker_slots.workers(connection)
    suspects = sum(worker_slots.suspects(connection).values())
    most, others, limit = connections(connection)
    yield judge_connections(
        most,
        others,
        reported,
        settings.concurrency,
        registered_workers() or 0,
        limit=limit,
        has_steps=_has_steps(connection),
        suspects=suspects,
    )
    lost = sum(each.lost for each in reported)
    if lost:
        yield Finding(
            "warn",
            "slots",
            f"{lost} lost to handlers that their time limit could not end; give what they wait for a timeout",
        )
    if suspects:
        yield Finding(
            "warn",
            "suspects",
            f"{suspects} runs were under way when a process died, and are run with nothing beside them",
        )
    for each in worker_slots.long_transactions(connection):
        yield Finding(
            "warn",
            "transaction",
            f"handler {each.handler} (event {each.event}) wrote and waits for something else in its transaction, open "
            f"for {each.seconds:.0f} s; that holds vacuum back for everybody: use tx='none'",
        )


def connections(connection: psycopg.Connection) -> tuple[int, int, str]:
    """Return how many connections there may be, how many are open that are not our workers', and which limit it is."""
    most, others, limit = connection.execute(_MOST).fetchone() or (0, 0, "max_connections")
    return most, others, limit


def _has_steps(connection: psycopg.Connection) -> bool:
    return connection.execute("SELECT FROM hookonce.steps LIMIT 1").fetchone() is not None


def judge_connections(  # noqa: PLR0913  the last by keyword
    most: int,
    others: int,
    reported: list[WorkerSlots],
    configured: int,
    workers: int,
    *,
    limit: str = "max_connections",
    has_steps: bool = False,
    suspects: int = 0,
) -> Finding:
    """Judge whether all slots and whoever else is connected fit into a limit.

    A worker that has slots runs suspects in children, each of which runs one at a time.
    """
    alone = max(workers - len(reported), 0)
    has_slots = len(reported) + (alone if configured > 1 else 0)
    children = min(suspects, CHILDREN * has_slots)
    slots = sum(each.slots for each in reported) + (has_slots - len(reported)) * configured
    singles = alone + len(reported) - has_slots
    steps = (has_slots + singles + children) * STEPS * has_steps
    needed = slots + has_slots * BESIDES + singles * ALONE + children * OF_CHILD + steps
    text = f"workers may need {needed} connections, {others} others are open, of {most}"
    if needed + others > most:
        return Finding("warn", "connections", f"{text}; raise {limit}, or run fewer workers or --concurrency")
    return Finding("ok", "connections", text)
