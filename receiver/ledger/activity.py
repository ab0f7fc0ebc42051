"""What happened per minute and source, for charts, alerts and counters: written by the sweep, never by a delivery.

The table holds three grains: minutes (`KEPT_MINUTES`), hours (`KEPT_HOURS`) and, under 0 minutes, the sum since
ever, and as `last` the minute of a source's last delivery (in seconds since 1970). A minute is counted once, after
it is over and every statement that began in it has ended; the row `filled` of a minute says that it was, and up to
which event id. So sweeps at once, or stopped halfway, count nothing twice. Refused and repeated deliveries leave no
row to count: the tally adds those itself.

`what` is accepted, done, dead (events; a replayed event is done again), duplicate or `rejected.<reason>`.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import psycopg

from receiver.ledger import durations

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SETTLED = timedelta(seconds=10)
"""How long after its end a minute is counted: well over what an insert or the end of a run may take."""
STEP = timedelta(minutes=10)
"""How much of an outage is caught up at a time."""
FIRST = timedelta(hours=1)
"""How far back the very first sweep counts."""
KEPT_MINUTES = timedelta(days=8)
KEPT_HOURS = timedelta(weeks=9)
MONDAY = datetime(2000, 1, 3, tzinfo=UTC)
"""Where buckets are counted from."""


class Count(NamedTuple):
    """How often something happened at a source ('' where no source has the name) in the bucket that begins `at`."""

    at: datetime
    source: str
    what: str
    number: int


_LOCK = "SELECT pg_try_advisory_xact_lock(x'6163746976697479'::bigint)"  # "activity" in ASCII

_FILLED = """
SELECT date_trunc('minute', now() - %(settled)s), at FROM activity
WHERE minutes = 1 AND source = '' AND what = 'filled' ORDER BY at DESC LIMIT 1
"""

_NEVER_FILLED = "SELECT date_trunc('minute', now() - %(settled)s), date_trunc('minute', now() - %(first)s)"

# Ids are given out in the order of time, but for the seconds a statement takes: two minutes are plenty.
_FLOOR = """
SELECT count FROM activity
WHERE minutes = 1 AND source = '' AND what = 'filled' AND at <= %(begin)s - interval '2 minutes'
ORDER BY at DESC LIMIT 1
"""
_FIRST_FLOOR = """
SELECT id FROM events WHERE received_at < %(begin)s - interval '2 minutes' ORDER BY id DESC LIMIT 1
"""

_COUNT = """
WITH new AS MATERIALIZED (
    SELECT id, date_trunc('minute', received_at) AS at, source, status FROM events
    WHERE id > %(floor)s AND received_at >= %(begin)s AND received_at < %(end)s
), finished AS (
    SELECT event, date_trunc('minute', max(finished_at)) AS at FROM runs
    WHERE finished_at >= %(begin)s AND finished_at < %(end)s GROUP BY event
), counted AS (
    SELECT at, source, 'accepted' AS what, count(*) FROM new GROUP BY at, source
    UNION ALL
    SELECT at, source, 'dead', count(*) FROM new
    WHERE status = 'dead' AND NOT EXISTS (SELECT FROM runs WHERE runs.event = new.id) GROUP BY at, source
    UNION ALL
    SELECT f.at, e.source, e.status, count(*) FROM finished f JOIN events e ON e.id = f.event
    WHERE e.status IN ('done', 'dead')
          AND NOT EXISTS (SELECT FROM runs r WHERE r.event = f.event AND r.finished_at >= %(end)s)
    GROUP BY f.at, e.source, e.status
)
"""

_LIVE = f"{_COUNT} SELECT at, source, what, sum(count)::bigint FROM counted GROUP BY at, source, what"  # noqa: S608  the same

_FILL = f"""{_COUNT}, minutes AS (
    SELECT at, greatest(max(max(id)) OVER (ORDER BY at), %(floor)s) AS highest
    FROM generate_series(%(begin)s, %(end)s - interval '1 minute', interval '1 minute') AS at
         LEFT JOIN new USING (at) GROUP BY at
), kept AS (
    INSERT INTO activity (minutes, at, source, what, count)
    SELECT 1, at, source, what, sum(count) FROM counted GROUP BY at, source, what
    UNION ALL SELECT 1, at, '', 'filled', highest FROM minutes
)
INSERT INTO activity (minutes, at, source, what, count)
SELECT 0, 'epoch'::timestamptz, source, what, sum(count) AS count FROM counted GROUP BY source, what
UNION ALL SELECT 0, 'epoch'::timestamptz, source, 'last', extract(epoch FROM max(at)) FROM new GROUP BY source
ORDER BY source, what
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count =
    CASE activity.what WHEN 'last' THEN greatest(activity.count, excluded.count)
         ELSE activity.count + excluded.count END
"""  # noqa: S608  a constant of this module

_ROLL_UP = """
INSERT INTO activity (minutes, at, source, what, count)
SELECT 60, date_trunc('hour', at) AS hour, source, what, sum(count) FROM activity
WHERE minutes = 1 AND at >= date_trunc('hour', %(begin)s) AND at < date_trunc('hour', %(end)s) AND what <> 'filled'
GROUP BY hour, source, what
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = excluded.count
"""

_FORGET = """
DELETE FROM activity WHERE minutes = 1 AND at < %(end)s - %(kept_minutes)s::interval
                        OR minutes = 60 AND at < %(end)s - %(kept_hours)s::interval
"""

# Adds to the current minute and to the sum since ever; the tally's part.
_ADD = """
INSERT INTO activity (minutes, at, source, what, count)
SELECT minutes, CASE minutes WHEN 0 THEN 'epoch' ELSE date_trunc('minute', now()) END, source, what, count
FROM unnest(%(sources)s::text[], %(whats)s::text[], %(counts)s::bigint[]) AS t (source, what, count),
     (VALUES (0), (1)) AS g (minutes)
UNION ALL
SELECT 0, 'epoch'::timestamptz, source, 'last', extract(epoch FROM date_trunc('minute', now()))
FROM unnest(%(sources)s::text[], %(whats)s::text[]) AS t (source, what) WHERE what = 'duplicate'
ORDER BY 1, 2, 3, 4
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count =
    CASE activity.what WHEN 'last' THEN greatest(activity.count, excluded.count)
         ELSE activity.count + excluded.count END
"""

# Hours as far as they are rolled up, minutes for the rest.
_RATES = """
WITH edge AS (
    SELECT CASE WHEN %(bucket)s::interval < interval '1 hour' THEN %(since)s::timestamptz ELSE
        coalesce((SELECT date_trunc('hour', at + interval '1 minute') FROM activity
                  WHERE minutes = 1 AND source = '' AND what = 'filled' ORDER BY at DESC LIMIT 1), %(since)s) END AS at
)
SELECT date_bin(%(bucket)s, at, %(monday)s) AS bucket, source, split_part(what, '.', 1) AS kind, sum(count)::bigint
FROM (SELECT at, source, what, count FROM activity WHERE minutes = 60 AND at >= %(since)s
             AND at < (SELECT at FROM edge)
      UNION ALL
      SELECT at, source, what, count FROM activity WHERE minutes = 1 AND at >= %(since)s
             AND at >= (SELECT at FROM edge) AND what <> 'filled') AS grains
GROUP BY bucket, source, kind
"""

_TOTALS = """
SELECT at, source, what, count FROM activity WHERE minutes = 0 AND what <> 'last' AND what NOT LIKE 'took.%'
ORDER BY source, what
"""


def fill(connection: psycopg.Connection) -> int:
    """Count the minutes that are over and not counted yet, `STEP` at most; give how many were.

    Safe in many processes at once: who finds another at it does nothing.
    """
    end, begin = _open(connection)
    if begin >= end:
        return 0
    for step in (STEP, MINUTE):
        try:
            return _fill(connection, step)
        except psycopg.errors.QueryCanceled:
            if step is MINUTE:
                raise
    return 0


def _fill(connection: psycopg.Connection, step: timedelta) -> int:
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = '5s'")
        if connection.execute(_LOCK).fetchone() != (True,):
            return 0
        latest, begin = _open(connection)
        end = min(latest, begin + step)
        if begin >= end:
            return 0
        span = {"begin": begin, "end": end, "floor": _floor(connection, begin)}
        connection.execute(_FILL, span)
        durations.add(connection, begin, end)
        if begin.replace(minute=0) != end.replace(minute=0):
            connection.execute(_ROLL_UP, span)
            connection.execute(_FORGET, {**span, "kept_minutes": KEPT_MINUTES, "kept_hours": KEPT_HOURS})
    return (end - begin) // MINUTE


def add(connection: psycopg.Connection, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to this minute's counts by (source, what)."""
    labels = list(counts)
    columns = {"sources": [k[0] for k in labels], "whats": [k[1] for k in labels]}
    connection.execute(_ADD, {**columns, "counts": [counts[k] for k in labels]})


def rates(connection: psycopg.Connection, since: datetime, bucket: timedelta) -> list[Count]:
    """Count by bucket, source and what up to now, oldest first; `rejected` is one kind here, whatever the reason.

    Buckets begin at whole multiples of `bucket` since a Monday (UTC); those of an hour or more take whole hours.
    Empty ones are left out. What no sweep has counted yet is counted here, the last `STEP` at most.
    """
    sums: Counter[tuple[datetime, str, str]] = Counter()
    for *label, count in connection.execute(_RATES, {"since": since, "bucket": bucket, "monday": MONDAY}):
        sums[label[0], label[1], label[2]] += count
    latest, begin = _open(connection)
    begin = max(begin, latest - STEP)
    span = {"begin": begin, "end": latest + HOUR, "floor": _floor(connection, begin)}
    for at, source, what, count in connection.execute(_LIVE, span):
        if at >= since:
            sums[at - (at - MONDAY) % bucket, source, what] += count
    return [Count(*label, sums[label]) for label in sorted(sums)]


def totals(connection: psycopg.Connection) -> list[Count]:
    """Count by source and what since ever; what `fill` has counted so far."""
    return [Count(*row) for row in connection.execute(_TOTALS)]


def _open(connection: psycopg.Connection) -> tuple[datetime, datetime]:
    """Say when the current minute began, and the first one that is not counted yet."""
    row = connection.execute(_FILLED, {"settled": SETTLED}).fetchone()
    if row is not None:
        return row[0], row[1] + MINUTE
    row = connection.execute(_NEVER_FILLED, {"settled": SETTLED, "first": FIRST}).fetchone()
    if row is None:
        raise LookupError("a SELECT without FROM gave no row")
    return row[0], row[1]


def _floor(connection: psycopg.Connection, begin: datetime) -> int:
    """Give an event id below all those received from `begin` on."""
    for query in (_FLOOR, _FIRST_FLOOR):
        row = connection.execute(query, {"begin": begin}).fetchone()
        if row is not None:
            return int(row[0])
    return 0
