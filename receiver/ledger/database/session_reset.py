"""Takes out of a session what a handler has left there, before its transaction is committed.

A session keeps settings, temp tables, advisory locks, cursors, numbers of sequences (`currval()`) and more beyond a
COMMIT, and hands them to whoever uses it next. A function, a trigger or a DO block leaves them as well as a statement,
so no reading of SQL text finds them all; and behind a pooler in transaction mode the next one is anybody, whom closing
our own connection does not help. All of this is legal inside a transaction, and costs 2 µs a statement where there is
nothing to take out.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.sql import SQL

from hookonce.receiver.ledger.database import schema
from hookonce.receiver.ledger.database.pinned import PIN

# First what waits for the end of the transaction, which is the handler's still, with its role and its settings.
_RESET = (
    "SET CONSTRAINTS ALL IMMEDIATE",
    "RESET SESSION AUTHORIZATION",
    "RESET ALL",
    "CLOSE ALL",
    "UNLISTEN *",
    "DISCARD TEMP",
    "DISCARD SEQUENCES",
)
UNLOCK = b"SELECT pg_advisory_unlock_all()"
"""To be sent besides; the statement that ends a run does it in passing (`receiver.ledger.runs.ends`)."""
_DEALLOCATE = "DEALLOCATE ALL"
IS_ANYTHING_PREPARED = b"SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE from_sql)"
"""By PREPARE, that is: a driver's own statements are left alone, and what they share a session with is thrown away."""
IS_ANYTHING_AMISS = b"SELECT bool_or(from_sql) IS NOT false FROM pg_prepared_statements"
"""The same, or whether nothing at all is prepared any more."""
# What a rollback does not take back.
_AFTER_ROLLBACK = "ROLLBACK; SELECT pg_advisory_unlock_all(); DISCARD SEQUENCES"

_PLAIN = tuple(text.encode() for text in _RESET)

# What whoever opened the session has set: a pooler's connect_query, or Django.
_SET = """
SELECT name, setting FROM pg_settings WHERE source = 'session' AND name NOT IN ('role', 'session_authorization')
UNION ALL SELECT 'role', current_setting('role') WHERE current_setting('role') <> 'none'
"""


class SessionReset(NamedTuple):
    """The statements that put one kind of session back; see `of`."""

    statements: Sequence[bytes] = _PLAIN

    @classmethod
    def of(cls, connection: psycopg.Connection[Any], *, has_settings: bool) -> "SessionReset":
        """Return what puts a session back, as it is before any handler has it.

        `has_settings`: it may have been given some by statements, which RESET does not know; they are looked up (1 ms),
        in no transaction, which has settings of its own.
        """
        if not has_settings:
            return cls()
        is_pooled = connection.prepare_threshold is None
        prepared = [_DEALLOCATE] if is_pooled else []
        pinned = [PIN] if is_pooled else []
        cursor = schema.cursor(connection)
        cursor.row_factory = tuple_row
        found = cursor.execute(_SET).fetchall()
        calls = [
            SQL("set_config({}, {}, false)").format(name, setting).as_string(connection)
            for name, setting in found
        ]
        restored = [f"SELECT {', '.join(calls)}"] if calls else []
        return cls(tuple(statement.encode() for statement in (*_RESET, *prepared, *restored, *pinned)))


NOTHING = SessionReset(())
"""For a session that no handler has."""


def roll_back(connection: psycopg.Connection[Any]) -> None:
    """Roll back, with what a rollback leaves in the session, before a pooler gives it to another."""
    if connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
        prepared = f"; {_DEALLOCATE}" if connection.prepare_threshold is None else ""
        schema.cursor(connection).execute(f"{_AFTER_ROLLBACK}{prepared}".encode())
