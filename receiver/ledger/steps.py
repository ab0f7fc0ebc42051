"""Steps of handlers as a person sees them, and what a person may decide: the result of one, or that it be forgotten.

Workers write them (`receiver.idempotency.steps`). Nobody decides about a run that is under way: its attempt knows what
it has done. A decision holds the event, as a replay does, and the run's row of the queue, as a claim does.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import psycopg
from psycopg.rows import dict_row
from pydantic import Field

from hookonce.receiver.encryption import Keyring, step_context
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.results import opened, shallow
from hookonce.receiver.ledger.rows import Identifier, Ours
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.withheld import NULL, ContentRow, ErrorText

MAX_STOPPED = 1000


class StepStatus(StrEnum):
    """The status of a step; `UNKNOWN` was cut off or failed, and may have happened."""

    RUNNING = "running"
    DONE = "done"
    UNKNOWN = "unknown"
    STOPPED = "stopped"


class RunUnderWay(Exception):  # noqa: N818  a state of the run
    """The run of the step is under way, so nobody can decide about it."""


class Step(ContentRow):
    """A part of a handler that is done once for the event."""

    event: Identifier
    handler: Ours
    name: str
    status: StepStatus = Field(
        description="`unknown`: it was cut off or failed, and may have happened; `stopped`: it waits for a person"
    )
    attempts: int
    key: str = Field(description="idempotency key that the other side has seen")
    started_at: datetime
    finished_at: datetime | None
    result: Annotated[Any, NULL]
    note: ErrorText = Field(description="why it is stopped, or who said what it gave")
    unreadable: Ours | None = Field(
        default=None, description="why the result can't be decrypted here; it is then null"
    )


_STEPS = f"""
SELECT s.event, s.handler, s.name, s.attempt AS attempts, s.started_at, s.finished_at, s.note, s.result, s.key_id,
       e.source, e.event_id,
       CASE s.state WHEN 'completed' THEN '{StepStatus.DONE}' WHEN 'failed_final' THEN '{StepStatus.STOPPED}'
            WHEN 'in_progress' THEN CASE WHEN r.status = '{RunStatus.RUNNING}' AND r.started_at <= s.started_at
                                         THEN '{StepStatus.RUNNING}' ELSE '{StepStatus.UNKNOWN}' END
            ELSE '{StepStatus.UNKNOWN}' END AS status
FROM hookonce.steps s JOIN hookonce.events e ON e.id = s.event
LEFT JOIN LATERAL (SELECT status, started_at FROM hookonce.run_states
                   WHERE event = s.event AND handler = s.handler OFFSET 0) AS r ON true
"""  # noqa: S608  constants
_OF_EVENT = _STEPS + "WHERE s.event = %s ORDER BY s.handler, s.started_at, s.name"
_STOPPED = _STEPS + "WHERE s.state = 'failed_final' ORDER BY s.event DESC, s.handler, s.name LIMIT %s"

# First what a replay locks, which might open the run again, and then what a claim does.
_LOCK_EVENT = "SELECT FROM hookonce.events WHERE id = %s FOR NO KEY UPDATE"
_LOCK_RUN = """
SELECT token IS NOT NULL FROM hookonce.queue WHERE event = %s AND handler = %s ORDER BY n FOR NO KEY UPDATE
"""
_DONE = """
UPDATE hookonce.steps
SET state = 'completed', finished_at = now(), owner = gen_random_uuid(), note = %s, result = %s, key_id = %s
WHERE event = %s AND handler = %s AND name = %s AND state <> 'completed'
"""
_FORGET = "DELETE FROM hookonce.steps WHERE event = %s AND handler = %s AND name = %s"
_FORGET_ALL = """
DELETE FROM hookonce.steps USING unnest(%s::bigint[], %s::text[]) AS t (event, handler)
WHERE steps.event = t.event AND steps.handler = t.handler AND steps.name = ANY(%s)
RETURNING steps.event, steps.handler, steps.name
"""


def of_event(connection: psycopg.Connection, event: int, keyring: Keyring) -> list[Step]:
    """Return the steps of an event, by handler and in the order they began, their results opened."""
    return _rows(connection, _OF_EVENT, event, keyring)


def stopped(connection: psycopg.Connection, keyring: Keyring) -> list[Step]:
    """Return the steps that wait for a person, those of the newest events first."""
    return _rows(connection, _STOPPED, MAX_STOPPED, keyring)


def mark_done(
    connection: psycopg.Connection, keyring: Keyring, step: tuple[int, str, str], result: object, who: str
) -> bool:
    """Say what a step (event, handler, name) gave; return False where there is none, or it is done. Audited.

    A replay then goes on behind it. Raises: `RunUnderWay`, `KeyMissing`, ValueError for what is not JSON.
    """
    text, key = keyring.encrypt(json.dumps(result, allow_nan=False).encode(), step_context(*step))
    with connection.transaction():
        _require_at_rest(connection, step)
        found = connection.execute(_DONE, [f"by {who}", text, key, *step]).rowcount > 0
        if found:
            _note(connection, who, "settle step", step)
    return found


def forget(connection: psycopg.Connection, step: tuple[int, str, str], who: str) -> bool:
    """Forget a step (event, handler, name), so that a replay does it anew under the same key; audited.

    Return False where there is none. Raises: `RunUnderWay`.
    """
    with connection.transaction():
        _require_at_rest(connection, step)
        found = connection.execute(_FORGET, step).rowcount > 0
        if found:
            _note(connection, who, "forget step", step)
    return found


def forget_of_runs(
    connection: psycopg.Connection, runs: Sequence[tuple[int, str]], names: Sequence[str]
) -> list[tuple[int, str, str]]:
    """Forget the steps of these names of some runs (event, handler), whose rows are locked; return which there were."""
    if not (runs and names):
        return []
    columns = [[event for event, _ in runs], [handler for _, handler in runs], list(names)]
    return connection.execute(_FORGET_ALL, columns).fetchall()


def _require_at_rest(connection: psycopg.Connection, step: tuple[int, str, str]) -> None:
    event, handler, _ = step
    connection.execute(_LOCK_EVENT, [event])
    if any(is_leased for (is_leased,) in connection.execute(_LOCK_RUN, [event, handler])):
        raise RunUnderWay(f"handler {handler} is at work on event {event}; decide when its attempt has ended")


def _note(connection: psycopg.Connection, who: str, action: str, step: tuple[int, str, str]) -> None:
    event, handler, name = step
    audit_log.note(connection, who, action, f"event {event}", {"handler": handler, "step": name})


def _rows(connection: psycopg.Connection, query: str, parameter: int, keyring: Keyring) -> list[Step]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return [_row(row, keyring) for row in cursor.execute(query.encode(), [parameter]).fetchall()]


def _row(row: dict[str, Any], keyring: Keyring) -> Step:
    text, key_id, source, event_id = (row.pop(name) for name in ("result", "key_id", "source", "event_id"))
    key = step_key(idempotency_key(source, event_id, row["handler"]), row["name"])
    bond = step_context(row["event"], row["handler"], row["name"])
    result, unreadable = opened(keyring, bond, None, text, key_id)
    return Step(**row, key=key, result=shallow(result), unreadable=unreadable)


def idempotency_key(source: str, event_id: str, handler: str) -> str:
    """Derive the key that every attempt, replay and worker gives to the same work (64 hex digits)."""
    return hashlib.sha256(f"{source}\n{event_id}\n{handler}".encode()).hexdigest()


def step_key(idempotency_key: str, name: str) -> str:
    """Derive the key of a step from that of its handler on its event (64 hex digits)."""
    return hashlib.sha256(f"{idempotency_key}\n{name}".encode()).hexdigest()
