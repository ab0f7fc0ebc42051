"""Erases what is known of a person: of events that have ended, what came and what was kept of their handling.

The rows of `events` and `runs` stay: a late copy is a duplicate still, and what was counted stays counted.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.access.audit_log import Note

# First locked and then looked at: a replay may come between.
_LOCK = "SELECT id FROM hookonce.events WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
_OPEN = "SELECT DISTINCT event FROM hookonce.queue WHERE event = ANY(%s) ORDER BY event"
_ERASE = (
    "DELETE FROM hookonce.bodies WHERE event = ANY(%s)",
    "DELETE FROM hookonce.conflicts WHERE event = ANY(%s)",
    "DELETE FROM hookonce.failures WHERE event = ANY(%s)",
    "DELETE FROM hookonce.run_logs WHERE event = ANY(%s)",
    "UPDATE hookonce.runs SET result = NULL, sealed_result = NULL, key_id = NULL WHERE event = ANY(%s)",
    "UPDATE hookonce.steps SET result = NULL, note = NULL, key_id = NULL WHERE event = ANY(%s)",
)


class Erased(NamedTuple):
    """Ledger ids: of what was erased, and of what is yet to be handled and was left alone."""

    erased: Sequence[int]
    open: Sequence[int]


def erase(connection: psycopg.Connection, events: Iterable[int], who: str) -> Erased:
    """Erase what the ledger knows of these events, in one transaction; each is noted in the audit."""
    with connection.transaction():
        present = [number for (number,) in connection.execute(_LOCK, [[*events]])]
        still_open = [number for (number,) in connection.execute(_OPEN, [present])]
        ended = [number for number in present if number not in still_open]
        for statement in _ERASE:
            connection.execute(statement, [ended])
        audit_log.note_all(connection, who, [Note("erase", f"event {number}", {}) for number in ended])
    return Erased(ended, still_open)
