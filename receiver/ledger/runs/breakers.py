"""A handler's circuit breaker: what fails again and again by one error is not tried on every event, ten times each.

After so many failures in a row, by one error and whatever the event, the handler is paused as a person would pause it:
its events are parked. From time to time one of them is tried, another each time; if that fails it has used no attempt
up (docs/decisions/0031), and when one is done the pause is over. A person may end the pause, or make it his own, which
only he ends then. A row of `breakers` counts; it is written at failures, and gone after a success.
"""

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.reasons import IS_NOT_PAUSED
from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as
from hookonce.receiver.ledger.states import Waits

FIRST_TRY = timedelta(seconds=30)
"""How long after it opened one event is tried; twice as long after each that failed, up to `LONGEST_WAIT`."""
LONGEST_WAIT = timedelta(minutes=10)
LOOK_AGAIN = timedelta(seconds=1)
"""How long after none was found that may be tried, though some are parked."""
_PAGE = 1000
_GOLDEN = (5**0.5 - 1) / 2
MAX_WAITING = 10_000
"""As far as the events are counted that wait for an open breaker."""
WHO = "circuit breaker"
"""Who it was, in the audit."""

# Before the row of the handler, as whoever pauses or resumes it does.
_LOCK = "LOCK TABLE hookonce.pauses IN ROW EXCLUSIVE MODE"

# The last of a row opens it; a failure while it is open was a try, or under way already.
_FAILED = """
INSERT INTO hookonce.breakers AS b (handler, failures, error) VALUES (%(handler)s, 1, %(error)s)
ON CONFLICT (handler) DO UPDATE SET
    failures = CASE WHEN b.error = excluded.error OR b.opened_at IS NOT NULL THEN b.failures + 1 ELSE 1 END,
    error = excluded.error, trying = NULL
"""
_OPEN = f"""
WITH begun AS (
    INSERT INTO hookonce.pauses (kind, name) SELECT 'handler', handler FROM hookonce.breakers
    WHERE handler = %(handler)s AND failures >= %(limit)s AND opened_at IS NULL
    ON CONFLICT DO NOTHING RETURNING name
), opened AS (
    UPDATE hookonce.breakers SET opened_at = now(), try_at = now() + %(first)s
    WHERE handler IN (SELECT name FROM begun)
)
INSERT INTO hookonce.audit (who, action, subject, detail)
SELECT '{WHO}', 'pause', 'handler ' || name, json_build_object('error', %(error)s::text) FROM begun
"""  # noqa: S608  constants
_CLOSE = f"""
WITH closed AS (DELETE FROM hookonce.breakers WHERE handler = %s RETURNING handler, opened_at), ended AS (
    DELETE FROM hookonce.pauses WHERE kind = 'handler'
        AND name IN (SELECT handler FROM closed WHERE opened_at IS NOT NULL)
    RETURNING name
)
INSERT INTO hookonce.audit (who, action, subject, detail)
SELECT '{WHO}', 'resume', 'handler ' || name, '{{}}' FROM ended
"""  # noqa: S608  constants
_HAND_OVER = "DELETE FROM hookonce.breakers WHERE handler = %s AND opened_at IS NOT NULL RETURNING handler"
# A time that is farther off than any wait is from before the database's clock was set back.
_TRIED = """
SELECT handler, tries, apart FROM hookonce.breakers
JOIN unnest(%s::text[], %s::interval[]) AS t (handler, apart) USING (handler)
WHERE opened_at IS NOT NULL AND (tries > 0 OR opened_at NOT BETWEEN now() - apart AND now())
      AND (try_at <= now() OR try_at > now() + greatest(apart, %s))
ORDER BY handler FOR UPDATE OF breakers SKIP LOCKED
"""
# From a place between the oldest and the newest on; what is paused besides is passed over, a page of it at most.
_PARKED = f"""
WITH ends AS (
    SELECT min(event) AS first, max(event) AS last FROM hookonce.queue
    WHERE waits = '{Waits.HANDLER}' AND waiting_handler = %(handler)s
), page AS MATERIALIZED (
    SELECT event, n, waits, source, type FROM hookonce.queue
    WHERE waits = '{Waits.HANDLER}' AND waiting_handler = %(handler)s
        AND event >= (SELECT first + floor((last - first + 1) * %(place)s)::bigint FROM ends)
    ORDER BY event LIMIT {_PAGE}
), few AS MATERIALIZED (
    SELECT event, n, waits FROM page WHERE {IS_NOT_PAUSED} ORDER BY event LIMIT 10
)
SELECT q.event, q.n FROM few JOIN hookonce.queue q USING (event, n)
WHERE q.waits IS NOT DISTINCT FROM few.waits ORDER BY q.event LIMIT 1 FOR UPDATE OF q SKIP LOCKED
"""  # noqa: S608  constants
_SUSPECT = f"""
SELECT event, n FROM hookonce.queue
WHERE waits = '{Waits.SUSPECT}' AND waiting_handler = %s AND token IS NULL AND {IS_NOT_PAUSED}
ORDER BY event LIMIT 1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608  constants
_IS_ANY_PARKED = (
    f"SELECT FROM hookonce.queue WHERE waits = '{Waits.HANDLER}' AND waiting_handler = %s LIMIT 1"
)
_LOOK_LATER = "UPDATE hookonce.breakers SET try_at = now() + %s WHERE handler = %s"
_TRY = f"""
WITH tried AS (
    UPDATE hookonce.breakers SET trying = %(event)s, tries = tries + 1,
        try_at = now() + greatest(%(apart)s, least(%(longest)s, %(first)s * power(2, least(tries + 1, 10))))
    WHERE handler = %(handler)s
)
UPDATE hookonce.queue SET waits = nullif(waits, '{Waits.HANDLER}'), due_at = now()
WHERE event = %(event)s AND n = %(n)s
"""  # noqa: S608  a constant
_ALL = f"""
SELECT b.handler, b.failures, b.error, b.opened_at IS NOT NULL AS is_open, b.opened_at,
       CASE WHEN b.opened_at IS NOT NULL THEN b.try_at END AS try_at, coalesce(parked.count, 0) AS waiting,
       (SELECT extract(epoch FROM now() - received_at)::float FROM hookonce.queue WHERE event = parked.oldest LIMIT 1)
           AS oldest_waiting_seconds
FROM hookonce.breakers b LEFT JOIN LATERAL (
    SELECT count(*), min(event) AS oldest FROM (
        SELECT event FROM hookonce.queue WHERE waits = '{Waits.HANDLER}' AND waiting_handler = b.handler
        ORDER BY event LIMIT {MAX_WAITING}) AS found) AS parked ON b.opened_at IS NOT NULL
ORDER BY b.handler
"""  # noqa: S608  constants


class Failure(NamedTuple):
    """A failed attempt as its handler's breaker sees it: by which error, and how many of these in a row open it."""

    error: str
    limit: int


class Breaker(ResponseModel):
    """Failures in a row by one error; open: the handler is paused for it, and tried from time to time."""

    handler: Ours
    failures: int
    error: str
    is_open: bool
    opened_at: datetime | None = Field(default=None, description="null while it is closed, as the rest")
    try_at: datetime | None = Field(default=None, description="when the next event is tried")
    waiting: int = Field(default=0, description=f"events that wait for it; {MAX_WAITING} at most")
    oldest_waiting_seconds: float | None = Field(
        default=None, description="how long ago the oldest of them came; null if none waits"
    )


def failed(connection: psycopg.Connection, handler: str, failure: Failure) -> psycopg.Cursor:
    """Count a failure, in the transaction that ends the attempt; the last of them pauses the handler.

    The cursor's `rowcount` is 1 if it was the last; in a pipeline, as soon as that has ended.
    """
    values = {**failure._asdict(), "handler": handler, "first": FIRST_TRY}
    connection.execute(_LOCK)
    connection.execute(_FAILED, values)
    return connection.execute(_OPEN, values)


def close(connection: psycopg.Connection, handler: str) -> None:
    """Forget the failures of a handler, and end the pause that they brought; in the caller's transaction."""
    connection.execute(_CLOSE, [handler])


def hand_over(connection: psycopg.Connection, handler: str) -> bool:
    """Make the pause of an open breaker a person's, which no trial ends; return whether there was one."""
    return connection.execute(_HAND_OVER, [handler]).fetchone() is not None


def try_one(connection: psycopg.Connection, handlers: Mapping[str, timedelta]) -> list[int]:
    """Make one event due of each of these handlers whose breaker is open and may try; return the events. Committed.

    `handlers`: how far apart the tries of each must be at least, by its rate. What is tried gets no time of that rate:
    those of a backlog may be taken for days, while nothing of it runs.
    """
    tried = []
    asked = [list(handlers), list(handlers.values()), LONGEST_WAIT]
    with connection.transaction():
        for handler, tries, apart in connection.execute(_TRIED, asked).fetchall():
            if found := _one_to_try(connection, handler, tries):
                spans = {"first": FIRST_TRY, "longest": LONGEST_WAIT, "apart": apart}
                connection.execute(_TRY, {"handler": handler, "event": found[0], "n": found[1], **spans})
                tried.append(found[0])
            elif connection.execute(_IS_ANY_PARKED, [handler]).fetchone() is not None:
                connection.execute(_LOOK_LATER, [LOOK_AGAIN, handler])
    return tried


def _one_to_try(connection: psycopg.Connection, handler: str, tries: int) -> tuple[int, int] | None:
    """Lock one of a handler's parked runs: the oldest first, then here and there among them, wherever others fail.

    A suspect, which is run alone then, if there is nothing else: otherwise nobody would try any more.
    """
    for place in (tries * _GOLDEN % 1, 0.0, random.random()):  # noqa: S311  spreads looks, keeps no secret
        found = connection.execute(_PARKED, {"handler": handler, "place": place}).fetchone()
        if found:
            return found[0], found[1]
    found = connection.execute(_SUSPECT, [handler]).fetchone()
    return (found[0], found[1]) if found else None


def breakers(connection: psycopg.Connection) -> list[Breaker]:
    """Return the handlers whose last attempt failed, of those that have a breaker."""
    return all_as(Breaker, connection, _ALL)
