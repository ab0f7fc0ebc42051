"""Activity of sources: what is under way; by the counts of `receiver.ledger.stats.activity`, when last and how much."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.ledger.stats import activity

_LAST = f"""
SELECT source, max(at) FROM (
    SELECT source, to_timestamp(count) AS at FROM hookonce.activity WHERE minutes = 0 AND what = 'last'
    UNION ALL
    SELECT source, received_at FROM (
        SELECT source, received_at FROM hookonce.events WHERE id > coalesce({activity.newest_mark(column="count")}, 0)
        ORDER BY id DESC LIMIT %(newest)s) AS uncounted
) AS seen GROUP BY source
"""  # noqa: S608  constants
MAX_UNCOUNTED = 300_000
"""The newest events, as far as no minute that holds them is counted yet, which are looked at one by one."""

_RECENT = """
SELECT source, sum(count)::bigint FROM hookonce.activity
WHERE minutes = 1 AND at > now() - %s::interval AND at <= now() AND what = ANY(%s) GROUP BY source
"""
MOSTLY = timedelta(days=1)
"""Within which a source's deliveries are looked at together: one that brings little must show as well."""
MIN_CONFLICTS = 3
_IN_CONFLICT = """
SELECT source, conflicts, deliveries FROM (
    SELECT source, sum(count) FILTER (WHERE what = 'conflict')::bigint AS conflicts,
           sum(count) FILTER (WHERE what IN ('accepted', 'duplicate'))::bigint AS deliveries
    FROM hookonce.activity
    WHERE minutes = 1 AND at > now() - %s::interval AND at <= now() AND what IN ('accepted', 'duplicate', 'conflict')
    GROUP BY source
) AS summed
WHERE conflicts >= %s AND 2 * conflicts > deliveries
"""
_HOURS = """
SELECT at, source, sum(count)::bigint FROM hookonce.activity
WHERE minutes = 60 AND source = ANY(%s) AND what IN ('accepted', 'duplicate') GROUP BY at, source
"""

_RHYTHM = """
SELECT source, (now() - min(at)) / sum(count) FROM hookonce.activity
WHERE minutes = 60 AND at > now() - interval '7 days' AND what IN ('accepted', 'duplicate')
GROUP BY source HAVING sum(count) >= %s
"""
MIN_DELIVERIES = 10
"""Of a week, before they have a rhythm."""

_UNTIL = """
SELECT extract(epoch FROM at) + 60 FROM hookonce.activity
WHERE minutes = 1 AND source = '' AND what = 'filled' AND at <= now() ORDER BY at DESC LIMIT 1
"""


def counted_until(connection: psycopg.Connection) -> float:
    """Return the end of the last minute a sweep has counted, in seconds since 1970; 0 if none ever did."""
    row = connection.execute(_UNTIL).fetchone()
    return float(row[0]) if row else 0.0


def last_seen(connection: psycopg.Connection) -> dict[str, datetime]:
    """Return when each source's last delivery was taken: the minute it came in, or the very moment if that is recent.

    A repetition counts too, once a receiver has written down that there was one.
    """
    return dict(connection.execute(_LAST, {"newest": MAX_UNCOUNTED}).fetchall())


def recent(connection: psycopg.Connection, span: timedelta, what: Sequence[str]) -> dict[str, int]:
    """Sum up, by source, the minutes within `span`; `done` and `dead` of the last one or two are not known yet."""
    return dict(connection.execute(_RECENT, [span, list(what)]).fetchall())


def mostly_in_conflict(connection: psycopg.Connection) -> dict[str, tuple[int, int]]:
    """Return the sources most of whose deliveries had another body under a known id: how many had, of how many.

    Events of such a source are told apart by something that does not tell them apart, and all but the first are lost.
    """
    rows = connection.execute(_IN_CONFLICT, [MOSTLY, MIN_CONFLICTS])
    return {source: (conflicts, deliveries) for source, conflicts, deliveries in rows}


def words_for_mostly_conflicts(source: str, conflicts: int, deliveries: int) -> str:
    """Say what is wrong with a source that `mostly_in_conflict` found, and what to do."""
    return (
        f"{conflicts} of {deliveries} deliveries within a day had another body under a known id, and were not run; "
        f"its ids do not tell its events apart: compare two with `hookonce events conflicts --source {source}`, then "
        f'name other places in [sources.{source}] id, or write id = "fingerprint" where its provider is hmac or token'
    )


def hours(connection: psycopg.Connection, sources: Sequence[str]) -> dict[str, dict[datetime, int]]:
    """Return the deliveries taken, by source and full hour, as long as they are kept; hours without are left out."""
    found: dict[str, dict[datetime, int]] = {source: {} for source in sources}
    for at, source, number in connection.execute(_HOURS, [list(sources)]):
        found[source][at] = number
    return found


def rhythm(connection: psycopg.Connection) -> dict[str, timedelta]:
    """Return how long it took on average from one delivery of a source to the next, over the last week of hours."""
    return dict(connection.execute(_RHYTHM, [MIN_DELIVERIES]).fetchall())
