"""Ranges of ids for the events of a span of time, found by `receiver.ledger.id_at_time`."""

from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.ledger import id_at_time
from hookonce.receiver.ledger.queries.event_filter import Filter

CLOCK_SLACK = timedelta(minutes=5)
"""How far ids and times of receipt may be out of step: a statement's length, and a clock set back after a failover."""

_ENDS = "SELECT coalesce(min(id), 0), coalesce(max(id), -1) + 1 FROM hookonce.events"


def extent(connection: psycopg.Connection, wanted: Filter, before: int | None = None) -> tuple[int, int]:
    """Return the range of ids, the upper end left out, that holds all matching events with ids below `before`."""
    low, top = connection.execute(_ENDS).fetchone() or (0, 0)
    if wanted.until:
        top = id_at_time.first_since(connection, _moved(wanted.until, CLOCK_SLACK))
    if wanted.since:
        low = id_at_time.first_since(connection, _moved(wanted.since, -CLOCK_SLACK))
    return low, top if before is None else min(top, before)


def _moved(at: datetime, by: timedelta) -> datetime:
    """Move a time, unless that leads out of the years there are."""
    try:
        return at + by
    except OverflowError:
        return at
