"""What schema a database has, where it isn't the one that this code needs: found, needed, and the command."""

from typing import Any

import psycopg

from hookonce.receiver.ledger.database import schema
from hookonce.receiver.ledger.database.schema_version import REVISION, SchemaBehind

_REVISION = "SELECT version_num FROM hookonce.hookonce_version"
_ELSEWHERE = """
SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'hookonce_version' ORDER BY 1
"""


def require_schema(connection: psycopg.Connection[Any]) -> None:
    """Raise `SchemaBehind` unless a database has at least this code's schema; a connection in autocommit mode asks."""
    try:
        row = connection.execute(_REVISION).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    name = connection.info.dbname
    if row is not None and row[0] < REVISION:
        raise SchemaBehind(
            f"the ledger in the database '{name}' is at revision {row[0]}, this version needs {REVISION}; "
            "run `hookonce db upgrade`"
        )
    if row is None:
        found = [place for (place,) in connection.execute(_ELSEWHERE)]
        there = f"one lies in {', '.join(found)}" if found else "nor in any other"
        raise SchemaBehind(
            f"the database '{name}' has no ledger in the schema {schema.of(connection)}, {there}; this version needs "
            f"revision {REVISION}: run `hookonce db upgrade`, or set DATABASE_URL to where the ledger is"
        )
