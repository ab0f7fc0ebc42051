"""What must be known of attempts whose lease is over before anybody else gets their runs.

A handler may have committed its transaction by itself before its worker died, or may be about to. So a run is taken
over only under a lock, and only if its attempt has left no mark (`receiver.ledger.runs.marks`); one that has is dead.
"""

import uuid
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.database.arrays import array
from hookonce.receiver.ledger.runs import claim_writes, event_status, marks
from hookonce.receiver.ledger.states import RunStatus

_IS_OVER = f"event = ANY(%(events)b::bigint[]) AND status = '{RunStatus.RUNNING}' AND due_at <= now()"
_LOST = f"SELECT event, handler, token FROM hookonce.runs WHERE {_IS_OVER}"  # noqa: S608  a constant
_LOCK = f"{_LOST} ORDER BY event, handler FOR UPDATE SKIP LOCKED"
_FIND = """
SELECT m.event, m.handler, m.token FROM hookonce.marks m
JOIN unnest(%s::bigint[], %s::text[], %s::uuid[]) AS t (event, handler, token) USING (event, handler, token)
"""


class Lost(NamedTuple):
    """A run that is running, and whose lease is over."""

    event: int
    handler: str
    token: uuid.UUID

    @property
    def keys(self) -> list[int]:
        """The numbers of the advisory locks that its attempt may hold: by itself, or in a batch."""
        return [marks.key(self.event, self.handler, self.token), marks.key(None, self.handler, self.token)]


def settle(connection: psycopg.Connection, events: Sequence[int]) -> AbstractSet[int]:
    """Lock what is lost of events that the caller has locked, and bury the runs whose handlers have committed.

    Return the events that must be left: a transaction still holds a run of theirs. If it is a handler's whose lease is
    over, its backend is ended first. The caller derives the events' statuses.
    """
    values = {"events": array("bigint", sorted(events))}
    with connection.pipeline():
        lost = connection.execute(_LOST, values)
        locked = connection.execute(_LOCK, values)
    free = {Lost(*row) for row in locked}
    held = {Lost(*row) for row in lost} - free
    committed = _marked(connection, free)
    if held:
        prepared = {run for run in held if marks.are_prepared(connection, run.keys)}
        marks.end_holders(connection, [key for run in held - prepared for key in run.keys])
        freed = {Lost(*row) for row in connection.execute(_LOCK, values)} & held
        committed |= prepared | _marked(connection, freed)
        held -= prepared | freed
    if committed:
        _bury(connection, sorted(committed))
    return {run.event for run in held}


def _marked(connection: psycopg.Connection, runs: AbstractSet[Lost]) -> set[Lost]:
    """Return those of locked runs whose attempts have left marks."""
    if not runs:
        return set()
    columns = [list(column) for column in zip(*runs, strict=True)]
    return {Lost(*row) for row in connection.execute(_FIND, columns)}


def _bury(connection: psycopg.Connection, runs: Sequence[Lost]) -> None:
    events, handlers, _ = zip(*runs, strict=True)
    buried = {
        "events": list(events),
        "handlers": list(handlers),
        "buried": [True] * len(runs),
        "error": marks.COMMITTED,
    }
    connection.execute(claim_writes.END_EXPIRED, buried)
    for run in runs:
        marks.delete(connection, marks.Marked([run.event], run.handler, run.token))


def settle_batch(connection: psycopg.Connection, events: Sequence[int]) -> bool:
    """Do as `settle` does for a batch that is lost, whose events it locks; return whether the batch may be taken."""
    connection.execute(event_status.LOCK_EVENTS, [list(events)])
    held = settle(connection, events)
    connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": list(events)})
    return not held
