"""What a claim reads besides the events it locks: what is paused, and the runs that there are."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.runs.claim_plan import PausedHandlers
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ExistingRun
from hookonce.receiver.ledger.states import Parked

# Event by event, whatever the planner thinks of the table: it may have been empty when the plan was made.
_RUNS = """
SELECT r.event, r.handler, r.status, r.attempts, r.cycle, r.due_at <= now() AS is_due, r.parked, r.slot_at,
       r.schedule, r.beside
FROM unnest(%s::bigint[]) AS t (event), LATERAL (SELECT * FROM hookonce.runs WHERE event = t.event OFFSET 0) AS r
"""

_TRIAL = "trial"
PAUSED = f"""
SELECT kind, name, NULL::bigint FROM hookonce.pauses
UNION ALL SELECT '{_TRIAL}', handler, trying FROM hookonce.breakers
"""  # noqa: S608  a constant


class Paused(NamedTuple):
    """What is paused, and the handlers that failed last."""

    sources: frozenset[str]
    handlers: PausedHandlers
    failing: frozenset[str]

    @classmethod
    def of(cls, rows: Sequence[tuple[str, str, int | None]]) -> "Paused":
        """Sort the rows of `pauses` and `breakers`."""
        return cls(
            frozenset(name for kind, name, _ in rows if kind == Parked.SOURCE),
            PausedHandlers(
                frozenset(name for kind, name, _ in rows if kind == Parked.HANDLER),
                frozenset(
                    (event, name) for kind, name, event in rows if kind == _TRIAL and event is not None
                ),
            ),
            frozenset(name for kind, name, _ in rows if kind == _TRIAL),
        )


def existing_runs(
    connection: psycopg.Connection, events: Sequence[ClaimedEvent]
) -> Mapping[int, Sequence[ExistingRun]]:
    """Return the runs there are by event."""
    found: dict[int, list[ExistingRun]] = {event.id: [] for event in events}
    cursor = connection.cursor(row_factory=class_row(ExistingRun))
    for run in cursor.execute(_RUNS, [list(found)], prepare=True):
        found[run.event].append(run)
    return found
