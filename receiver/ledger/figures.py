"""The numbers an operator watches."""

from datetime import datetime

import psycopg

# Whatever is under way or needs a person is few and has partial indexes; what is over is the rest of a sum kept.
_EVENTS = """
WITH sums AS MATERIALIZED (
    SELECT source, what, sum(count)::bigint AS n FROM event_counts GROUP BY source, what
), rows AS (
    SELECT source, n FROM sums WHERE what = 'events'
    UNION ALL
    SELECT source, count(*) FROM (
        SELECT source FROM events WHERE id > coalesce((SELECT n FROM sums WHERE what = 'until'), 0)
        ORDER BY id LIMIT %(fresh)s) AS fresh
    GROUP BY source
), present AS (
    SELECT source, status, count(*) AS n FROM events WHERE due_at IS NOT NULL GROUP BY source, status
    UNION ALL
    SELECT source, status, count(*) FROM events WHERE status IN ('dead', 'held') GROUP BY source, status
    UNION ALL
    SELECT source, 'ignored', n FROM sums WHERE what = 'ignored'
), over AS (
    SELECT source, 'done', sum(n) FROM (SELECT source, n FROM rows UNION ALL SELECT source, -n FROM present) AS parts
    GROUP BY source
)
SELECT source, status, n::bigint
FROM (SELECT * FROM present UNION ALL SELECT * FROM over) AS counted (source, status, n)
WHERE n > 0 ORDER BY source, status
"""
_REJECTIONS = "SELECT source, reason, count FROM rejections ORDER BY source, reason"
_SECRETS = "SELECT source, slot, count, last_at FROM secret_use ORDER BY source, slot"
OLDEST_DUE = """
SELECT coalesce(extract(epoch FROM now() - (
    SELECT due_at FROM events
    WHERE due_at <= now() AND source NOT IN (SELECT name FROM pauses WHERE kind = 'source')
    ORDER BY due_at LIMIT 1)), 0)::float
"""
"""Seconds; what a person has paused waits as it should."""
_CONFLICTS = "SELECT count(*) FROM (SELECT FROM conflicts ORDER BY id LIMIT %s) AS these"
FRESH = 100_000
"""Events that no sweep has counted yet and that are counted at once."""
MOST_CONFLICTS = 10_000


def events_by_status(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count the ledger's events by source and status; its cost grows with the events that are not over, only.

    Exact while a sweep runs: `done` is what is left of all rows, and rows are counted as `receiver.ledger.counts`
    does. Without a sweep no more than `FRESH` new ones are seen. Rows that were changed by hand (into or out of
    `ignored`, or deleted) are counted as done, or not at all, until `counts.recount`.
    """
    return connection.execute(_EVENTS, {"fresh": FRESH}).fetchall()


def rejections(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count refused deliveries by source ('' where no source has the name) and reason, since ever."""
    return connection.execute(_REJECTIONS).fetchall()


def secrets(connection: psycopg.Connection) -> dict[str, dict[int, tuple[int, datetime]]]:
    """Count deliveries by source and by the slot (from 1) of the secret that verified them, and say when last."""
    used: dict[str, dict[int, tuple[int, datetime]]] = {}
    for source, slot, count, last in connection.execute(_SECRETS):
        used.setdefault(source, {})[slot] = (count, last)
    return used


def oldest_due(connection: psycopg.Connection) -> float:
    """Say how many seconds the longest-waiting due event of a source that is not paused has been due; 0 for none."""
    row = connection.execute(OLDEST_DUE).fetchone()
    return float(row[0]) if row else 0.0


def conflicts(connection: psycopg.Connection) -> int:
    """Count the (event, other body) pairs, `MOST_CONFLICTS` at most."""
    row = connection.execute(_CONFLICTS, [MOST_CONFLICTS]).fetchone()
    return int(row[0]) if row else 0
