"""How much waits for whom, cheap at any size: by partial indexes, and never counted beyond `MAX_COUNTED`."""

from dataclasses import dataclass
from datetime import timedelta

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.due import IS_DUE, MAY_BE_CLAIMED
from hookonce.receiver.ledger.states import EventStatus, RunStatus

MAX_COUNTED = 10_000
"""Where counting stops; one more says that there are more."""


OLDEST_DUE = f"""
SELECT coalesce(extract(epoch FROM now() - (
    SELECT due_at FROM hookonce.events
    WHERE {MAY_BE_CLAIMED}
    ORDER BY due_at LIMIT 1)), 0)::float
"""  # noqa: S608  constants
"""Seconds; what a person has paused waits as it should."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events that want something, `MAX_COUNTED` + 1 where there are more; `oldest_due` in seconds."""

    due: int
    waiting: int
    dead: int
    held: int
    oldest_due: float


def _counted(condition: str) -> str:
    return f"(SELECT count(*) FROM (SELECT FROM hookonce.events WHERE {condition} LIMIT {MAX_COUNTED + 1}) AS bounded)"  # noqa: S608  the same


_WAITING = f"""
SELECT {_counted(IS_DUE)} AS due,
       {_counted(f"status = '{EventStatus.WAITING}'")} AS waiting,
       {_counted(f"status = '{EventStatus.DEAD}'")} AS dead,
       {_counted(f"status = '{EventStatus.HELD}'")} AS held,
       ({OLDEST_DUE}) AS oldest_due
"""


def waiting(connection: psycopg.Connection) -> Waiting:
    """Count what is due, waits, is dead or held."""
    with connection.cursor(row_factory=class_row(Waiting)) as cursor:
        return cursor.execute(_WAITING.encode()).fetchone() or Waiting(0, 0, 0, 0, 0.0)


def oldest_due(connection: psycopg.Connection) -> float:
    """Return for how many seconds the oldest due event of a source that is not paused has been due; 0 for none."""
    row = connection.execute(OLDEST_DUE).fetchone()
    return float(row[0]) if row else 0.0


_OLDEST_BY_SOURCE = f"""
SELECT source, extract(epoch FROM now() - min(due_at))::float FROM (
    SELECT source, due_at FROM hookonce.events WHERE {MAY_BE_CLAIMED} ORDER BY due_at LIMIT %s) AS oldest
GROUP BY source
"""  # noqa: S608  constants
_MAX_OLDEST = 1000


def oldest_due_by_source(connection: psycopg.Connection) -> dict[str, float]:
    """Return the seconds that the oldest due event of each source has been due, among the oldest of all."""
    return dict(connection.execute(_OLDEST_BY_SOURCE, [_MAX_OLDEST]).fetchall())


_DEAD = f"""
WITH dead AS MATERIALIZED (
    SELECT id, source, received_at FROM hookonce.events WHERE status = '{EventStatus.DEAD}'
    ORDER BY id DESC LIMIT %(most)s
)
SELECT source, count(*) FILTER (WHERE died_at > now() - %(within)s::interval), count(*)
FROM (SELECT source, coalesce((SELECT max(finished_at) FROM hookonce.runs r
                               WHERE r.event = dead.id AND r.status = '{RunStatus.DEAD}'), received_at) AS died_at
      FROM dead) AS died
GROUP BY source
"""  # noqa: S608  constants


def dead(connection: psycopg.Connection, within: timedelta) -> dict[str, tuple[int, int]]:
    """Count, by source, the events that are dead: those that died within the last `within`, and all of them.

    Of more than `MAX_COUNTED`, the newest are looked at. What was replayed is dead no more; what can't be read has
    no runs and is dead from when it came.
    """
    rows = connection.execute(_DEAD, {"within": within, "most": MAX_COUNTED})
    return {source: (recent, number) for source, recent, number in rows if recent}


_DUE = f"SELECT count(*) FROM (SELECT FROM hookonce.events WHERE {IS_DUE} LIMIT %s) AS these"  # noqa: S608  constants


_REPLAYS = """
SELECT count(*), coalesce(sum(greatest(matched - replayed - left_alone, 0)), 0)::bigint
FROM hookonce.bulk_replays WHERE ended_at IS NULL
"""


MAX_DUE = 10_000
"""As far as due events are counted."""


def due(connection: psycopg.Connection) -> int:
    """Count the events that are due, `MAX_DUE` at most."""
    row = connection.execute(_DUE, [MAX_DUE]).fetchone()
    return int(row[0]) if row else 0


def bulk_replays(connection: psycopg.Connection) -> tuple[int, int]:
    """Count the bulk replays under way, and the events they have still to replay."""
    row = connection.execute(_REPLAYS).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)
