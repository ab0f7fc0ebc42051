"""Makes durable what was committed without waiting for the disk (`synchronous_commit = off`)."""

from typing import Any

import psycopg

from hookonce.receiver.ledger.database.round_trip import require, round_trip

# A commit that has written to the log waits for all that was written before.
_FLUSH = "SELECT pg_logical_emit_message(true, 'hookonce', '')"
_USUAL = "SELECT current_setting('synchronous_commit') = 'on'"


def can_flush(connection: psycopg.Connection[Any]) -> bool:
    """Return whether commits may go unflushed, and be flushed on this connection; committed.

    Not behind a pooler, whose next server knows nothing of a crash of the last, and not where the role or the server
    asks for other than the usual.
    """
    if connection.prepare_threshold is None:
        return False
    with connection.transaction():
        row = connection.execute(_USUAL).fetchone()
    flush(connection)
    return row == (True,)


def flush(connection: psycopg.Connection[Any]) -> None:
    """Make durable what was committed before, by anybody. Raises: `psycopg.Error`."""
    for result in round_trip(connection, [(_FLUSH, {}), ("COMMIT", {})]):
        require(result)
