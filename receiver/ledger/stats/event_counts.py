"""Counts the events of the ledger a few thousand at a time, off the hot path, so that nobody ever counts them all.

`event_counts` is a list of sums and changes to them; adding its rows up gives, by source, `events` (rows of the
ledger up to the id `until`) and `ignored` (of all rows). Who ignores events, makes ignored ones due again, or
prunes, adds a change in the same transaction, so nobody waits for anybody. The sweep adds what is new and folds.

Who ignores events adds `newly_ignored` too, which the sweep hands on to the counts of this minute.
"""

import time
from collections import Counter
from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import activity

COUNT_BATCH = 100_000
"""Ids counted at a time."""
MAX_CHANGES = 1000
"""Changes that may lie about, where no new event comes."""
RECOUNT_LOCK_TIMEOUT = timedelta(minutes=5)
"""No insert takes as long; a transaction that does is somebody else's."""

_NEWEST = (
    "SELECT coalesce(max(id), 0), pg_snapshot_xmax(pg_current_snapshot())::text::bigint FROM hookonce.events"
)
_OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_LOCK = "SELECT pg_try_advisory_xact_lock(x'636F756E7473'::bigint)"  # "counts" in ASCII
_IS_WORTH_IT = """
SELECT coalesce(sum(count) FILTER (WHERE what = 'until'), 0) < %s OR count(*) > %s FROM hookonce.event_counts
"""
_NEWLY = "newly_ignored"
_HAND_ON = f"DELETE FROM hookonce.event_counts WHERE what = '{_NEWLY}' RETURNING source, count"  # noqa: S608  constants
_LOCK_TABLE = "LOCK TABLE hookonce.event_counts IN SHARE ROW EXCLUSIVE MODE"

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

_RECOUNT = f"""
WITH folded AS (
    DELETE FROM hookonce.event_counts WHERE what <> '{_NEWLY}'
), mark AS MATERIALIZED (
    SELECT coalesce(sum(count), 0)::bigint AS done FROM hookonce.event_counts WHERE what = 'until'
)
INSERT INTO hookonce.event_counts (source, what, count)
SELECT source, 'events', count(*) FROM hookonce.events WHERE id <= (SELECT done FROM mark) GROUP BY source
UNION ALL
SELECT source, '{EventStatus.IGNORED}', count(*) FROM hookonce.events
WHERE status = '{EventStatus.IGNORED}' GROUP BY source
UNION ALL SELECT '', 'until', done FROM mark WHERE done <> 0
"""  # noqa: S608  constants


def no_longer_ignored(rows: str) -> str:
    """Return the statement that takes `rows` from the ignored events: a part of another one."""
    return f"""
    INSERT INTO hookonce.event_counts (source, what, count)
    SELECT source, '{EventStatus.IGNORED}', -count(*) FROM {rows} GROUP BY source"""  # noqa: S608  constants


def newly_ignored(rows: str) -> str:
    """Return the statement that notes that `rows` have just been ignored: a part of another one."""
    return f"""
    INSERT INTO hookonce.event_counts (source, what, count)
    SELECT source, what, count(*) FROM {rows}, (VALUES ('{EventStatus.IGNORED}'), ('{_NEWLY}')) AS noted (what)
    GROUP BY source, what"""  # noqa: S608  constants


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
    """Count the events up to a mark, `COUNT_BATCH` at most, and fold all changes into sums; return the next mark.

    That is the same one while a transaction is open that was open then, for it may hold a smaller id. Safe in
    many processes at once: who finds another at it counts nothing.
    """
    following = mark(connection)
    with connection.transaction():
        if connection.execute(_LOCK).fetchone() != (True,):
            return following
        _hand_on(connection)
        oldest = connection.execute(_OLDEST_OPEN).fetchone() or (0,)
        if oldest[0] < last.xid and time.monotonic() - last.at < RECOUNT_LOCK_TIMEOUT.total_seconds():
            return last
        if connection.execute(_IS_WORTH_IT, [last.newest, MAX_CHANGES]).fetchone() == (True,):
            connection.execute(_COUNT, {"newest": last.newest, "step": COUNT_BATCH})
    return following


def _hand_on(connection: psycopg.Connection) -> None:
    ignored: Counter[tuple[str, str]] = Counter()
    for source, number in connection.execute(_HAND_ON):
        ignored[source, EventStatus.IGNORED] += number
    if ignored:
        activity.add(connection, ignored)


def recount(connection: psycopg.Connection) -> None:
    """Count the whole ledger afresh, as after rows were changed by hand; takes a second for some million rows.

    Who ignores events meanwhile waits, deliveries do not.
    """
    with connection.transaction():
        connection.execute(_LOCK_TABLE)
        connection.execute(_RECOUNT)
