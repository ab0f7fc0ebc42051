"""Events that are tried again and again: since when, by the first failure of the cycle that they are in."""

from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.states import Waits

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


def by_source(connection: psycopg.Connection, longer_than: timedelta = timedelta(0)) -> dict[str, Retries]:
    """Look at the events that have failed and are to be tried again."""
    rows = connection.execute(_RETRIES, [longer_than])
    return {source: Retries(number, oldest) for source, number, oldest in rows}
