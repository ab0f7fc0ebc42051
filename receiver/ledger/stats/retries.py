"""Events that are tried again and again: since when, by the first failure of the cycle that they are in."""

from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.states import OPEN_RUNS, EventStatus, Parked, one_of

MAX_LOOKED_AT = 5000
"""Events whose next attempt is the farthest off, and those under way; what is due is a backlog, and said elsewhere.

And of each open breaker the oldest that wait for it: what a person has paused waits as it should.
"""

_RETRIES = f"""
WITH open AS MATERIALIZED (
    SELECT id, source FROM (SELECT id, source, status FROM hookonce.events WHERE due_at IS NOT NULL AND parked IS NULL
                            ORDER BY due_at DESC LIMIT {MAX_LOOKED_AT}) AS latest
    WHERE {one_of("status", (EventStatus.RUNNING, EventStatus.WAITING))}
    UNION
    SELECT e.id, e.source FROM hookonce.breakers b, LATERAL (
        SELECT event FROM hookonce.runs WHERE parked = '{Parked.HANDLER}' AND handler = b.handler
        ORDER BY event LIMIT {MAX_LOOKED_AT}) AS held JOIN hookonce.events e ON e.id = held.event
    WHERE b.opened_at IS NOT NULL
), retried AS (
    SELECT open.source, min(f.failed_at) AS first
    FROM open JOIN hookonce.runs r ON r.event = open.id AND {one_of("r.status", OPEN_RUNS)}
         JOIN hookonce.failures f ON (f.event, f.handler, f.cycle) = (r.event, r.handler, r.cycle)
    GROUP BY open.id, open.source
)
SELECT source, count(*) FILTER (WHERE first < now() - %s::interval), extract(epoch FROM now() - min(first))::float
FROM retried GROUP BY source
"""  # noqa: S608  constants


class Retries(NamedTuple):
    """How many events have been tried for longer than asked, and for how many seconds the oldest has been."""

    number: int
    oldest: float


def by_source(connection: psycopg.Connection, longer_than: timedelta = timedelta(0)) -> dict[str, Retries]:
    """Look at the events that have failed and are to be tried again."""
    rows = connection.execute(_RETRIES, [longer_than])
    return {source: Retries(number, oldest) for source, number, oldest in rows}
