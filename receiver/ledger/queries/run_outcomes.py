"""Outcomes of the runs of listed events, one line each: the run that needs a person most, and its error."""

from collections.abc import Sequence
from datetime import datetime

import psycopg

from hookonce.receiver.ledger.rows import all_as
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.withheld import ContentRow, ErrorText

_SHOWN = 300
"""Characters of an error."""

_OUTCOMES = f"""
SELECT DISTINCT ON (r.event) r.event, r.handler, r.status, r.attempts, r.due_at,
       count(*) OVER (PARTITION BY r.event) - 1 AS others,
       CASE WHEN r.status <> '{RunStatus.DONE}' THEN (
           SELECT left(f.error, {_SHOWN}) FROM hookonce.failures f
           WHERE f.event = r.event AND f.handler = r.handler ORDER BY f.id DESC LIMIT 1) END AS error
FROM hookonce.run_states r WHERE r.event = ANY(%s)
ORDER BY r.event, array_position(%s::text[], r.status), r.handler
"""  # noqa: S608  constants
_WORST_FIRST = [RunStatus.DEAD, RunStatus.WAITING, RunStatus.RUNNING, RunStatus.DONE, RunStatus.DISCARDED]


class Outcome(ContentRow):
    """An event's run that died, else one that waits, runs or is done; how many `others` it has; the latest error."""

    event: int
    handler: str
    status: str
    attempts: int
    due_at: datetime | None
    others: int
    error: ErrorText


def outcomes(connection: psycopg.Connection, events: Sequence[int]) -> list[Outcome]:
    """Return an outcome for each of these events that has runs."""
    return all_as(Outcome, connection, _OUTCOMES, [list(events), list(_WORST_FIRST)])
