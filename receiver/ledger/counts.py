"""Counts the events of the ledger a few thousand at a time, off the hot path, so that nobody ever counts them all.

`event_counts` is a list of sums and changes to them; adding its rows up gives, by source, `events` (rows of the
ledger up to the id `until`) and `ignored` (of all rows). Who ignores events, makes ignored ones due again, or
prunes, adds a change in the same transaction, so nobody waits for anybody. The sweep adds what is new and folds.
"""

import time
from datetime import timedelta
from typing import NamedTuple

import psycopg

STEP = 100_000
"""Ids counted at a time."""
MOST_CHANGES = 1000
"""Changes that may lie about, where no new event comes."""
PATIENCE = timedelta(minutes=5)
"""No insert takes as long; a transaction that does is somebody else's."""

_NEWEST = "SELECT coalesce(max(id), 0), pg_snapshot_xmax(pg_current_snapshot())::text::bigint FROM events"
_OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_LOCK = "SELECT pg_try_advisory_xact_lock(x'636F756E7473'::bigint)"  # "counts" in ASCII
_IS_WORTH_IT = """
SELECT coalesce(sum(count) FILTER (WHERE what = 'until'), 0) < %s OR count(*) > %s FROM event_counts
"""
_LOCK_TABLE = "LOCK TABLE event_counts IN SHARE ROW EXCLUSIVE MODE"

_COUNT = """
WITH mark AS MATERIALIZED (
    SELECT done, least(done + %(step)s, greatest(done, %(newest)s)) AS now
    FROM (SELECT coalesce(sum(count), 0)::bigint AS done FROM event_counts WHERE what = 'until') AS counted
), folded AS (
    DELETE FROM event_counts RETURNING source, what, count
)
INSERT INTO event_counts (source, what, count)
SELECT source, what, sum(count) FROM (
    SELECT source, what, count FROM folded
    UNION ALL
    SELECT source, 'events', count(*) FROM events
    WHERE id > (SELECT done FROM mark) AND id <= (SELECT now FROM mark) GROUP BY source
    UNION ALL
    SELECT '', 'until', now - done FROM mark
) AS changes GROUP BY source, what HAVING sum(count) <> 0 ORDER BY source, what
"""

_RECOUNT = """
WITH folded AS (
    DELETE FROM event_counts
), mark AS MATERIALIZED (
    SELECT coalesce(sum(count), 0)::bigint AS done FROM event_counts WHERE what = 'until'
)
INSERT INTO event_counts (source, what, count)
SELECT source, 'events', count(*) FROM events WHERE id <= (SELECT done FROM mark) GROUP BY source
UNION ALL SELECT source, 'ignored', count(*) FROM events WHERE status = 'ignored' GROUP BY source
UNION ALL SELECT '', 'until', done FROM mark WHERE done <> 0
"""


class Mark(NamedTuple):
    """The newest event at some moment, the transaction id then next to be given out, and our clock then."""

    newest: int
    xid: int
    at: float


def mark(connection: psycopg.Connection) -> Mark:
    """Look where the ledger ends now; to be given to `advance` a little later."""
    row = connection.execute(_NEWEST).fetchone() or (0, 0)
    return Mark(row[0], row[1], time.monotonic())


def advance(connection: psycopg.Connection, last: Mark) -> Mark:
    """Count the events up to a mark, `STEP` at most, and fold all changes into sums; give the mark for next time.

    That is the same one while a transaction is open that was open then, for it may hold a smaller id. Safe in
    many processes at once: who finds another at it counts nothing.
    """
    following = mark(connection)
    with connection.transaction():
        if connection.execute(_LOCK).fetchone() != (True,):
            return following
        oldest = connection.execute(_OLDEST_OPEN).fetchone() or (0,)
        if oldest[0] < last.xid and time.monotonic() - last.at < PATIENCE.total_seconds():
            return last
        if connection.execute(_IS_WORTH_IT, [last.newest, MOST_CHANGES]).fetchone() == (True,):
            connection.execute(_COUNT, {"newest": last.newest, "step": STEP})
    return following


def recount(connection: psycopg.Connection) -> None:
    """Count the whole ledger afresh, as after rows were changed by hand; takes a second for some million rows.

    Who ignores events meanwhile waits, deliveries do not.
    """
    with connection.transaction():
        connection.execute(_LOCK_TABLE)
        connection.execute(_RECOUNT)
