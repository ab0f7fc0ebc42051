"""What is under way, and what the counts of `receiver.ledger.activity` say about sources: when last, how much."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg

_LAST = "SELECT source, to_timestamp(count) FROM activity WHERE minutes = 0 AND what = 'last'"

_RECENT = """
SELECT source, sum(count)::bigint FROM activity
WHERE minutes = 1 AND at > now() - %s::interval AND what = ANY(%s) GROUP BY source
"""
_HOURS = """
SELECT at, source, sum(count)::bigint FROM activity
WHERE minutes = 60 AND source = ANY(%s) AND what IN ('accepted', 'duplicate') GROUP BY at, source
"""

_CURRENT = """
SELECT EXISTS (SELECT FROM activity
               WHERE minutes = 1 AND source = '' AND what = 'filled' AND at > now() - interval '5 minutes')
"""

_UNTIL = """
SELECT extract(epoch FROM at) + 60 FROM activity
WHERE minutes = 1 AND source = '' AND what = 'filled' ORDER BY at DESC LIMIT 1
"""
_DUE = "SELECT count(*) FROM (SELECT FROM events WHERE due_at <= now() LIMIT %s) AS these"
_REPLAYS = """
SELECT count(*), coalesce(sum(greatest(matched - replayed - left_alone, 0)), 0)::bigint
FROM bulk_replays WHERE ended_at IS NULL
"""
MOST_DUE = 10_000
"""As far as due events are counted."""


def counted_until(connection: psycopg.Connection) -> float:
    """Give the end of the last minute a sweep has counted, in seconds since 1970; 0 if none ever did."""
    row = connection.execute(_UNTIL).fetchone()
    return float(row[0]) if row else 0.0


def due(connection: psycopg.Connection) -> int:
    """Count the events that are due, `MOST_DUE` at most."""
    row = connection.execute(_DUE, [MOST_DUE]).fetchone()
    return int(row[0]) if row else 0


def bulk_replays(connection: psycopg.Connection) -> tuple[int, int]:
    """Count the bulk replays under way, and the events they have still to replay."""
    row = connection.execute(_REPLAYS).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def is_current(connection: psycopg.Connection) -> bool:
    """Tell whether a sweep counts: whether silence is the sources', and not ours."""
    return connection.execute(_CURRENT).fetchone() == (True,)


def last_seen(connection: psycopg.Connection) -> dict[str, datetime]:
    """Give the minute of each source's last delivery that was taken; of the current two or so, nothing is known."""
    return dict(connection.execute(_LAST).fetchall())


def recent(connection: psycopg.Connection, span: timedelta, what: Sequence[str]) -> dict[str, int]:
    """Sum up, by source, the minutes within `span`; `done` and `dead` of the last one or two are not known yet."""
    return dict(connection.execute(_RECENT, [span, list(what)]).fetchall())


def hours(connection: psycopg.Connection, sources: Sequence[str]) -> dict[str, dict[datetime, int]]:
    """Give the deliveries taken, by source and full hour, as long as they are kept; hours without are left out."""
    found: dict[str, dict[datetime, int]] = {source: {} for source in sources}
    for at, source, number in connection.execute(_HOURS, [list(sources)]):
        found[source][at] = number
    return found
