"""Where in the ledger the events of a span of time are: ids grow with time, so a few probes of the primary key tell."""

from datetime import datetime, timedelta

import psycopg

from receiver.ledger.desk_filter import Filter

SLACK = timedelta(minutes=5)
"""How far ids and times of receipt may be out of step: a statement's length, and a clock set back after a failover."""

_ENDS = "SELECT coalesce(min(id), 0), coalesce(max(id), -1) + 1 FROM events"

# The smallest id whose event came at that time or later, else the upper end: halves the range at each step.
_AT = """
WITH RECURSIVE search (low, top) AS (
    SELECT %(low)s::bigint, %(top)s::bigint
    UNION ALL
    SELECT CASE WHEN probe.received_at < %(at)s THEN probe.id + 1 ELSE low END,
           CASE WHEN probe.received_at < %(at)s THEN top ELSE (low + top) / 2 END
    FROM search LEFT JOIN LATERAL (
        SELECT id, received_at FROM events WHERE id >= (low + top) / 2 ORDER BY id LIMIT 1) AS probe ON true
    WHERE low < top
)
SELECT max(low) FROM search
"""


def extent(connection: psycopg.Connection, wanted: Filter, before: int | None = None) -> tuple[int, int]:
    """Give the range of ids, the upper end left out, that holds all matching events with ids below `before`."""
    low, top = connection.execute(_ENDS).fetchone() or (0, 0)
    if wanted.until:
        top = _at(connection, _moved(wanted.until, SLACK), low, top)
    if wanted.since:
        low = _at(connection, _moved(wanted.since, -SLACK), low, top)
    return low, top if before is None else min(top, before)


def _moved(at: datetime, by: timedelta) -> datetime:
    """Move a time, unless that leads out of the years there are."""
    try:
        return at + by
    except OverflowError:
        return at


def _at(connection: psycopg.Connection, at: datetime, low: int, top: int) -> int:
    row = connection.execute(_AT, {"at": at, "low": low, "top": top}).fetchone()
    return row[0] if row else low
