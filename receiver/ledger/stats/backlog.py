"""How much waits for whom, cheap at any size: by indexes or kept sums, and never said beyond `MAX_COUNTED`."""

from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.reasons import BATCH, IS_DUE, IS_NOT_PAUSED, MAY_BE_CLAIMED, REASONS
from hookonce.receiver.ledger.states import RunStatus, Waits

MAX_COUNTED = 10_000
"""Where counting stops; one more says that there are more."""

# What a worker that died has left is due since its lease ran out, as if it had been waiting.
_LEFT = """
SELECT c.lease_until AS due_at, q.source, q.event
FROM hookonce.claims c, unnest(c.events, c.places) AS r (event, n)
     JOIN hookonce.queue q USING (event, n)
WHERE c.lease_until <= now() AND q.token = c.token
"""

# The oldest of those that wait for a batch are the first by their events: of each word, so many are looked at.
_BATCHED = f"""
SELECT source, due_at FROM (SELECT source, type, due_at, token FROM hookonce.queue
                            WHERE {BATCH.found_by("waits")} ORDER BY waits, waiting_handler, event LIMIT 1000) AS first
WHERE token IS NULL AND {IS_NOT_PAUSED}
"""  # noqa: S608  constants

_OLDEST_BY_SOURCE = f"""
SELECT source, extract(epoch FROM now() - min(due_at))::float FROM (
    (SELECT source, due_at FROM hookonce.queue WHERE {MAY_BE_CLAIMED} ORDER BY due_at LIMIT %s)
    UNION ALL SELECT source, due_at FROM ({_BATCHED}) AS batched
    UNION ALL SELECT source, due_at FROM ({_LEFT}) AS dropped) AS oldest
GROUP BY source
"""  # noqa: S608  constants
_MAX_OLDEST = 1000


def oldest_due_by_source(connection: psycopg.Connection) -> dict[str, float]:
    """Return the seconds that the oldest due event of each source has been due, among the oldest of all.

    What a person has paused waits as it should.
    """
    return dict(connection.execute(_OLDEST_BY_SOURCE, [_MAX_OLDEST]).fetchall())


def oldest_due(connection: psycopg.Connection) -> float:
    """Return for how many seconds the oldest due event of a source that is not paused has been due; 0 for none."""
    return max(oldest_due_by_source(connection).values(), default=0.0)


_DEAD = f"""
WITH dead AS MATERIALIZED (
    SELECT event, finished_at FROM hookonce.runs r
    WHERE status = '{RunStatus.DEAD}' AND is_last AND handler <> ''
          AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = r.event OFFSET 0)
    ORDER BY event DESC LIMIT %(most)s
)
SELECT source, count(*) FILTER (WHERE died_at > now() - %(within)s::interval), count(*)
FROM (SELECT event, max(finished_at) AS died_at FROM dead GROUP BY event) AS died
     CROSS JOIN LATERAL (SELECT source FROM hookonce.events WHERE id = died.event OFFSET 0) AS e
GROUP BY source
"""  # noqa: S608  constants


def dead(connection: psycopg.Connection, within: timedelta) -> dict[str, tuple[int, int]]:
    """Count, by source, the events that are dead: those that died within the last `within`, and all of them.

    Of more than `MAX_COUNTED`, the newest are looked at. What was replayed is dead no more; what can't be read is
    counted by itself.
    """
    rows = connection.execute(_DEAD, {"within": within, "most": MAX_COUNTED})
    return {source: (recent, number) for source, recent, number in rows if recent}


_DUE = f"""
SELECT (SELECT count(DISTINCT event) FROM (SELECT event FROM hookonce.queue WHERE {IS_DUE} LIMIT %(most)s) AS these)
       + (SELECT count(DISTINCT event) FROM (
              SELECT event FROM hookonce.queue WHERE {BATCH.found_by("waits")} AND token IS NULL
              LIMIT %(most)s) AS batched)
       + (SELECT count(DISTINCT event) FROM ({_LEFT}) AS dropped)
"""  # noqa: S608  constants


_PARKED = " UNION ALL ".join(
    f"""SELECT '{word}', count(*)
FROM (SELECT FROM hookonce.queue WHERE {reason.found_by("waits")} LIMIT %(most)s) AS these"""  # noqa: S608  constants
    for word, reason in {each.word: each for each in REASONS if each.word}.items()
)


def parked(connection: psycopg.Connection) -> dict[str, int]:
    """Count the runs that claims pass over, by the reason's word; `MAX_COUNTED` of each at most."""
    return dict(connection.execute(_PARKED, {"most": MAX_COUNTED}).fetchall())


_REPLAYS = """
SELECT count(*), coalesce(sum(greatest(matched - replayed - left_alone, 0)), 0)::bigint
FROM hookonce.bulk_replays WHERE ended_at IS NULL
"""


MAX_DUE = 10_000
"""As far as due events are counted."""


def due(connection: psycopg.Connection) -> int:
    """Count the events that are due, `MAX_DUE` at most."""
    row = connection.execute(_DUE, {"most": MAX_DUE}).fetchone()
    return min(int(row[0]), MAX_DUE) if row else 0


def bulk_replays(connection: psycopg.Connection) -> tuple[int, int]:
    """Count the bulk replays under way, and the events they have still to replay."""
    row = connection.execute(_REPLAYS).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


MAX_LOOKED_AT = 5000
"""Events whose next attempt is the farthest off, and those under way; what is due is a backlog, and said elsewhere.

And of each open breaker the oldest that wait for it: what a person has paused waits as it should.
"""

_RETRIES = f"""
WITH open AS MATERIALIZED (
    SELECT event, source, handler, cycle FROM (
        SELECT event, source, handler, cycle FROM hookonce.queue WHERE waits IS NULL
        ORDER BY due_at DESC LIMIT {MAX_LOOKED_AT}) AS latest
    WHERE handler IS NOT NULL
    UNION
    SELECT q.event, q.source, q.handler, q.cycle FROM hookonce.claims c, unnest(c.events, c.places) AS r (event, n)
           JOIN hookonce.queue q USING (event, n) WHERE q.token = c.token
    UNION
    SELECT q.event, q.source, q.handler, q.cycle FROM hookonce.breakers b, LATERAL (
        SELECT event, source, handler, cycle FROM hookonce.queue
        WHERE waits = '{Waits.HANDLER}' AND waiting_handler = b.handler ORDER BY event LIMIT {MAX_LOOKED_AT}) AS q
    WHERE b.opened_at IS NOT NULL
), retried AS (
    SELECT open.source, min(f.failed_at) AS first
    FROM open JOIN hookonce.failures f ON (f.event, f.handler, f.cycle) = (open.event, open.handler, open.cycle)
    GROUP BY open.event, open.source
)
SELECT source, count(*) FILTER (WHERE first < now() - %s::interval), extract(epoch FROM now() - min(first))::float
FROM retried GROUP BY source
"""  # noqa: S608  constants


class Retries(NamedTuple):
    """How many events have been tried for longer than asked, and for how many seconds the oldest has been."""

    number: int
    oldest: float


def retries_by_source(
    connection: psycopg.Connection, longer_than: timedelta = timedelta(0)
) -> dict[str, Retries]:
    """Look at the events that have failed and are to be tried again."""
    rows = connection.execute(_RETRIES, [longer_than])
    return {source: Retries(number, oldest) for source, number, oldest in rows}


_OPEN = """
SELECT scope, count(*), extract(epoch FROM now() - min(started_at))::float
FROM (SELECT scope, started_at FROM hookonce.idempotency WHERE state = 'in_progress' AND expires_at > now()
      ORDER BY started_at LIMIT %s) AS oldest
GROUP BY scope
"""


class OpenOperation(NamedTuple):
    """How many keys of a scope are in progress, and for how many seconds the oldest has been."""

    scope: str
    number: int
    oldest: float


def open_operations(connection: psycopg.Connection) -> list[OpenOperation]:
    """Return the scopes that have keys in progress."""
    return [OpenOperation(*row) for row in connection.execute(_OPEN, [MAX_COUNTED])]


_HAS_RECEIVED = """
SELECT count(*) >= %(number)s FROM (
    SELECT FROM hookonce.events WHERE source = %(source)s AND received_at > now() - %(within)s LIMIT %(number)s
) AS counted
"""


def has_received(connection: psycopg.Connection, source: str, within: timedelta, number: int) -> bool:
    """Return whether so many events of a source, or more, have come within this time."""
    values = {"source": source, "within": within, "number": number}
    row = connection.execute(_HAS_RECEIVED, values).fetchone()
    return bool(row and row[0])
