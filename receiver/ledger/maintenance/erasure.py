"""Erases what is known of a person: of events that have ended, what came and what was kept of their handling.

The rows of `events` and `runs` stay: a late copy is a duplicate still, and what was counted stays counted.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.access.audit_log import Note
from hookonce.receiver.ledger.results import opened_log

# First locked and then looked at: a replay may come between.
_LOCK = "SELECT id FROM hookonce.events WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
_OPEN = "SELECT DISTINCT event FROM hookonce.queue WHERE event = ANY(%s) ORDER BY event"
_LOGS = (
    "SELECT id, event, handler, cycle, attempt, lines, key_id FROM hookonce.run_logs WHERE event = ANY(%s)"
)
# The first event of a batch has the lines, in the last of its rows before those of the others.
_ERASE_LINES_OF_BATCHES = """
DELETE FROM hookonce.run_logs USING unnest(%s::bigint[], %s::bigint[]) AS t (first, other)
WHERE id = (SELECT l.id FROM hookonce.run_logs l
            WHERE l.event = t.first AND l.id < t.other
                  AND l.handler = (SELECT o.handler FROM hookonce.run_logs o WHERE o.id = t.other)
            ORDER BY l.id DESC LIMIT 1)
"""
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


def erase(connection: psycopg.Connection, events: Iterable[int], who: str, keyring: Keyring = OFF) -> Erased:
    """Erase what the ledger knows of these events, in one transaction; each is noted in the audit.

    What the handler of a batch has written may be about any of its events, so it goes with the first that is erased;
    `keyring` opens what says where those lines are.
    """
    with connection.transaction():
        present = [number for (number,) in connection.execute(_LOCK, [[*events]])]
        still_open = [number for (number,) in connection.execute(_OPEN, [present])]
        ended = [number for number in present if number not in still_open]
        _erase_lines_of_batches(connection, ended, keyring)
        for statement in _ERASE:
            connection.execute(statement, [ended])
        audit_log.note_all(connection, who, [Note("erase", f"event {number}", {}) for number in ended])
    return Erased(ended, still_open)


def _erase_lines_of_batches(connection: psycopg.Connection, events: Sequence[int], keyring: Keyring) -> None:
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_LOGS, [events]).fetchall()
    firsts = {row["id"]: opened_log(keyring, row["event"], row).batch for row in rows}
    elsewhere = {row: first for row, first in firsts.items() if first is not None}
    connection.execute(_ERASE_LINES_OF_BATCHES, [list(elsewhere.values()), list(elsewhere)])
