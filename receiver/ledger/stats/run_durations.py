"""How long the last attempts of runs took: a histogram per source, among the sums of `activity`.

How they ended, and in how many attempts, is counted by handler besides (`receiver.ledger.stats.counters`).
"""

from collections.abc import Sequence
from datetime import datetime

import psycopg

LIMITS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds: the buckets in which runs are counted by how long they took."""

Uncounted = tuple[str, str, int]
"""Source or handler, what is counted (`took.3`, `ended.done`), and how often."""

# `took.<n>`: last attempts that took up to the n-th of LIMITS; `took.sum`: how long all of them took (µs).
_ENDED = """
WITH ended AS MATERIALIZED (
    SELECT e.source, r.handler, r.status, r.attempts, extract(epoch FROM r.finished_at - r.started_at)::float AS took,
           r.result ->> 'skipped' AS skipped
    FROM hookonce.runs r CROSS JOIN LATERAL (SELECT source FROM hookonce.events WHERE id = r.event OFFSET 0) AS e
    WHERE r.finished_at >= %(begin)s AND r.finished_at < %(end)s AND r.started_at <= r.finished_at
          AND r.handler <> ''
)
"""
_SUMS = """
SELECT 0, 'epoch'::timestamptz, source, 'took.' || n, count(*) FROM
    (SELECT source, (SELECT count(*) FROM unnest(%(limits)s::float[]) AS l WHERE l < took) AS n FROM ended) AS binned
GROUP BY source, n
UNION ALL SELECT 0, 'epoch', source, 'took.sum', round(sum(took) * 1000000) FROM ended GROUP BY source
UNION ALL SELECT 0, 'epoch', handler, 'ended.' || status, count(*) FROM ended GROUP BY handler, status
UNION ALL SELECT 0, 'epoch', handler, 'attempts', sum(attempts) FROM ended GROUP BY handler
UNION ALL SELECT 0, 'epoch', handler, 'retries', sum(greatest(attempts - 1, 0)) FROM ended GROUP BY handler
UNION ALL SELECT 0, 'epoch', handler, 'stale', count(*) FROM ended WHERE skipped = 'stale' GROUP BY handler
UNION ALL SELECT 0, 'epoch', handler, 'when-failed', count(*) FROM ended WHERE skipped = 'when failed' GROUP BY handler
ORDER BY 3, 4
"""
_ADD = f"""
{_ENDED}
INSERT INTO hookonce.activity (minutes, at, source, what, count)
{_SUMS}
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = activity.count + excluded.count
"""
_UNCOUNTED = f"{_ENDED}{_SUMS}"

_TOOK = "SELECT source, split_part(what, '.', 2), count FROM hookonce.activity WHERE minutes = 0 AND what LIKE 'took.%'"


def add(connection: psycopg.Connection, begin: datetime, end: datetime) -> None:
    """Add the runs that ended from `begin` to before `end`; once, in the transaction that counts those minutes."""
    connection.execute(_ADD, {"begin": begin, "end": end, "limits": list(LIMITS)})


def uncounted(connection: psycopg.Connection, begin: datetime, end: datetime) -> list[Uncounted]:
    """Return what `add` would add of that time."""
    rows = connection.execute(_UNCOUNTED, {"begin": begin, "end": end, "limits": list(LIMITS)})
    return [(of, what, int(number)) for _, _, of, what, number in rows]


def by_source(
    connection: psycopg.Connection, uncounted: Sequence[Uncounted] = ()
) -> dict[str, tuple[list[int], float]]:
    """Count, by source, the runs that ended by how long their last attempt took, and sum that up in seconds.

    Those of `uncounted` are added.
    One count for each of `LIMITS` (of those that took longer than the limit before) and one for what is beyond.
    """
    found: dict[str, tuple[list[int], float]] = {}
    fresh = [(source, what[len("took.") :], n) for source, what, n in uncounted if what.startswith("took.")]
    for source, part, number in [*connection.execute(_TOOK), *fresh]:
        counts, seconds = found.get(source, ([0] * (len(LIMITS) + 1), 0.0))
        if part == "sum":
            seconds += number / 1_000_000
        else:
            counts[int(part)] += number
        found[source] = counts, seconds
    return found
