"""Holds back what a handler's limit does not allow yet, and takes it up again.

What is beyond a rate is put off until its own time, which it keeps (`queue.slot_at`). What is beyond a number at once
is parked as `limit:<key>`, oldest first, until one of those that hold a place ends: a place is held as long as its run
is under the claim that it was given for, so a worker that was killed gives it back when its claim is taken over. Where
a handler has both, only what has a place is given a time: otherwise the times of those that are parked would be lost,
and the order with them.

Times are given by what the row of `limits` says, and not by a worker's own rate, so that workers with different ones
hold to one; who changes it is in `receiver.ledger.runs.queue_pages`.

One row of `limits` per handler and key, locked for the length of a claim, after the rows of the queue; `take_up` locks
it first, and then only rows of the queue that nobody else holds.
"""

import math
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.ledger.reasons import LIMIT
from hookonce.receiver.ledger.runs.claimed import QueueKey
from hookonce.receiver.ledger.runs.decisions import PlannedRun
from hookonce.receiver.ledger.runs.run_limits import Rate, Schedule, rate_of

MAX_WAITING = 10_000
AHEAD = timedelta(seconds=2)
"""How far ahead what waits for a place is given its rate's times: longer than a worker waits between two looks."""

_LOOKED_THROUGH = 1000
"""How many of those that are parked are looked through for those that have a time."""

LimitKey = tuple[str, str]
"""Handler, and whose share: an account, a source, or nothing."""

_LOCK = """
INSERT INTO hookonce.limits (handler, key, head, schedule, given_at)
SELECT handler, key, now() - interval '2 days',  -- longer than any period: nothing has started
       schedule || '@' || extract(epoch FROM now()), now()
FROM unnest(%s::text[], %s::text[], %s::text[]) AS t (handler, key, schedule) ORDER BY handler COLLATE "C", key
ON CONFLICT (handler, key) DO UPDATE SET schedule = limits.schedule  -- locked, and returned
RETURNING handler, key, head, schedule, now()
"""
_SET_HEADS = """
UPDATE hookonce.limits SET head = t.head, given_at = greatest(given_at, now())
FROM unnest(%s::text[], %s::text[], %s::timestamptz[]) AS t (handler, key, head)
WHERE (limits.handler, limits.key) = (t.handler, t.key)
"""
_QUEUES = """
SELECT handler, key, head, schedule, now() FROM hookonce.limits WHERE has_queue AND handler = ANY(%s)
ORDER BY handler, key FOR UPDATE SKIP LOCKED
"""
_SET_QUEUES = """
UPDATE hookonce.limits SET has_queue = t.has_queue
FROM unnest(%s::text[], %s::text[], %s::bool[]) AS t (handler, key, has_queue)
WHERE (limits.handler, limits.key) = (t.handler, t.key) AND limits.has_queue <> t.has_queue
"""

# A place is held while its run is under the claim that it was given for.
_IS_HELD = """EXISTS (
    SELECT FROM hookonce.queue q WHERE (q.event, q.handler, q.token) = (p.event, p.handler, p.token))"""
_HELD = f"""
WITH gone AS (
    DELETE FROM hookonce.limit_places p USING unnest(%s::text[], %s::text[]) AS t (handler, key)
    WHERE (p.handler, p.key) = (t.handler, t.key) AND NOT {_IS_HELD}
    RETURNING p.handler, p.event
)
SELECT p.handler, p.key, count(*) FROM hookonce.limit_places p
JOIN unnest(%s::text[], %s::text[]) AS t (handler, key) USING (handler, key)
WHERE NOT EXISTS (SELECT FROM gone WHERE (gone.handler, gone.event) = (p.handler, p.event))
GROUP BY p.handler, p.key
"""  # noqa: S608  a constant
_HOLD = """
INSERT INTO hookonce.limit_places (handler, key, event, token)
SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::uuid[]) AS t
ON CONFLICT (handler, event) DO UPDATE SET key = excluded.key, token = excluded.token
"""
_IS_PARKED = f"waits = '{LIMIT.prefix}' || %(key)s AND waiting_handler = %(handler)s"
# Event by event: whatever the planner thinks of the table.
_IS_ONE_PARKED = _IS_PARKED.replace("waits =", "waits IS NOT DISTINCT FROM")
# The oldest, of those without a time of their rate only so many.
_TAKE_UP = f"""
WITH oldest AS MATERIALIZED (
    SELECT event, slot_at FROM hookonce.queue WHERE {_IS_PARKED} ORDER BY event LIMIT %(looked_through)s
), counted AS (
    SELECT event, slot_at, count(*) FILTER (WHERE slot_at IS NULL) OVER (ORDER BY event) AS number FROM oldest
), wanted AS MATERIALIZED (
    SELECT event FROM counted WHERE slot_at IS NOT NULL OR number <= %(times)s ORDER BY event LIMIT %(free)s
), mine AS MATERIALIZED (
    SELECT event FROM hookonce.queue WHERE event = ANY(ARRAY(SELECT event FROM wanted)) AND {_IS_ONE_PARKED}
    FOR UPDATE SKIP LOCKED
), taken_up AS (
    UPDATE hookonce.queue SET waits = NULL, due_at = now()
    WHERE event = ANY(ARRAY(SELECT event FROM mine)) AND {_IS_ONE_PARKED}
)
SELECT event FROM mine ORDER BY event
"""  # noqa: S608  constants
_IS_ANY_PARKED = (
    f"SELECT FROM hookonce.queue WHERE waits = '{LIMIT.prefix}' || %s AND waiting_handler = %s LIMIT 1"
)
_COUNTS = f"""
SELECT h.handler, w.count FROM (SELECT DISTINCT handler FROM hookonce.limits WHERE has_queue) AS h, LATERAL (
    SELECT count(*) FROM (
        SELECT FROM hookonce.queue q WHERE q.waiting_handler = h.handler
            AND q.waits = ANY(ARRAY(SELECT '{LIMIT.prefix}' || l.key FROM hookonce.limits l
                                    WHERE l.handler = h.handler AND l.has_queue))
        LIMIT %(most)s) AS found) AS w
ORDER BY h.handler
"""  # noqa: S608  constants
_DELAYS = """
SELECT handler, max(head) - now() FROM hookonce.limits WHERE head > now() GROUP BY handler ORDER BY handler
"""
# By the token, too: another claim may have given the place anew meanwhile.
_FORGET_PLACES = f"""
WITH gone AS MATERIALIZED (SELECT handler, event, token FROM hookonce.limit_places p WHERE NOT {_IS_HELD})
DELETE FROM hookonce.limit_places p USING gone
WHERE (p.handler, p.event, p.token) = (gone.handler, gone.event, gone.token)
"""  # noqa: S608  a constant
_FORGET = """
DELETE FROM hookonce.limits WHERE (handler, key) IN (
    SELECT handler, key FROM hookonce.limits WHERE NOT has_queue AND head < now() - interval '2 days'
    ORDER BY handler, key LIMIT 1000 FOR UPDATE SKIP LOCKED)
"""


def waiting(connection: psycopg.Connection) -> dict[str, int]:
    """Return how many runs wait for a place, by handler; of each `MAX_WAITING` at most."""
    return dict(connection.execute(_COUNTS, {"most": MAX_WAITING}).fetchall())


def delays(connection: psycopg.Connection) -> dict[str, timedelta]:
    """Return how long what comes now waits for its rate, by handler; of several accounts or sources the longest."""
    return dict(connection.execute(_DELAYS).fetchall())


def forget(connection: psycopg.Connection) -> None:
    """Delete what nothing has asked for lately, and places of runs that are gone. Safe in many processes at once."""
    connection.execute(_FORGET_PLACES)
    connection.execute(_FORGET)


def hold_back(
    connection: psycopg.Connection,
    limited: Sequence[PlannedRun],
    tokens: Mapping[int, uuid.UUID],
    at_once: int,
) -> tuple[Mapping[QueueKey, PlannedRun], Mapping[QueueKey, str]]:
    """Decide which runs of a claim their limits do not allow, in the claim's transaction; the others have places.

    `limited`: runs whose handlers have limits, in order; `tokens`: the claim of each lane; `at_once`: how many of a
    handler's runs this worker can start together. What is returned is for the claim to write: the runs that are held
    back, as they wait, and the schedules of all whose handlers have a rate (`run_limits.rate_of`), held or not.
    """
    held: dict[QueueKey, PlannedRun] = {}
    names: dict[QueueKey, str] = {}
    schedules = {each.limit_key: each.limit.schedule for each in limited if each.limit}
    keys = _keys(limited)
    rows = connection.execute(_LOCK, [*keys, [schedules[key] for key in zip(*keys, strict=True)]]).fetchall()
    heads = {(handler, key): head for handler, key, head, _, _ in rows}
    given = {(handler, key): schedule for handler, key, _, schedule, _ in rows}
    now = rows[0][4]
    asked = [each for each in limited if each.limit and each.limit.concurrency]
    taken = _held(connection, _keys(asked)) if asked else {}
    new: Counter[LimitKey] = Counter()
    places: list[tuple[str, str, int, uuid.UUID]] = []
    full = set()
    for each in limited:
        key, row, slot_at = each.limit_key, each.key, each.row.slot_at
        rate = rate_of(given[key])
        if rate is not None:
            names[row] = given[key]
        if rate is None or each.row.schedule != given[key]:
            slot_at = None
        most = each.limit.concurrency if each.limit else None
        if most is not None and new[key] >= min(most - taken.get(key, 0), at_once):
            slot = None if slot_at is None else slot_at - now
            waits = LIMIT.prefix + key[1]
            held[row] = each._replace(waits=waits, delay=None, slot=slot, schedule=names.get(row))
            full.add(key)
            continue
        # Trials are spread over the rate by their breaker.
        delay = None if each.is_trial else _delay(key, rate, slot_at, heads, now)
        if delay is not None:
            held[row] = each._replace(waits=None, delay=delay, slot=delay, schedule=names.get(row))
        elif most is not None:
            new[key] += 1
            places.append((*key, row[0], tokens[each.lane]))
    if places:
        connection.execute(_HOLD, [list(column) for column in zip(*places, strict=True)])
    if full:
        _set_queues(connection, dict.fromkeys(full, True))
    columns = zip(*((*key, head) for key, head in heads.items()), strict=True)
    connection.execute(_SET_HEADS, [list(column) for column in columns])
    return held, names


def _keys(limited: Sequence[PlannedRun]) -> list[list[str]]:
    found = sorted({each.limit_key for each in limited})
    return [[handler for handler, _ in found], [key for _, key in found]]


def _delay(
    key: LimitKey, rate: Rate | None, slot_at: datetime | None, heads: dict[LimitKey, datetime], now: datetime
) -> timedelta | None:
    """Return how long a run must wait for its rate, if it must; what has no time yet gets one, which moves the head."""
    if rate is None:
        return None
    schedule = Schedule(rate, heads[key], now)
    at = schedule.time_for(slot_at)
    heads[key] = schedule.head
    return at - now if at > now else None


def _held(connection: psycopg.Connection, keys: list[list[str]]) -> Mapping[LimitKey, int]:
    rows = connection.execute(_HELD, [*keys, *keys]).fetchall()
    return {(handler, key): count for handler, key, count in rows}


def _set_queues(connection: psycopg.Connection, waiting: Mapping[LimitKey, bool]) -> None:
    columns = zip(*((*key, is_so) for key, is_so in waiting.items()), strict=True)
    connection.execute(_SET_QUEUES, [list(column) for column in columns])


def take_up(connection: psycopg.Connection, limits: Mapping[str, int]) -> list[int]:
    """Make due what waits for a place that is free now; `limits` is handlers and how many may run at once.

    Where there is a rate besides, its times are given out as far as `AHEAD`, so of those that have none yet no more is
    made due than may start until then; but one at least, so that each has its time after so many looks. Returns the
    events. Committed.
    """
    with connection.transaction():
        waiting = connection.execute(_QUEUES, [list(limits)]).fetchall()
        if not waiting:
            return []
        taken = _held(connection, [[row[0] for row in waiting], [row[1] for row in waiting]])
        events: list[int] = []
        left: dict[LimitKey, bool] = {}
        for handler, key, head, schedule, now in waiting:
            free = min(limits[handler] - taken.get((handler, key), 0), MAX_WAITING)
            rate = rate_of(schedule)
            times = max(math.ceil((now + AHEAD - head) / rate.interval), 1) if rate and head > now else None
            if free > 0:
                events += _take_up(connection, (handler, key), free, times)
            left[handler, key] = connection.execute(_IS_ANY_PARKED, [key, handler]).fetchone() is not None
        _set_queues(connection, left)
    return events


def _take_up(connection: psycopg.Connection, of: LimitKey, free: int, times: int | None) -> list[int]:
    """Make the oldest due, of those without a time only so many, if that is given; return the events."""
    handler, key = of
    values = {
        "key": key,
        "handler": handler,
        "free": free,
        "times": free if times is None else times,
        "looked_through": free if times is None else _LOOKED_THROUGH,
    }
    return [event for (event,) in connection.execute(_TAKE_UP, values)]
