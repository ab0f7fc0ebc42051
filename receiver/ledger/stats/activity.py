"""Activity per minute and source, for charts, alerts and counters: written by the sweep, never by a delivery.

The table holds three grains: minutes (`KEPT_MINUTES`), hours (`KEPT_HOURS`) and, under 0 minutes, the sum since
ever, and as `last` the minute of a source's last delivery (in seconds since 1970). A minute is counted once, after
it is over and every statement that began in it has ended; the row `filled` of a minute says that it was, and up to
which event id. So sweeps at once, or stopped halfway, count nothing twice. Refused and repeated deliveries leave no
row to count: `receiver.intake.background_writer` adds those itself.

The clock is the database's, and may have been ahead for a while. Marks from that time say nothing: counting goes on
with the minute that it is, and what was counted under a minute is never counted under it again.

`what` is accepted, done, dead (events; a replayed event is done again), ignored, duplicate or `rejected.<reason>`.
A minute may also hold `replayed.<status>`: ends that a replay has taken away before that minute was counted, which
`fill` adds to the others. What else there is belongs to `counters`, `run_durations` and
`event_counts`, and is in no chart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from hookonce.receiver.ledger.states import EventStatus, RunStatus, one_of
from hookonce.receiver.ledger.stats import event_counts, run_durations

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SETTLED_AFTER = timedelta(seconds=10)
"""How long after its end a minute is counted: well over what an insert or the end of a run may take."""
FILL_BATCH = timedelta(minutes=10)
"""How much of an outage is caught up at a time."""
FIRST = timedelta(hours=1)
"""How far back the very first sweep counts."""
KEPT_MINUTES = timedelta(days=8)
KEPT_HOURS = timedelta(weeks=9)
AHEAD = timedelta(minutes=2)
"""How far in the future a time may lie before it is taken for one of a clock that was ahead."""
MONDAY = datetime(2000, 1, 3, tzinfo=UTC)
"""Where buckets are counted from."""


STATUS_OF_ENDED = f"""
CASE WHEN bool_or({one_of("r.status", (RunStatus.DEAD, RunStatus.DISCARDED))}) THEN '{EventStatus.DEAD}'
     WHEN bool_or(r.status = '{RunStatus.DONE}') THEN '{EventStatus.DONE}' ELSE '{EventStatus.IGNORED}' END"""
"""The status of an event without open runs, by the last outcomes `r` of its runs.

One that was discarded had died: it stays counted as dead.
"""

_ENDED = one_of("what", (EventStatus.DONE, EventStatus.DEAD, EventStatus.IGNORED))
_CHARTED = f"(what IN ('accepted', 'duplicate') OR {_ENDED} OR what LIKE 'rejected.%%')"
_SUMMED = _CHARTED.replace("%%", "%")


class Count(NamedTuple):
    """How often something happened at a source ('' where no source has the name) in the bucket that begins `at`."""

    at: datetime
    source: str
    what: str
    number: int


_LOCK = "SELECT pg_try_advisory_xact_lock(x'6163746976697479'::bigint)"  # "activity" in ASCII


def newest_mark(before: str = "date_trunc('minute', now())", column: str = "at") -> str:
    """Return the SELECT of the newest `filled` row before a time; one of a minute that is not over is no such mark.

    It is looked for in the last minutes first: asked for it at once, PostgreSQL takes it to be rare, and reads all.
    """
    marks = f"""SELECT {column} FROM hookonce.activity
WHERE minutes = 1 AND source = '' AND what = 'filled' AND at < {before}"""  # noqa: S608  constants
    return f"""(({marks} AND at >= {before} - interval '15 minutes' ORDER BY activity.at DESC LIMIT 1)
UNION ALL ({marks} ORDER BY activity.at DESC LIMIT 1) LIMIT 1)"""


_FILLED = f"SELECT date_trunc('minute', now() - %(settled)s), at FROM {newest_mark()} AS mark"  # noqa: S608  constants

# Where the clock was ahead for so long that marks from then are the only ones, the last hour may have been counted.
_NEVER_FILLED = """
SELECT date_trunc('minute', now() - %(settled)s), CASE
    WHEN EXISTS (SELECT FROM hookonce.activity WHERE minutes = 1 AND source = '' AND what = 'filled')
    THEN date_trunc('minute', now() - %(settled)s) - interval '1 minute'
    ELSE date_trunc('minute', now() - %(first)s) END
"""

_SET_RIGHT = """
WITH ahead AS (
    DELETE FROM hookonce.activity
    WHERE minutes = 1 AND source = '' AND what = 'filled' AND at >= date_trunc('minute', now())
)
UPDATE hookonce.activity SET count = extract(epoch FROM date_trunc('minute', now()))
WHERE minutes = 0 AND what = 'last' AND count > extract(epoch FROM now() + %(margin)s::interval)
"""

# Ids are given out in the order of time, but for the seconds a statement takes: two minutes are plenty.
_FLOOR = newest_mark("%(begin)s::timestamptz - interval '1 minute'", "count")
_FIRST_FLOOR = """
SELECT id FROM hookonce.events WHERE received_at < %(begin)s - interval '2 minutes' ORDER BY id DESC LIMIT 1
"""

# An event ends with its last run; a cycle that a replay has taken up again is in what `keep_ends` has kept.
_COUNT = f"""
WITH new AS MATERIALIZED (
    SELECT id, date_trunc('minute', received_at) AS at, source FROM hookonce.events
    WHERE id > %(floor)s AND received_at >= %(begin)s AND received_at < %(end)s
), finished AS (
    SELECT event, date_trunc('minute', max(finished_at)) AS at FROM hookonce.runs
    WHERE finished_at >= %(begin)s AND finished_at < %(end)s AND is_last GROUP BY event
), ended AS (
    SELECT f.at, e.source, last.status
    FROM finished f
         CROSS JOIN LATERAL (SELECT source FROM hookonce.events WHERE id = f.event OFFSET 0) AS e
         CROSS JOIN LATERAL (
             SELECT max(r.finished_at) AS at, {STATUS_OF_ENDED} AS status
             FROM hookonce.runs r WHERE r.event = f.event AND r.is_last) AS last
    WHERE last.at < %(end)s AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = f.event OFFSET 0)
), counted AS (
    SELECT at, source, 'accepted' AS what, count(*) FROM new GROUP BY at, source
    UNION ALL
    SELECT at, source, status, count(*) FROM ended GROUP BY at, source, status
    UNION ALL
    SELECT at, source, split_part(what, '.', 2), count FROM hookonce.activity
    WHERE minutes = 1 AND what LIKE 'replayed.%%' AND at >= %(begin)s AND at < %(end)s
)
"""  # noqa: S608  constants

_LIVE = f"{_COUNT} SELECT at, source, what, sum(count)::bigint FROM counted GROUP BY at, source, what"  # noqa: S608  the same

_FILL = f"""{_COUNT}, minutes AS (
    SELECT at, greatest(max(max(id)) OVER (ORDER BY at), %(floor)s) AS highest
    FROM generate_series(%(begin)s, %(end)s - interval '1 minute', interval '1 minute') AS at
         LEFT JOIN new USING (at) GROUP BY at
), kept AS (
    INSERT INTO hookonce.activity (minutes, at, source, what, count)
    SELECT 1, at, source, what, sum(count) FROM counted GROUP BY at, source, what
    UNION ALL SELECT 1, at, '', 'filled', highest FROM minutes
    ON CONFLICT (minutes, at, source, what) DO NOTHING RETURNING source, what, count
)
INSERT INTO hookonce.activity (minutes, at, source, what, count)
SELECT 0, 'epoch'::timestamptz, source, what, sum(count) AS count FROM kept WHERE what <> 'filled' GROUP BY source, what
UNION ALL SELECT 0, 'epoch'::timestamptz, source, 'last', extract(epoch FROM max(at)) FROM new GROUP BY source
ORDER BY source, what
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count =
    CASE activity.what WHEN 'last' THEN greatest(activity.count, excluded.count)
         ELSE activity.count + excluded.count END
"""  # noqa: S608  a constant of this module

_ROLL_UP = f"""
INSERT INTO hookonce.activity (minutes, at, source, what, count)
SELECT 60, date_trunc('hour', at) AS hour, source, what, sum(count) FROM hookonce.activity
WHERE minutes = 1 AND at >= date_trunc('hour', %(begin)s) AND at < date_trunc('hour', %(end)s)
      AND {_CHARTED}
GROUP BY hour, source, what
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = excluded.count
"""  # noqa: S608  a constant of this module

_FORGET = """
DELETE FROM hookonce.activity WHERE minutes = 1 AND at < %(end)s - %(kept_minutes)s::interval
                        OR minutes = 60 AND at < %(end)s - %(kept_hours)s::interval
"""

# Adds to the current minute and to the sum since ever; for what leaves no row. Types are in no minute.
_ADD = """
INSERT INTO hookonce.activity (minutes, at, source, what, count)
SELECT minutes, CASE minutes WHEN 0 THEN 'epoch' ELSE date_trunc('minute', now()) END, source, what, count
FROM unnest(%(sources)s::text[], %(whats)s::text[], %(counts)s::bigint[]) AS t (source, what, count),
     (VALUES (0), (1)) AS g (minutes)
WHERE minutes = 0 OR NOT starts_with(what, 'type.')
UNION ALL
SELECT 0, 'epoch'::timestamptz, source, 'last', extract(epoch FROM date_trunc('minute', now()))
FROM unnest(%(sources)s::text[], %(whats)s::text[]) AS t (source, what) WHERE what = 'duplicate'
ORDER BY 1, 2, 3, 4
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count =
    CASE activity.what WHEN 'last' THEN greatest(activity.count, excluded.count)
         ELSE activity.count + excluded.count END
"""

# A replay takes its end from a run: what is not counted by then is kept, under the minute of that end.
_KEEP_ENDS = f"""
WITH ended AS MATERIALIZED (
    SELECT e.source, max(r.finished_at) AS at, {STATUS_OF_ENDED} AS status
    FROM hookonce.events e JOIN hookonce.runs r ON r.event = e.id AND r.is_last
    WHERE e.id = ANY(%(events)s) AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = e.id)
    GROUP BY e.id
), noted AS ({event_counts.noting_replays("(SELECT * FROM ended WHERE %(are_replayed)s) AS replayed")}
)
INSERT INTO hookonce.activity (minutes, at, source, what, count)
SELECT 1, date_trunc('minute', at), source, 'replayed.' || status, count(*) FROM ended
WHERE at >= coalesce({newest_mark()} + interval '1 minute', now() - %(first)s)
GROUP BY 2, 3, 4 ORDER BY 2, 3, 4
ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = activity.count + excluded.count
"""  # noqa: S608  constants

# Hours as far as they are rolled up, minutes for the rest.
_RATES = f"""
WITH edge AS (
    SELECT CASE WHEN %(bucket)s::interval < interval '1 hour' THEN %(since)s::timestamptz ELSE
        coalesce(date_trunc('hour', {newest_mark()} + interval '1 minute'), %(since)s) END AS at
)
SELECT date_bin(%(bucket)s, at, %(monday)s) AS bucket, source, split_part(what, '.', 1) AS kind, sum(count)::bigint
FROM (SELECT at, source, what, count FROM hookonce.activity WHERE minutes = 60 AND at >= %(since)s
             AND {_CHARTED} AND at < (SELECT at FROM edge)
      UNION ALL
      SELECT at, source, what, count FROM hookonce.activity WHERE minutes = 1 AND at >= %(since)s
             AND {_CHARTED} AND at >= (SELECT at FROM edge)) AS grains
GROUP BY bucket, source, kind
"""  # noqa: S608  the same

_TOTALS = f"""
SELECT at, source, what, count FROM hookonce.activity WHERE minutes = 0 AND {_SUMMED} ORDER BY source, what
"""  # noqa: S608  the same


def fill(connection: psycopg.Connection) -> int:
    """Count the minutes that are over and not counted yet, `FILL_BATCH` at most; return how many were.

    Safe in many processes at once: who finds another at it does nothing.
    """
    end, begin = _open(connection)
    if begin >= end:
        return 0
    for step in (FILL_BATCH, MINUTE):
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
        connection.execute(_SET_RIGHT, {"margin": AHEAD})
        connection.execute(_FILL, span)
        run_durations.add(connection, begin, end)
        if begin.replace(minute=0) != end.replace(minute=0):
            connection.execute(_ROLL_UP, span)
            connection.execute(_FORGET, {**span, "kept_minutes": KEPT_MINUTES, "kept_hours": KEPT_HOURS})
    return (end - begin) // MINUTE


def add(connection: psycopg.Connection | psycopg.Cursor[Any], counts: Mapping[tuple[str, str], int]) -> None:
    """Add to this minute's counts by (source, what), and to those since ever; one statement."""
    labels = list(counts)
    columns = {"sources": [k[0] for k in labels], "whats": [k[1] for k in labels]}
    connection.execute(_ADD, {**columns, "counts": [counts[k] for k in labels]})


def keep_ends(connection: psycopg.Connection, events: Sequence[int], *, are_replayed: bool = True) -> None:
    """Keep the ends of events that are about to be opened again, so that they are counted all the same.

    To be called in the transaction that opens them, before that, with the events locked: whoever counts sees either
    the end itself or what is kept of it, and never both.
    """
    connection.execute(_KEEP_ENDS, {"events": list(events), "first": FIRST, "are_replayed": are_replayed})


def rates(connection: psycopg.Connection, since: datetime, bucket: timedelta) -> list[Count]:
    """Count by bucket, source and what up to now, oldest first; `rejected` is one kind here, whatever the reason.

    Buckets begin at whole multiples of `bucket` since a Monday (UTC); those of an hour or more take whole hours.
    Empty ones are left out. What no sweep has counted yet is counted here, the last `FILL_BATCH` at most.
    """
    sums: Counter[tuple[datetime, str, str]] = Counter()
    for *label, count in connection.execute(_RATES, {"since": since, "bucket": bucket, "monday": MONDAY}):
        sums[label[0], label[1], label[2]] += count
    latest, begin = _open(connection)
    begin = max(begin, latest - FILL_BATCH)
    span = {"begin": begin, "end": latest + HOUR, "floor": _floor(connection, begin)}
    for at, source, what, count in connection.execute(_LIVE, span):
        if at >= since:
            sums[at - (at - MONDAY) % bucket, source, what] += count
    return [Count(*label, sums[label]) for label in sorted(sums)]


def totals(connection: psycopg.Connection) -> list[Count]:
    """Count by source and what since ever; what `fill` has counted so far."""
    return [Count(*row) for row in connection.execute(_TOTALS)]


def totals_so_far(connection: psycopg.Connection, span: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """Count by source and what since ever, up to now: `totals`, and the `span` that is `uncounted`.

    To be asked in one snapshot. Where no sweep has counted for longer than `FILL_BATCH`, what came later is left out.
    """
    sums = Counter({(each.source, each.what): each.number for each in totals(connection)})
    for _, source, what, number in connection.execute(_LIVE, span):
        sums[source, what] += number
    return sums


def uncounted(connection: psycopg.Connection) -> dict[str, Any]:
    """Return the time, from `begin` to `end`, that is counted by no sweep yet, and an event id below all of it.

    It begins where the counts end and never moves on by itself: so what is counted in it never grows less.
    """
    row = connection.execute(_FILLED, {"settled": SETTLED_AFTER}).fetchone()
    latest, begin = (row[0], row[1] + MINUTE) if row else _open(connection)
    end = begin + FILL_BATCH if row else latest + HOUR
    return {"begin": begin, "end": end, "floor": _floor(connection, begin)}


def _open(connection: psycopg.Connection) -> tuple[datetime, datetime]:
    """Return when the current minute began, and the first one that is not counted yet."""
    row = connection.execute(_FILLED, {"settled": SETTLED_AFTER}).fetchone()
    if row is not None:
        return row[0], row[1] + MINUTE
    row = connection.execute(_NEVER_FILLED, {"settled": SETTLED_AFTER, "first": FIRST}).fetchone()
    if row is None:
        raise LookupError("a SELECT without FROM gave no row")
    return row[0], row[1]


def _floor(connection: psycopg.Connection, begin: datetime) -> int:
    """Return an event id below all those received from `begin` on."""
    for query in (_FLOOR, _FIRST_FLOOR):
        row = connection.execute(query, {"begin": begin}).fetchone()
        if row is not None:
            return int(row[0])
    return 0
