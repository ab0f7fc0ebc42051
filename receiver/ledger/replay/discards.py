"""Gives events up by a person's decision: what is dead, held or waits is discarded, and a replay undoes that.

What is running is left alone. A run that had not begun leaves a row in `runs`, as one that has ended does; an event
that no handler has been given leaves one without a handler. Locks are taken as a replay takes them.
"""

from collections.abc import Sequence

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.access.audit_log import Note, note_all
from hookonce.receiver.ledger.maintenance.erasure import DISCARD, OF_HANDLER
from hookonce.receiver.ledger.replay.events import lock
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.states import RunStatus

_RUNNING = (
    f"SELECT DISTINCT event FROM hookonce.queue WHERE {OF_HANDLER} AND token IS NOT NULL ORDER BY event"  # noqa: S608
)
_DISCARD_OPEN = f"""
WITH gone AS (
    DELETE FROM hookonce.queue WHERE {OF_HANDLER} AND token IS NULL
    RETURNING event, coalesce(handler, '') AS handler, cycle, attempts
), ended AS (
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
    SELECT event, handler, cycle, '{RunStatus.DISCARDED}', attempts, now() FROM gone
)
SELECT event, handler FROM gone ORDER BY event, handler
"""  # noqa: S608  constants


class DiscardedEvent(ResponseModel):
    """An event that was discarded, and the handlers whose runs were; none where no handler had been given it."""

    id: Identifier
    handlers: list[Ours]


class Discarded(ResponseModel):
    """The events that were discarded, those that were left alone, and the ids that the ledger does not hold."""

    discarded: list[DiscardedEvent]
    running: list[Identifier] = Field(description="left alone: discard them once their attempts have ended")
    ended: list[Identifier] = Field(description="left alone: nothing of them is dead, held or waits")
    unknown: list[Identifier]


def discard(
    connection: psycopg.Connection, ids: Sequence[int], who: str | None, handler: str | None = None
) -> Discarded:
    """Discard events, or their runs of one handler, in one transaction; each event is noted in the audit.

    Without `who` nothing is discarded, and what would be is told.
    """
    with connection.transaction(force_rollback=who is None):
        present = lock(connection, ids)
        these = {"events": present, "handler": handler}
        running = [event for (event,) in connection.execute(_RUNNING.encode(), these)]
        these["events"] = [event for event in present if event not in running]
        found: dict[int, list[str]] = {}
        for statement in (DISCARD, _DISCARD_OPEN):
            for event, of in connection.execute(statement.encode(), these):
                found.setdefault(event, []).extend([of] if of else [])
        if who is not None:
            note_all(
                connection,
                who,
                [Note("discard", f"event {event}", {"handlers": of}) for event, of in found.items()],
            )
    return Discarded(
        discarded=[DiscardedEvent(id=event, handlers=sorted(of)) for event, of in sorted(found.items())],
        running=running,
        ended=sorted({*present}.difference(found, running)),
        unknown=sorted({*ids}.difference(present)),
    )
