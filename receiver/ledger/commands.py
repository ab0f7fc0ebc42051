"""Outcomes of commands: each is an event whose one run has the event's source for its handler's name."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import psycopg

from hookonce.receiver.encryption import Keyring, result_context
from hookonce.receiver.ledger.results import opened
from hookonce.receiver.ledger.states import EventStatus, RunStatus

# One look for all that wait: by the unique key of events, and the primary keys of runs and the queue.
_FIND = """
SELECT e.source, e.event_id, e.account, s.status, r.status, r.attempts, e.id, r.result, r.sealed_result, r.key_id
FROM unnest(%b::text[], %b::text[]) AS k (source, event_id)
JOIN hookonce.events e USING (source, event_id)
CROSS JOIN LATERAL (SELECT status FROM hookonce.event_states WHERE id = e.id OFFSET 0) AS s
LEFT JOIN LATERAL (SELECT * FROM hookonce.run_states WHERE event = e.id AND handler = e.source OFFSET 0) AS r ON true
"""

Name = tuple[str, str]
"""The source and the event id of a command."""


class CommandState(StrEnum):
    """The state of a command, as a client may know it."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED_RETRYABLE = "failed_retryable"
    FAILED_FINAL = "failed_final"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command so far; `result` is what its handler returned, `account` whose command it is.

    `unreadable` says why the result can't be opened here.
    """

    state: CommandState
    account: str
    result: Any = field(default=None, repr=False)
    unreadable: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing will change by itself."""
        return self.state in {CommandState.COMPLETED, CommandState.FAILED_FINAL}


def find(connection: psycopg.Connection, names: Collection[Name], keyring: Keyring) -> dict[Name, Outcome]:
    """Return what became of those commands that the ledger holds."""
    columns = [[source for source, _ in names], [event_id for _, event_id in names]]
    found = {}
    for source, event_id, account, event, run, attempts, number, *kept in connection.execute(
        _FIND, columns, prepare=True
    ):
        state = _state(event, run, attempts)
        result = opened(keyring, result_context(number, source), *kept)
        found[source, event_id] = Outcome(state, account or "", *result)
    return found


def _state(event: str, run: str | None, attempts: int | None) -> CommandState:
    if run == RunStatus.DONE:
        return CommandState.COMPLETED
    if run in {RunStatus.DEAD, RunStatus.DISCARDED} or event in {EventStatus.DEAD, EventStatus.DISCARDED}:
        return CommandState.FAILED_FINAL
    return (
        CommandState.FAILED_RETRYABLE if run == RunStatus.WAITING and attempts else CommandState.IN_PROGRESS
    )
