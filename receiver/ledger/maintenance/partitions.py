"""Keeps the tables in shape: makes the daily partitions of `bodies`, and drops old ones.

Days are of UTC, from midnight to midnight.
"""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import psycopg

DAYS_AHEAD = 14
DROP_LOCK_TIMEOUT = timedelta(milliseconds=100)
"""How long dropping a day waits for those who use `bodies`: for as long, whoever comes after it waits too."""


class DayBounds(NamedTuple):
    """One day."""

    first: datetime
    end: datetime


class DropResult(StrEnum):
    """The outcome of a day that was to be dropped."""

    DROPPED = "dropped"
    NEEDED = "needed"
    BUSY = "busy"


def create_partitions(connection: psycopg.Connection) -> list[str]:
    """Make the missing partitions of `bodies` from yesterday to `DAYS_AHEAD` days ahead; name the new ones.

    There is no DEFAULT partition: rows in one would block the creation of their own day later.
    """
    today = datetime.now(UTC).date()
    present = days(connection)
    wanted = (today + timedelta(days=n) for n in range(-1, DAYS_AHEAD + 1))
    missing = [day for day in wanted if day not in present]
    for day in missing:
        make_partition(connection, day)
    return [_name(day) for day in missing]


def days(connection: psycopg.Connection) -> dict[date, str]:
    """Return the partitions of `bodies` by day, oldest first."""
    found = {}
    for (name,) in connection.execute(_PARTITIONS):
        with suppress(ValueError):  # a partition somebody made by hand is theirs
            found[datetime.strptime(name, _NAMES).replace(tzinfo=UTC).date()] = name
    return dict(sorted(found.items()))


def day_bounds(day: date) -> DayBounds:
    """Return when a day begins and ends."""
    first = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return DayBounds(first, first + timedelta(days=1))


def drop_day(connection: psycopg.Connection, day: date, *, dry_run: bool = False) -> DropResult:
    """Drop the bodies of a day unless one of its events is yet to be handled, or the table is busy.

    A replay reads the body in its own transaction, so once this has the lock no replay is under way. Deliveries
    wait for `DROP_LOCK_TIMEOUT` at most: a backup that reads the table, or a long backlog to look through,
    makes it busy.
    """
    if _is_needed(connection, day):
        return DropResult.NEEDED
    if dry_run:
        return DropResult.DROPPED
    try:
        with connection.transaction():
            milliseconds = int(DROP_LOCK_TIMEOUT / timedelta(milliseconds=1))
            connection.execute(f"SET LOCAL lock_timeout = {milliseconds}".encode())
            connection.execute(f"SET LOCAL statement_timeout = {2 * milliseconds}".encode())
            connection.execute("LOCK TABLE ONLY hookonce.bodies IN ACCESS EXCLUSIVE MODE")
            if _is_needed(connection, day):
                return DropResult.NEEDED
            if _does_by_function(connection):
                connection.execute("SELECT hookonce.drop_partition(%s)", [day])
            else:
                connection.execute(f"DROP TABLE {_name(day)}".encode())
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
        return DropResult.BUSY
    return DropResult.DROPPED


def make_partition(connection: psycopg.Connection, day: date) -> None:
    """Make one day's partition (UTC midnight to midnight) unless it is there; safe in many processes at once.

    It is made apart and then attached, which waits for nobody who reads or writes `bodies` and holds up none.
    Made in place it would wait for a running backup, and every delivery for it.
    """
    name, (first, end) = _name(day), day_bounds(day)
    with connection.transaction():
        connection.execute(_ONE_AT_A_TIME)
        if _does_by_function(connection):
            connection.execute("SELECT hookonce.make_partition(%s)", [day])
        elif connection.execute(f"SELECT to_regclass('{name}')".encode()).fetchone() == (None,):
            connection.execute(f"CREATE TABLE {name} (LIKE hookonce.bodies INCLUDING ALL)".encode())
            connection.execute(
                f"ALTER TABLE hookonce.bodies ATTACH PARTITION {name} "
                f"FOR VALUES FROM ('{first}') TO ('{end}')".encode()
            )


_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(x'626F64696573'::bigint)"  # "bodies" in ASCII

# A role that owns nothing adds and drops days by functions of the ledger's (`receiver.ledger.database.roles`).
_BY_FUNCTION = """
SELECT NOT pg_has_role(c.relowner, 'USAGE') AND to_regprocedure('hookonce.make_partition(date)') IS NOT NULL
FROM pg_class c WHERE c.oid = 'hookonce.bodies'::regclass
"""

_PARTITIONS = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'hookonce.bodies'::regclass
"""

_IS_NEEDED = """
SELECT EXISTS (SELECT FROM hookonce.queue WHERE received_at >= %(first)s AND received_at < %(end)s)
"""


_NAMES = "bodies_%Y%m%d"


def _name(day: date) -> str:
    return f"hookonce.{day.strftime(_NAMES)}"


def _does_by_function(connection: psycopg.Connection) -> bool:
    return connection.execute(_BY_FUNCTION).fetchone() == (True,)


def _is_needed(connection: psycopg.Connection, day: date) -> bool:
    row = connection.execute(_IS_NEEDED, day_bounds(day)._asdict()).fetchone()
    return bool(row and row[0])
