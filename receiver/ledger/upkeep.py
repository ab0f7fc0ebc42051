"""Keeps the tables in shape: the daily partitions of `bodies`, and what retention lets go."""

from datetime import UTC, date, datetime, timedelta

import psycopg

DAYS_AHEAD = 14


def create_partitions(connection: psycopg.Connection, today: date | None = None) -> list[str]:
    """Make the missing partitions of `bodies` from yesterday to `DAYS_AHEAD` days ahead; name the new ones.

    There is no DEFAULT partition: rows in one would block the creation of their own day later.
    """
    today = today or datetime.now(UTC).date()
    days = [today + timedelta(days=n) for n in range(-1, DAYS_AHEAD + 1)]
    present = {row[0] for row in connection.execute(_PARTITIONS)}
    missing = [day for day in days if _name(day) not in present]
    for day in missing:
        make_partition(connection, day)
    return [_name(day) for day in missing]


def is_anything_due(connection: psycopg.Connection) -> bool:
    """Tell whether an event of a source that is not paused waits for a worker."""
    row = connection.execute(_ANYTHING_DUE).fetchone()
    return bool(row and row[0])


def make_partition(connection: psycopg.Connection, day: date) -> None:
    """Make one day's partition (UTC midnight to midnight) unless it is there; safe in many processes at once.

    It is made apart and then attached, which waits for nobody who reads or writes `bodies` and holds up none.
    Made in place it would wait for a running backup, and every delivery for it.
    """
    name, first, end = _name(day), day.isoformat(), (day + timedelta(days=1)).isoformat()
    with connection.transaction():
        connection.execute(_ONE_AT_A_TIME)
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
            connection.execute(f"CREATE TABLE {name} (LIKE bodies INCLUDING ALL)".encode())
            connection.execute(
                f"ALTER TABLE bodies ATTACH PARTITION {name} "
                f"FOR VALUES FROM ('{first} 00:00:00+00') TO ('{end} 00:00:00+00')".encode()
            )


_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(x'626F64696573'::bigint)"  # "bodies" in ASCII

_PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'bodies'::regclass"

_ANYTHING_DUE = """
SELECT EXISTS (SELECT FROM events WHERE due_at <= now()
               AND source NOT IN (SELECT name FROM pauses WHERE kind = 'source'))
"""


def _name(day: date) -> str:
    return f"bodies_{day:%Y%m%d}"
