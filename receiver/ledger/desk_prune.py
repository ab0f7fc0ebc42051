"""Lets go of what has outlived its horizon, in steps small enough to disturb nobody.

Three horizons: ledger rows (the memory of what came: the longest), bodies (dropped by whole days) and rejected
deliveries. An event that is received, running, waiting or held loses nothing, however old it is.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta

import psycopg
from psycopg import sql

STEP = 1000
"""Ledger rows looked at in one transaction."""
TRIES = 5

_ENDED = "status IN ('done', 'dead', 'ignored')"

_PAGE = f"""
SELECT id, received_at < %(before)s, received_at < %(before)s AND {_ENDED}
FROM events WHERE id > %(last)s ORDER BY id LIMIT %(step)s
"""  # noqa: S608  a constant of this module

# Locks first, in order, and looks again: a replay may have got there between.
_DELETE = f"""
DELETE FROM events WHERE id IN (
    SELECT id FROM events WHERE id = ANY(%s) AND {_ENDED} ORDER BY id FOR UPDATE SKIP LOCKED)
"""  # noqa: S608  a constant of this module

_PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'bodies'::regclass"

# Received, running and waiting events have a due time, held ones are few: both by partial indexes.
_IS_NEEDED = """
SELECT EXISTS (SELECT FROM events WHERE due_at IS NOT NULL AND received_at >= %(first)s AND received_at < %(end)s)
    OR EXISTS (SELECT FROM events WHERE status = 'held' AND received_at >= %(first)s AND received_at < %(end)s)
"""

_REJECTED = "DELETE FROM rejected WHERE rejected_at < %s"
_COUNT_REJECTED = "SELECT count(*) FROM rejected WHERE rejected_at < %s"
_AUDIT = "INSERT INTO audit (who, action, subject, detail) VALUES (%s, 'prune', 'ledger', %s::json)"
_NOW = "SELECT now()"


@dataclass(frozen=True, slots=True)
class Horizons:
    """How long each kind is kept."""

    events: timedelta
    bodies: timedelta
    rejected: timedelta


@dataclass(slots=True)
class Pruned:
    """What went, or would go: ledger rows, days of bodies, rejected deliveries; and days that had to stay."""

    events: int = 0
    rejected: int = 0
    days: list[str] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)


def prune(connection: psycopg.Connection, horizons: Horizons, who: str, *, dry_run: bool = False) -> Pruned:
    """Delete what is older than its horizon by the database's clock, or only say what would go. Audited.

    Safe to stop at any moment and to run again.
    """
    row = connection.execute(_NOW).fetchone()
    now = row[0] if row else datetime.now(UTC)
    done = Pruned()
    _prune_days(connection, now - horizons.bodies, done, dry_run=dry_run)
    for ids in _old_events(connection, now - horizons.events):
        done.events += len(ids) if dry_run else connection.execute(_DELETE, [ids]).rowcount
    if dry_run:
        counted = connection.execute(_COUNT_REJECTED, [now - horizons.rejected]).fetchone()
        done.rejected = counted[0] if counted else 0
    else:
        done.rejected = connection.execute(_REJECTED, [now - horizons.rejected]).rowcount
        connection.execute(_AUDIT, [who, json.dumps(asdict(done))])
    return done


def days(connection: psycopg.Connection) -> dict[date, str]:
    """Give the partitions of `bodies` by day (UTC), oldest first."""
    found = {}
    for (name,) in connection.execute(_PARTITIONS):
        with suppress(ValueError):  # a partition somebody made by hand is theirs
            found[datetime.strptime(name, "bodies_%Y%m%d").replace(tzinfo=UTC).date()] = name
    return dict(sorted(found.items()))


def _old_events(connection: psycopg.Connection, before: datetime) -> Iterator[list[int]]:
    """Walk up the ledger from its oldest row, giving what may go, until a whole page is young enough."""
    last = 0
    while True:
        rows = connection.execute(_PAGE, {"before": before, "last": last, "step": STEP}).fetchall()
        ids = [number for number, _, may_go in rows if may_go]
        if ids:
            yield ids
        if not any(is_old for _, is_old, _ in rows):
            return
        last = rows[-1][0]


def _prune_days(connection: psycopg.Connection, before: datetime, done: Pruned, *, dry_run: bool) -> None:
    for day, name in days(connection).items():
        first = datetime(day.year, day.month, day.day, tzinfo=UTC)
        span = {"first": first, "end": first + timedelta(days=1)}
        if span["end"] > before:
            return
        if _is_needed(connection, span):
            done.needed.append(name)
        elif dry_run or any(_drop(connection, name, span) for _ in range(TRIES)):
            done.days.append(name)
        else:
            done.busy.append(name)


def _drop(connection: psycopg.Connection, name: str, span: dict[str, datetime]) -> bool:
    """Drop one day unless it is needed or the table is busy; receivers wait for half a second at most.

    A replay reads the body in its own transaction, so once this has the lock no replay is under way.
    """
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '500ms'")
            connection.execute("LOCK TABLE ONLY bodies IN ACCESS EXCLUSIVE MODE")
            if _is_needed(connection, span):
                return False
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def _is_needed(connection: psycopg.Connection, span: dict[str, datetime]) -> bool:
    row = connection.execute(_IS_NEEDED, span).fetchone()
    return bool(row and row[0])
