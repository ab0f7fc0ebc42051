"""What became of a transaction: PostgreSQL is asked, by the transaction's id (docs/decisions/0015)."""

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import scalar_row

_XACT_ID = "SELECT pg_current_xact_id()::text"

# A server that took over after a failover may never have heard of an id; asked for one of the future, it fails.
# Asks with an id of its own, which is above all that were given out before: after a crash some may be unknown.
_IS_COMMITTED = """
SELECT CASE pg_xact_status(id) WHEN 'committed' THEN true WHEN 'in progress' THEN NULL ELSE false END
FROM (SELECT %s::text::xid8 AS id) AS asked WHERE id < pg_current_xact_id()
"""
_END_BACKEND = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = %s::text::xid8::xid"
)


def current_xact_id(connection: psycopg.Connection, *, begin: bool = False) -> str | None:
    """Return the id of the transaction that this is in, which has one from then on; None if it is aborted.

    `begin` is for one that no statement has begun yet.
    """
    if not begin and connection.info.transaction_status != TransactionStatus.INTRANS:
        return None
    return psycopg.Cursor(connection, row_factory=scalar_row).execute(_XACT_ID).fetchone()


def is_committed(connection: psycopg.Connection, xact_id: str) -> bool | None:
    """Return whether the transaction of this id was committed; None while it goes on, is committing or is prepared."""
    row = connection.execute(_IS_COMMITTED, [xact_id]).fetchone()
    return row[0] if row else False


def end_backend(connection: psycopg.Connection, xact_id: str) -> None:
    """End the backend of a transaction whose client is gone; one that waits for a standby stays committed."""
    connection.execute(_END_BACKEND, [xact_id])
