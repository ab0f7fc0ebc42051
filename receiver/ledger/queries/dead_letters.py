"""Dead runs: of which handler, and of what they died. Reads only, never more than the newest `MAX_DEATHS` events."""

from collections.abc import Sequence
from datetime import datetime

import psycopg

from hookonce.receiver.ledger.rows import all_as
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.withheld import ContentRow, ErrorText

MAX_DEATHS = 1000
_SHOWN = 500
"""Characters of an error that tell it from others."""

DIED = f"""(SELECT EXISTS (
    SELECT FROM hookonce.runs r WHERE r.event = events.id AND r.status = '{RunStatus.DEAD}' AND r.is_last
           AND (%(handler)s::text IS NULL OR r.handler = %(handler)s)
           AND (%(error_like)s::text IS NULL OR (
               SELECT f.error FROM hookonce.failures f WHERE f.event = r.event AND f.handler = r.handler
               ORDER BY f.id DESC LIMIT 1) LIKE %(error_like)s)))"""  # noqa: S608  constants
"""Keeps events with a dead run of this handler, whose latest error is like that; part of `event_filter.matches`."""

# Event by event: OFFSET keeps the planner from reading all runs instead.
_DEATHS_OF = f"""
WITH newest AS MATERIALIZED (SELECT id, source, received_at FROM hookonce.events WHERE id = ANY(%(ids)s))
SELECT n.id AS event, n.source, n.received_at, r.handler, r.finished_at, r.issue,
       left(f.error, %(shown)s) AS error
FROM newest n
     LEFT JOIN LATERAL (SELECT event, handler, finished_at, issue FROM hookonce.runs
                        WHERE event = n.id AND status = '{RunStatus.DEAD}' AND is_last AND handler <> ''
                        OFFSET 0) AS r ON true
     LEFT JOIN LATERAL (SELECT error FROM hookonce.failures WHERE event = n.id AND handler = coalesce(r.handler, '')
                        ORDER BY id DESC LIMIT 1) AS f ON true
ORDER BY n.id DESC, r.handler
"""  # noqa: S608  constants


class Death(ContentRow):
    """A dead run, and the beginning of its latest error; or, without a handler, why an event could not be read."""

    event: int
    source: str
    received_at: datetime
    handler: str | None
    finished_at: datetime | None
    issue: str | None
    error: ErrorText


def deaths_of(connection: psycopg.Connection, events: Sequence[int]) -> list[Death]:
    """Return the dead runs of these events, newest first; of one that has none, a row without a handler."""
    return all_as(Death, connection, _DEATHS_OF, {"ids": list(events), "shown": _SHOWN})
