"""Outcomes of the runs of listed events, with the latest error of each; the run that needs a person most is first."""

from collections.abc import Sequence
from datetime import datetime

import psycopg

from hookonce.receiver.ledger.rows import all_as
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.withheld import ContentRow, ErrorText

_SHOWN = 500
"""Characters of an error that tell it from others."""

# Event by event: OFFSET keeps the planner from reading all runs instead.
_OUTCOMES = f"""
SELECT e.id AS event, r.handler, r.status, r.finished_at,
       count(*) OVER (PARTITION BY e.id) - 1 AS others,
       (SELECT d.issue FROM hookonce.runs d WHERE d.event = e.id AND d.handler = r.handler AND d.is_last) AS issue,
       CASE WHEN r.status IS DISTINCT FROM '{RunStatus.DONE}' THEN (
           SELECT left(f.error, {_SHOWN}) FROM hookonce.failures f
           WHERE f.event = e.id AND f.handler = coalesce(r.handler, '') ORDER BY f.id DESC LIMIT 1) END AS error
FROM unnest(%s::bigint[]) AS e (id)
     LEFT JOIN LATERAL (SELECT * FROM hookonce.run_states s WHERE s.event = e.id OFFSET 0) AS r ON true
ORDER BY e.id DESC, array_position(%s::text[], r.status), r.handler
"""  # noqa: S608  constants
_WORST_FIRST = [RunStatus.DEAD, RunStatus.WAITING, RunStatus.RUNNING, RunStatus.DONE, RunStatus.DISCARDED]


class Outcome(ContentRow):
    """A run of an event, which has so many `others`; or, without a handler, why an event has none."""

    event: int
    handler: str | None
    status: str | None
    finished_at: datetime | None
    others: int
    issue: str | None
    error: ErrorText

    @property
    def is_dead(self) -> bool:
        """Whether the run is dead, or the event could not be read."""
        return self.status in {RunStatus.DEAD, None}


def outcomes(connection: psycopg.Connection, events: Sequence[int]) -> list[Outcome]:
    """Return the runs of events, newest events first; of an event without runs, a row without a handler."""
    return all_as(Outcome, connection, _OUTCOMES, [list(events), list(_WORST_FIRST)])
