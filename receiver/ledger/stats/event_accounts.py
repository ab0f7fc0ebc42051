"""The account of events: each that was accepted is there, in one status, or was pruned.

Events in each status are counted by `totals`. What is there no more, and what was replayed, leaves no row: it is added
up in `hookonce.activity` by the statement that does it. So an event counts once, whatever becomes of it: a replay takes
it from `done` or `dead`, and says so apart.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg

MAX_UNCOUNTED = 100_000
"""Events that no sweep has counted yet and that are counted at once."""
PRUNED = "pruned"
_REPLAYED = "replayed-from."

_HAS_BEGUN = f"SELECT FROM hookonce.activity WHERE minutes = 0 AND source = '' AND what = '{PRUNED}'"

_GONE = f"""
SELECT source, what, count FROM hookonce.activity
WHERE minutes = 0 AND (what = '{PRUNED}' OR starts_with(what, '{_REPLAYED}')) AND source <> ''
"""  # noqa: S608  constants
_PRESENT = f"""
WITH counted AS MATERIALIZED (
    SELECT source, what, sum(count)::bigint AS n FROM hookonce.event_counts
    WHERE what IN ('events', 'until') GROUP BY source, what
)
SELECT source, sum(n)::bigint FROM (
    SELECT source, n FROM counted WHERE what = 'events'
    UNION ALL
    SELECT source, count(*) FROM (
        SELECT source FROM hookonce.events WHERE id > coalesce((SELECT n FROM counted WHERE what = 'until'), 0)
        ORDER BY id LIMIT {MAX_UNCOUNTED}) AS fresh
    GROUP BY source) AS parts
GROUP BY source
"""  # noqa: S608  constants
_BEGIN = f"""
INSERT INTO hookonce.activity (minutes, at, source, what, count)
SELECT 0, 'epoch'::timestamptz, '', '{PRUNED}', 0
UNION ALL
SELECT 0, 'epoch', source, '{PRUNED}', accepted.count - coalesce(present.n, 0)
FROM (SELECT source, count FROM hookonce.activity WHERE minutes = 0 AND what = 'accepted') AS accepted
     LEFT JOIN ({_PRESENT}) AS present (source, n) USING (source)
WHERE accepted.count > coalesce(present.n, 0)
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = activity.count + excluded.count
"""  # noqa: S608  constants


@dataclass(slots=True)
class Gone:
    """Events of a source that are there no more, and how often one was replayed, by the status that it had."""

    pruned: int = 0
    replayed: Counter[str] = field(default_factory=Counter)


def noting_pruned(rows: str) -> str:
    """Return the statement that notes that `rows`, which have a source, are pruned: a part of another."""
    return f"""
    INSERT INTO hookonce.activity (minutes, at, source, what, count)
    SELECT 0, 'epoch'::timestamptz, source, '{PRUNED}', count(*) FROM {rows} GROUP BY source ORDER BY source
    ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = activity.count + excluded.count"""  # noqa: S608  constants


def noting_replays(rows: str) -> str:
    """Return the statement that notes that `rows`, with source and status, are replayed: a part of another."""
    return f"""
    INSERT INTO hookonce.activity (minutes, at, source, what, count)
    SELECT 0, 'epoch'::timestamptz, source, '{_REPLAYED}' || status, count(*) FROM {rows}
    GROUP BY source, status ORDER BY source, status
    ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = activity.count + excluded.count"""  # noqa: S608  constants


def begin(connection: psycopg.Connection) -> None:
    """Take what was accepted and is there no more for pruned, once: versions before this one did not say so."""
    if connection.execute(_HAS_BEGUN).fetchone() is None:
        with connection.transaction():
            connection.execute("LOCK TABLE hookonce.activity IN SHARE ROW EXCLUSIVE MODE")
            if connection.execute(_HAS_BEGUN).fetchone() is None:
                connection.execute(_BEGIN.encode())


def gone(connection: psycopg.Connection) -> dict[str, Gone]:
    """Return, by source, what was pruned and replayed."""
    found: dict[str, Gone] = {}
    for source, what, number in connection.execute(_GONE):
        each = found.setdefault(source, Gone())
        if what == PRUNED:
            each.pruned = number
        else:
            each.replayed[what.removeprefix(_REPLAYED)] = number
    return found


def accepted(connection: psycopg.Connection, gone: Mapping[str, Gone]) -> dict[str, int]:
    """Count, by source, the events that were ever accepted, imported ones too; `gone` is of the same moment."""
    found: Counter[str] = Counter(dict(connection.execute(_PRESENT.encode()).fetchall()))
    for source, each in gone.items():
        found[source] += each.pruned
    return dict(found)
