"""The numbers an operator watches."""

from datetime import datetime
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.due import IS_OPEN
from hookonce.receiver.ledger.states import EventStatus, one_of

_RARE = (EventStatus.DEAD, EventStatus.HELD)
"""Not due, but few: they need a person."""

# Whatever is under way or needs a person is few and has partial indexes; what is over is the rest of a sum kept.
_EVENTS = f"""
WITH sums AS MATERIALIZED (
    SELECT source, what, sum(count)::bigint AS n FROM hookonce.event_counts GROUP BY source, what
), rows AS (
    SELECT source, n FROM sums WHERE what = 'events'
    UNION ALL
    SELECT source, count(*) FROM (
        SELECT source FROM hookonce.events WHERE id > coalesce((SELECT n FROM sums WHERE what = 'until'), 0)
        ORDER BY id LIMIT %(fresh)s) AS fresh
    GROUP BY source
), present AS (
    SELECT source, status, count(*) AS n, min(received_at) AS first FROM hookonce.events
    WHERE {IS_OPEN} GROUP BY source, status
    UNION ALL
    SELECT source, status, count(*), min(received_at) FROM hookonce.events
    WHERE {one_of("status", _RARE)} GROUP BY source, status
    UNION ALL
    SELECT source, '{EventStatus.IGNORED}', n, NULL FROM sums WHERE what = '{EventStatus.IGNORED}'
), over AS (
    SELECT source, '{EventStatus.DONE}', sum(n), NULL::timestamptz
    FROM (SELECT source, n FROM rows UNION ALL SELECT source, -n FROM present) AS parts GROUP BY source
)
SELECT source, status, n::bigint, extract(epoch FROM now() - first)::float
FROM (SELECT * FROM present UNION ALL SELECT * FROM over) AS counted (source, status, n, first)
WHERE n > 0 ORDER BY source, status
"""  # noqa: S608  constants
_REJECTIONS = "SELECT source, reason, count FROM hookonce.rejections ORDER BY source, reason"
_SECRETS = "SELECT source, slot, count, last_at FROM hookonce.secret_use ORDER BY source, slot"
_CONFLICTS = "SELECT count(*) FROM (SELECT FROM hookonce.conflicts ORDER BY id LIMIT %s) AS these"
MAX_UNCOUNTED = 100_000
"""Events that no sweep has counted yet and that are counted at once."""
MAX_CONFLICTS = 10_000


class EventSum(NamedTuple):
    """How many events of a source have a status, and the age of the oldest in seconds; None for what is over."""

    source: str
    status: str
    number: int
    oldest: float | None


def events_by_status(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count the ledger's events by source and status, as `event_sums` does."""
    return [(each.source, each.status, each.number) for each in event_sums(connection)]


def event_sums(connection: psycopg.Connection) -> list[EventSum]:
    """Count the ledger's events by source and status; its cost grows with the events that are not over, only.

    Exact while a sweep runs: `done` is what is left of all rows, and rows are counted as `event_counts`
    does. Without a sweep no more than `MAX_UNCOUNTED` new ones are seen. Rows that were changed by hand (into or out of
    `ignored`, or deleted) are counted as done, or not at all, until `event_counts.recount`.
    """
    rows = connection.execute(_EVENTS, {"fresh": MAX_UNCOUNTED})
    return [EventSum(*row) for row in rows]


def rejections(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count refused deliveries by source ('' where no source has the name) and reason, since ever."""
    return connection.execute(_REJECTIONS).fetchall()


def secrets(connection: psycopg.Connection) -> dict[str, dict[int, tuple[int, datetime]]]:
    """Count deliveries by source and by the slot (from 1) of the secret that verified them, and say when last."""
    used: dict[str, dict[int, tuple[int, datetime]]] = {}
    for source, slot, count, last in connection.execute(_SECRETS):
        used.setdefault(source, {})[slot] = (count, last)
    return used


def conflicts(connection: psycopg.Connection) -> int:
    """Count the (event, other body) pairs, `MAX_CONFLICTS` at most."""
    row = connection.execute(_CONFLICTS, [MAX_CONFLICTS]).fetchone()
    return int(row[0]) if row else 0
