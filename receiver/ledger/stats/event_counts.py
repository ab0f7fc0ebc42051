"""Counts the events of the ledger a few thousand at a time, off the hot path, so that nobody ever counts them all.

`event_counts` is a list of sums and changes to them; adding its rows up gives, by source, `events`: rows of the ledger
up to the id `until`. Retention adds a change in the transaction that deletes, and who ignores events adds
`newly_ignored`, which the sweep hands on to the counts of this minute. So nobody waits for anybody.

`slice_counts` holds those of them that are not done, by slice (`SLICE` ids), source and status, with when the oldest of
them came, and what is to be known of that:

    dead, discarded, ignored, lost  counted anew when the slice has changed
    received, waiting, ...      only while the queue is too long to be counted by whoever asks
    changed                     events of the slice were replayed or deleted since it was counted
    seen                        the time (in seconds since 1970) up to which all that died or was ignored is counted
    next_open, all_open         the slice of the queue that is to be counted next; and that each of them was

Which slices have changed since they were counted is known at any moment: by `changed`, and by the time of ends. These
whoever reads the sums counts himself (`receiver.ledger.stats.totals`): so the sums of what has ended are exact.
"""

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.states import EventStatus, RunStatus, Waits, one_of
from hookonce.receiver.ledger.stats import activity

COUNT_BATCH = 100_000
"""Ids counted at a time."""
MAX_CHANGES = 1000
"""Changes that may lie about, where no new event comes."""
MAX_LATE = timedelta(minutes=5)
"""No insert, and no end of a run, takes as long; a transaction that does is somebody else's."""
SLICE = 5_000
"""Ids that are counted together."""
MAX_QUEUE = 20_000
"""Rows of the queue that whoever asks counts one by one."""
OPEN_BUDGET = timedelta(milliseconds=100)
"""How long one turn may count slices of a longer queue: a million rows are counted within some minutes."""
OPEN_INTERVAL = timedelta(seconds=5)
"""How often the sweeps, together, take such a turn."""
MAX_ENDS = 100_000
"""Ends since the last count that are looked at for what died or was ignored."""

IS_OPEN = one_of("what", (EventStatus.RECEIVED, EventStatus.RUNNING, EventStatus.WAITING, EventStatus.HELD))
HAS_ENDED = one_of("what", (EventStatus.DEAD, EventStatus.DISCARDED, EventStatus.IGNORED))

# An id of its own: the end of a snapshot may be below those of transactions that are under way.
_NEWEST = """
SELECT coalesce(max(id), 0), pg_current_xact_id()::text::bigint, extract(epoch FROM now())::bigint FROM hookonce.events
"""
_OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_LOCK = "SELECT pg_try_advisory_xact_lock(x'636F756E7473'::bigint)"  # "counts" in ASCII
_IS_WORTH_IT = """
SELECT coalesce(sum(count) FILTER (WHERE what = 'until'), 0) < %s OR count(*) > %s FROM hookonce.event_counts
"""
_LOCK_TABLES = "LOCK TABLE hookonce.event_counts, hookonce.slice_counts IN SHARE ROW EXCLUSIVE MODE"

_COUNT = """
WITH mark AS MATERIALIZED (
    SELECT done, least(done + %(step)s, greatest(done, %(newest)s)) AS now
    FROM (SELECT coalesce(sum(count), 0)::bigint AS done FROM hookonce.event_counts WHERE what = 'until') AS counted
), folded AS (
    DELETE FROM hookonce.event_counts WHERE what IN ('events', 'until') RETURNING source, what, count
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

_NEWLY = activity.NEWLY_IGNORED
_HAND_ON = f"DELETE FROM hookonce.event_counts WHERE what = '{_NEWLY}' RETURNING source, count"  # noqa: S608  constants

_SEE = """
WITH gone AS (DELETE FROM hookonce.slice_counts WHERE what = 'seen')
INSERT INTO hookonce.slice_counts (slice, source, what, count) VALUES (0, '', 'seen', %s)
"""

# Where the database's clock was set back, what has ended since is looked for from a minute ago.
_SEEN_UNTIL = """
SELECT CASE WHEN to_timestamp(count) < now() THEN to_timestamp(count) - %s ELSE now() - interval '1 minute' END
FROM hookonce.slice_counts WHERE what = 'seen'
"""
_LATE = timedelta(seconds=10)
"""So much may lie between the time of an end and the transaction id that its statement takes."""

CHANGED = f"""
SELECT slice FROM hookonce.slice_counts WHERE what = 'changed'
UNION
SELECT event / {SLICE} FROM (
    SELECT event, status FROM hookonce.runs
    WHERE finished_at >= %(seen)s AND finished_at < now() + interval '10 years'  -- or a plan for any time reads it all
    LIMIT {MAX_ENDS}) AS ended
WHERE status <> '{RunStatus.DONE}'
      OR EXISTS (SELECT FROM hookonce.runs dead
                 WHERE dead.event = ended.event AND dead.status = '{RunStatus.DEAD}' AND dead.is_last OFFSET 0)
"""  # noqa: S608  constants
"""The slices in which the sums of what has ended may be others by now."""


# OFFSET 0: an index is asked about each, whatever the planner takes the sizes of the tables to be.
def _ended(status: str, unless: str = "") -> str:
    return f"""
    SELECT DISTINCT r.event, '{status}' AS status
    FROM slices CROSS JOIN LATERAL (
        SELECT event FROM hookonce.runs
        WHERE event >= slices.slice * {SLICE} AND event < (slices.slice + 1) * {SLICE}
              AND status = '{status}' AND is_last OFFSET 0) AS r
    WHERE NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = r.event OFFSET 0){unless}"""  # noqa: S608  constants


_UNLESS_OTHERS = f"""
          AND NOT EXISTS (SELECT FROM hookonce.runs o WHERE o.event = r.event AND o.is_last
                              AND {one_of("o.status", (RunStatus.DEAD, RunStatus.DONE))} OFFSET 0)"""
ENDED = f"""
SELECT e.source, ended.status, count(*) AS number, min(e.received_at) AS first, ended.event / {SLICE} AS slice
FROM ({_ended(RunStatus.DEAD)} UNION ALL {_ended(RunStatus.DISCARDED, _UNLESS_OTHERS)}
      UNION ALL {_ended(EventStatus.IGNORED)}) AS ended
     CROSS JOIN LATERAL (SELECT source, received_at FROM hookonce.events WHERE id = ended.event OFFSET 0) AS e
GROUP BY e.source, ended.status, ended.event / {SLICE}
"""  # noqa: S608  constants
"""Counts what is dead, discarded or ignored in the rows of `slices` (which is to be defined), by partial indexes."""


def open_events(condition: str) -> str:
    """Return the statement that counts open events by source, status and slice; `condition` is of rows of the queue."""
    return f"""
SELECT source, status, count(*) AS number, min(received_at) AS first, event / {SLICE} AS slice
FROM (SELECT event, source, min(received_at) AS received_at,
             CASE WHEN bool_or(token IS NOT NULL) THEN '{EventStatus.RUNNING}'
                  WHEN bool_or(waits IS NOT DISTINCT FROM '{Waits.HELD}') THEN '{EventStatus.HELD}'
                  WHEN bool_and(handler IS NULL) THEN '{EventStatus.RECEIVED}'
                  ELSE '{EventStatus.WAITING}' END AS status
      FROM hookonce.queue WHERE {condition} GROUP BY event, source) AS open
GROUP BY source, status, event / {SLICE}"""  # noqa: S608  constants


_KEEP_ENDED = f"""
WITH slices AS MATERIALIZED ({CHANGED}
), counted AS MATERIALIZED ({ENDED}
), gone AS (
    DELETE FROM hookonce.slice_counts WHERE slice IN (SELECT slice FROM slices) AND ({HAS_ENDED} OR what = 'changed')
)
INSERT INTO hookonce.slice_counts (slice, source, what, count, first_at)
SELECT slice, source, status, number, first FROM counted
"""  # noqa: S608  constants

_KEEP_OPEN = f"""
WITH counted AS MATERIALIZED ({open_events(f"event >= %(slice)s * {SLICE} AND event < (%(slice)s + 1) * {SLICE}")}
), gone AS (
    DELETE FROM hookonce.slice_counts WHERE slice >= %(from)s AND slice <= %(slice)s AND {IS_OPEN}
)
INSERT INTO hookonce.slice_counts (slice, source, what, count, first_at)
SELECT slice, source, status, number, first FROM counted
"""  # noqa: S608  constants
_FORGET_OPEN = f"DELETE FROM hookonce.slice_counts WHERE {IS_OPEN} OR what IN ('next_open', 'all_open')"  # noqa: S608
_FORGET_REST = f"DELETE FROM hookonce.slice_counts WHERE slice >= %s AND {IS_OPEN}"  # noqa: S608  constants
_NEXT_OPEN = """
SELECT slice, first_at BETWEEN now() - %s::interval AND now() FROM hookonce.slice_counts WHERE what = 'next_open'
"""
_NEWEST_OPEN = f"SELECT coalesce(max(slice), 0) FROM hookonce.slice_counts WHERE {IS_OPEN}"  # noqa: S608  constants
_MOVE_OPEN = """
WITH gone AS (DELETE FROM hookonce.slice_counts WHERE what = 'next_open')
INSERT INTO hookonce.slice_counts (slice, source, what, count, first_at)
VALUES (%s, '', 'next_open', 0, clock_timestamp())
"""
_HAS_ALL_OPEN = "SELECT EXISTS (SELECT FROM hookonce.slice_counts WHERE what = 'all_open')"
_ALL_OPEN = """
INSERT INTO hookonce.slice_counts (slice, source, what, count)
SELECT 0, '', 'all_open', 0 WHERE NOT EXISTS (SELECT FROM hookonce.slice_counts WHERE what = 'all_open')
"""
_FIRST_OPEN = (
    f"SELECT event / {SLICE} FROM hookonce.queue WHERE event >= %s::bigint * {SLICE} ORDER BY event LIMIT 1"  # noqa: S608
)
_IS_LONG = f"""
SELECT count(*) > {MAX_QUEUE} FROM (SELECT event FROM hookonce.queue ORDER BY event, n LIMIT {MAX_QUEUE + 1}) AS head
"""  # noqa: S608  constants

_RECOUNT = """
WITH folded AS (
    DELETE FROM hookonce.event_counts WHERE what IN ('events', 'until')
), mark AS MATERIALIZED (
    SELECT coalesce(sum(count), 0)::bigint AS done FROM hookonce.event_counts WHERE what = 'until'
)
INSERT INTO hookonce.event_counts (source, what, count)
SELECT source, 'events', count(*) FROM hookonce.events WHERE id <= (SELECT done FROM mark) GROUP BY source
UNION ALL SELECT '', 'until', done FROM mark WHERE done <> 0
"""
_FORGET_SLICES = "DELETE FROM hookonce.slice_counts"
_RECOUNT_ENDED = f"""
WITH slices AS MATERIALIZED (SELECT generate_series(%(first)s::bigint, %(last)s::bigint) AS slice)
INSERT INTO hookonce.slice_counts (slice, source, what, count, first_at)
SELECT slice, source, status, number, first FROM ({ENDED}) AS counted
"""  # noqa: S608  constants
_NOW = "SELECT extract(epoch FROM now() - interval '1 minute')::bigint"
_SLICES = f"SELECT coalesce(min(id), 0) / {SLICE}, coalesce(max(id), 0) / {SLICE} FROM hookonce.events"  # noqa: S608
_RECOUNTED = 200
"""Slices that a recount looks at by one statement."""


def changed(rows: str, column: str) -> str:
    """Return the statement that notes in which slices `rows` have changed: a part of the one that changes them."""
    return f"""
    INSERT INTO hookonce.slice_counts (slice, source, what, count)
    SELECT DISTINCT {column} / {SLICE}, '', 'changed', 0 FROM {rows}"""  # noqa: S608  constants


def newly_ignored(rows: str) -> str:
    """Return the statement that notes that `rows` have just been ignored: a part of another one."""
    return f"""
    INSERT INTO hookonce.event_counts (source, what, count)
    SELECT source, '{_NEWLY}', count(*) FROM {rows} GROUP BY source"""  # noqa: S608  constants


def no_longer_ignored(rows: str) -> str:
    """Return the statement that notes that `rows` are ignored no more: a part of another one."""
    return changed(rows, "event")


class Mark(NamedTuple):
    """The newest event at some moment, a transaction id above all of before, the database's clock and ours."""

    newest: int
    xid: int
    seconds: int
    at: float


def mark(connection: psycopg.Connection) -> Mark:
    """Look where the ledger ends now; to be given to `advance` a little later."""
    row = connection.execute(_NEWEST).fetchone() or (0, 0, 0)
    return Mark(row[0], row[1], row[2], time.monotonic())


def advance(connection: psycopg.Connection, last: Mark) -> Mark:
    """Count the events up to a mark, `COUNT_BATCH` at most, and the slices that have changed; return the next mark.

    That is the same one while a transaction is open that was open then, for it may hold a smaller id, or an end of
    before. Safe in many processes at once: who finds another at it counts nothing.
    """
    following = mark(connection)
    with connection.transaction():
        if connection.execute(_LOCK).fetchone() != (True,):
            return following
        _hand_on(connection)
        if seen_until(connection) is None:
            recount(connection)
        oldest = connection.execute(_OLDEST_OPEN).fetchone() or (0,)
        connection.execute(_KEEP_ENDED, {"seen": seen_until(connection)}, prepare=False)
        _keep_open(connection)
        if oldest[0] < last.xid and time.monotonic() - last.at < MAX_LATE.total_seconds():
            return last
        connection.execute(_SEE, [last.seconds])
        if connection.execute(_IS_WORTH_IT, [last.newest, MAX_CHANGES]).fetchone() == (True,):
            connection.execute(_COUNT, {"newest": last.newest, "step": COUNT_BATCH})
    return following


def _hand_on(connection: psycopg.Connection) -> None:
    ignored: Counter[tuple[str, str]] = Counter()
    for source, number in connection.execute(_HAND_ON):
        ignored[source, EventStatus.IGNORED] += number
    if ignored:
        activity.add(connection, ignored)


def seen_until(connection: psycopg.Connection) -> datetime | None:
    """Return since when the ends have to be looked at, to know what has changed; None if nothing was ever counted."""
    row = connection.execute(_SEEN_UNTIL, [_LATE]).fetchone()
    return row[0] if row else None


def has_long_queue(connection: psycopg.Connection) -> bool:
    """Return whether more is open than whoever asks should count."""
    return connection.execute(_IS_LONG).fetchone() == (True,)


def recount(connection: psycopg.Connection) -> None:
    """Count the whole ledger afresh, as after rows were changed by hand; takes a second for some million rows.

    A replay or a pruning waits meanwhile, deliveries and workers do not.
    """
    with connection.transaction():
        connection.execute(_LOCK_TABLES)
        connection.execute(_RECOUNT)
        connection.execute(_FORGET_SLICES)
        connection.execute(_SEE, connection.execute(_NOW).fetchone())
        first, last = connection.execute(_SLICES).fetchone() or (0, 0)
        for start in range(first, last + 1, _RECOUNTED):
            connection.execute(_RECOUNT_ENDED, {"first": start, "last": min(start + _RECOUNTED - 1, last)})


def newest_open(connection: psycopg.Connection) -> int | None:
    """Return the newest slice of the queue that the sweep has counted; None unless it has counted each of them."""
    if connection.execute(_HAS_ALL_OPEN).fetchone() != (True,) or not has_long_queue(connection):
        return None
    row = connection.execute(_NEWEST_OPEN).fetchone()
    return int(row[0]) if row else None


def _keep_open(connection: psycopg.Connection) -> None:
    """Count a few slices of a queue that is long, the newest among them; forget them where it is no longer."""
    if not has_long_queue(connection):
        connection.execute(_FORGET_OPEN)
        return
    following, has_had_turn = connection.execute(_NEXT_OPEN, [OPEN_INTERVAL]).fetchone() or (0, False)
    if has_had_turn:
        return
    deadline = time.monotonic() + OPEN_BUDGET.total_seconds()
    (newest,) = connection.execute(_NEWEST_OPEN).fetchone() or (0,)
    if following < newest:
        _keep_open_from(connection, newest, deadline)
    following = _keep_open_from(connection, following, deadline)
    connection.execute(_MOVE_OPEN, [following])


def _keep_open_from(connection: psycopg.Connection, following: int, deadline: float) -> int:
    """Count slices of the queue, one at least; return where to go on, which is at the beginning if that was all."""
    while found := connection.execute(_FIRST_OPEN, [following]).fetchone():
        connection.execute(_KEEP_OPEN, {"from": following, "slice": found[0]})
        following = found[0] + 1
        if time.monotonic() > deadline:
            return int(following)
    connection.execute(_FORGET_REST, [following])
    connection.execute(_ALL_OPEN)
    return 0
