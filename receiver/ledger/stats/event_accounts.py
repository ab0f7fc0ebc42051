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

_GONE = f"""
SELECT source, what, count FROM hookonce.activity
WHERE minutes = 0 AND (what = '{PRUNED}' OR starts_with(what, '{_REPLAYED}'))
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
