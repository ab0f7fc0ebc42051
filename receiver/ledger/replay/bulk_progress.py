"""Follows what bulk replays have made due, to tell how many succeeded and how many died.

Each step of a bulk replay keeps the ids that have not ended yet. A look at them counts those that have and lets
go of their ids, so the older a replay is, the less there is to look at.
"""

from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.states import OPEN, EventStatus, one_of

MAX_STEPS = 50
"""Steps looked at in one go, those that were not looked at for longest first."""

_LOOK = f"""
WITH picked AS MATERIALIZED (
    SELECT bulk, last_event, events FROM hookonce.bulk_steps
    WHERE events <> '{{}}' AND (%(bulk)s::bigint IS NULL OR bulk = %(bulk)s)
    ORDER BY checked_at LIMIT %(steps)s FOR UPDATE SKIP LOCKED
), seen AS (
    SELECT p.bulk, p.last_event, count(*) FILTER (WHERE e.status = '{EventStatus.DONE}') AS done,
           count(*) FILTER (WHERE e.status = '{EventStatus.DEAD}') AS dead,
           coalesce(array_agg(e.id) FILTER (WHERE {one_of("e.status", OPEN)}), '{{}}') AS open
    FROM picked p CROSS JOIN unnest(p.events) AS t (event) LEFT JOIN LATERAL (
        SELECT s.id, s.status FROM hookonce.event_states s WHERE s.id = t.event OFFSET 0) AS e ON true
    GROUP BY p.bulk, p.last_event
)
UPDATE hookonce.bulk_steps s SET done = s.done + seen.done, dead = s.dead + seen.dead, events = seen.open,
  checked_at = now()
FROM seen WHERE s.bulk = seen.bulk AND s.last_event = seen.last_event
"""  # noqa: S608  constants

_PROGRESS = """
SELECT coalesce(sum(done), 0)::int AS done, coalesce(sum(dead), 0)::int AS dead,
       coalesce(sum(cardinality(events)), 0)::int AS open
FROM hookonce.bulk_steps WHERE bulk = %s
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of the events that a bulk replay has made due: done, dead, or still open; the rest is ignored or gone."""

    done: int
    dead: int
    open: int


def look(connection: psycopg.Connection, bulk: int | None = None) -> None:
    """Look at what is still open, of one bulk replay or of all; a bounded part of it."""
    connection.execute(_LOOK, {"bulk": bulk, "steps": MAX_STEPS})


def progress(connection: psycopg.Connection, bulk: int) -> Progress:
    """Return how the events of a bulk replay have ended, as of the last look."""
    with connection.cursor(row_factory=class_row(Progress)) as cursor:
        return cursor.execute(_PROGRESS, [bulk]).fetchone() or Progress(0, 0, 0)
