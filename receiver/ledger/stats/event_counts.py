"""Sums of the events that were accepted, moved on a few thousand events at a time, so that nobody counts them all.

`hookonce.event_counts` is a list of sums and changes to them; adding its rows up gives, by source, `events`: rows of
the ledger up to the id `until`. Retention adds a change in the transaction that deletes, so nobody waits for anybody.
A pruned event, and a replay, leave no row: the statements that do it add them up in `hookonce.activity`. So each event
that was accepted is there, in one status (`receiver.ledger.stats.totals`), or was pruned.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

import psycopg

COUNT_BATCH = 100_000
"""Ids counted at a time."""
MAX_UNCOUNTED = 100_000
"""Events that no sweep has counted yet and that are counted at once."""
MAX_CHANGES = 1000
"""Changes that may lie about, where no new event comes."""
MAX_LATE = timedelta(minutes=5)
"""No insert takes as long; a transaction that does is somebody else's."""
PRUNED = "pruned"
_REPLAYED = "replayed-from."

# An id of its own: the end of a snapshot may be below those of transactions that are under way.
_NEWEST = "SELECT coalesce(max(id), 0), pg_current_xact_id()::text::bigint FROM hookonce.events"
_OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_LOCK = "SELECT pg_try_advisory_xact_lock(x'636F756E7473'::bigint)"  # "counts" in ASCII
_IS_WORTH_IT = """
SELECT coalesce(sum(count) FILTER (WHERE what = 'until'), 0) < %s OR count(*) > %s FROM hookonce.event_counts
"""
_COUNT = """
WITH mark AS MATERIALIZED (
    SELECT done, least(done + %(step)s, greatest(done, %(newest)s)) AS now
    FROM (SELECT coalesce(sum(count), 0)::bigint AS done FROM hookonce.event_counts WHERE what = 'until') AS counted
), folded AS (
    DELETE FROM hookonce.event_counts RETURNING source, what, count
)
INSERT INTO hookonce.event_counts (source, what, count)
SELECT source, what, sum(count) FROM (
    SELECT source, what, count FROM folded
    UNION ALL
    SELECT source, 'events', count(*) FROM hookonce.events
    WHERE id > (SELECT done FROM mark) AND id <= (SELECT now FROM mark) GROUP BY source
    UNION ALL
    SELECT '', 'until', now - done FROM mark
) AS changes GROUP BY source, what HAVING sum(count) <> 0 ORDER BY source, what
"""
_LOCK_TABLE = "LOCK TABLE hookonce.event_counts IN SHARE ROW EXCLUSIVE MODE"
_RECOUNT = """
WITH folded AS (
    DELETE FROM hookonce.event_counts
), mark AS MATERIALIZED (
    SELECT coalesce(sum(count), 0)::bigint AS done FROM hookonce.event_counts WHERE what = 'until'
)
INSERT INTO hookonce.event_counts (source, what, count)
SELECT source, 'events', count(*) FROM hookonce.events WHERE id <= (SELECT done FROM mark) GROUP BY source
UNION ALL SELECT '', 'until', done FROM mark WHERE done <> 0
"""
PRESENT = f"""
SELECT source, sum(n)::bigint AS n FROM (
    SELECT source, count AS n FROM hookonce.event_counts WHERE what = 'events'
    UNION ALL
    SELECT source, count(*) FROM (
        SELECT source FROM hookonce.events
        WHERE id > (SELECT coalesce(sum(count), 0)::bigint FROM hookonce.event_counts WHERE what = 'until')
        ORDER BY id LIMIT {MAX_UNCOUNTED}) AS fresh
    GROUP BY source) AS parts
GROUP BY source
"""  # noqa: S608  a constant
"""Counts the events that are there, by source; of those that no sweep has counted, `MAX_UNCOUNTED` at most."""

_GONE = f"""
SELECT source, what, count FROM hookonce.activity
WHERE minutes = 0 AND (what = '{PRUNED}' OR starts_with(what, '{_REPLAYED}'))
"""  # noqa: S608  constants


class Mark(NamedTuple):
    """The newest event at some moment, a transaction id above all of before, and our clock."""

    newest: int
    xid: int
    at: float


def mark(connection: psycopg.Connection) -> Mark:
    """Look where the ledger ends now; to be given to `advance` a little later."""
    newest, xid = connection.execute(_NEWEST).fetchone() or (0, 0)
    return Mark(newest, xid, time.monotonic())


def advance(connection: psycopg.Connection, last: Mark) -> Mark:
    """Count the events up to a mark, `COUNT_BATCH` at most; return the next mark.

    The next mark is the same one while a transaction is open that was open then, for it may hold a smaller id. Safe in
    many processes at once: one that finds another at it counts nothing.
    """
    following = mark(connection)
    with connection.transaction():
        if connection.execute(_LOCK).fetchone() != (True,):
            return following
        oldest = connection.execute(_OLDEST_OPEN).fetchone() or (0,)
        if oldest[0] < last.xid and time.monotonic() - last.at < MAX_LATE.total_seconds():
            return last
        if connection.execute(_IS_WORTH_IT, [last.newest, MAX_CHANGES]).fetchone() == (True,):
            connection.execute(_COUNT, {"newest": last.newest, "step": COUNT_BATCH})
    return following


def recount(connection: psycopg.Connection) -> None:
    """Count the whole ledger afresh, as after rows were changed by hand; takes a second for some million rows.

    A pruning waits meanwhile; deliveries and workers do not.
    """
    with connection.transaction():
        connection.execute(_LOCK_TABLE)
        connection.execute(_RECOUNT)


@dataclass(slots=True)
class Gone:
    """Events of a source that are there no more, and how often one was replayed, by the status that it had."""

    pruned: int = 0
    replayed: Counter[str] = field(default_factory=Counter)


def noting_pruned(rows: str) -> str:
    """Return the statement that notes that `rows`, which have a source, are pruned: a part of another."""
    return _noting(f"(SELECT source, '{PRUNED}' AS what FROM {rows}) AS pruned")  # noqa: S608  constants


def noting_replays(rows: str) -> str:
    """Return the statement that notes that `rows`, with source and status, are replayed: a part of another."""
    return _noting(f"(SELECT source, '{_REPLAYED}' || status AS what FROM {rows}) AS replayed")  # noqa: S608  constants


def _noting(rows: str) -> str:
    return f"""
    INSERT INTO hookonce.activity (minutes, at, source, what, count)
    SELECT 0, 'epoch'::timestamptz, source, what, count(*) FROM {rows} GROUP BY source, what ORDER BY source, what
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
    found: Counter[str] = Counter(dict(connection.execute(PRESENT).fetchall()))
    for source, each in gone.items():
        found[source] += each.pruned
    return dict(found)
