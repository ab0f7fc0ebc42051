"""Cursors of ours, and the PostgreSQL schema that they name in every statement; no search_path is relied on.

Statements are written with the name that is usual, `hookonce.events`, so that they can be searched for and pasted.
Where another schema is configured, the cursors of our connections put its name into each statement on its way out:
into ours, that is, for a handler gets cursors of its own, which send what it wrote.
So a database may hold tables of its own called `events`, and two ledgers do not know of each other.
"""

import re
from functools import lru_cache
from typing import Any

from psycopg import Connection, Cursor, Error, sql
from psycopg.pq import TransactionStatus

from hookonce.receiver.config.server_urls import USUAL_SCHEMA
from hookonce.receiver.ledger.database.adapters import ADAPTERS

_NAMED = re.compile(rf"(?<![\w.]){USUAL_SCHEMA}\.(?=[a-z\"])")
_NAMED_IN_BYTES = re.compile(_NAMED.pattern.encode())


class LedgerCursor(Cursor[Any]):
    """A cursor of ours, whatever adapters the connection has that it is on."""

    schema_name = USUAL_SCHEMA

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
        super().__init__(*args, **options)
        # `tests/jobs/attempts/test_left_to_others.py` notices if psycopg keeps them elsewhere one day.
        self._adapters = ADAPTERS


class _PooledCursor(LedgerCursor):
    """A cursor through a pooler, whose statement is a transaction that begins as any of ours does."""

    def execute(self, query: Any, *args: Any, **options: Any) -> "_PooledCursor":  # noqa: ANN401  psycopg's
        connection = self._conn
        pgconn = connection.pgconn
        if pgconn.transaction_status != TransactionStatus.IDLE or pgconn.pipeline_status:
            super().execute(query, *args, **options)
            return self
        try:
            with connection.pipeline(), connection.transaction():
                super().execute(query, *args, **options)
        except Error:
            if not connection.closed:
                connection.rollback()
            raise
        return self


def use(connection: "Connection[Any]", schema: str) -> None:
    """Have every statement that a connection sends from now on be one of ours, and name `schema`."""
    kind = _PooledCursor if connection.prepare_threshold is None and connection.autocommit else LedgerCursor
    connection.cursor_factory = _cursor_class(schema, kind)


def cursor(connection: "Connection[Any]", schema: str = USUAL_SCHEMA) -> "Cursor[Any]":
    """Return a cursor that names `schema`, on a connection of somebody else's that goes on naming what it likes."""
    return _cursor_class(schema)(connection)


def of(connection: "Connection[Any]") -> str:
    """Return the schema that a connection's statements name."""
    return of_cursors(connection.cursor_factory)


def of_cursors(kind: object) -> str:
    """Return the schema that cursors of a class name."""
    return str(getattr(kind, "schema_name", USUAL_SCHEMA))


@lru_cache(maxsize=16)
def _cursor_class(schema: str, kind: type[LedgerCursor] = LedgerCursor) -> type[LedgerCursor]:
    """Return the class of cursors of a kind that put a schema's name in."""
    if schema == USUAL_SCHEMA:
        return kind

    class SchemaCursor(kind):  # type: ignore[misc,valid-type]
        schema_name = schema

        def execute(self, query: Any, *args: Any, **options: Any) -> "SchemaCursor":  # noqa: ANN401  psycopg's
            super().execute(named(query, schema), *args, **options)
            return self

        def executemany(self, query: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
            super().executemany(named(query, schema), *args, **options)

        def copy(self, statement: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401  psycopg's
            return super().copy(named(statement, schema), *args, **options)

        def stream(self, query: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401  psycopg's
            return super().stream(named(query, schema), *args, **options)

    return SchemaCursor


@lru_cache(maxsize=512)
def _text(query: str, schema: str) -> str:
    return _NAMED.sub(f'"{schema}".', query)


@lru_cache(maxsize=512)
def _bytes(query: bytes, schema: str) -> bytes:
    return _NAMED_IN_BYTES.sub(f'"{schema}".'.encode(), query)


def named(query: Any, schema: str) -> Any:  # noqa: ANN401  whatever psycopg takes
    """Return a statement with `schema` in the place of the usual name."""
    if schema == USUAL_SCHEMA:
        return query
    if isinstance(query, str):
        return _text(query, schema)
    return _bytes(query if isinstance(query, bytes) else query.as_bytes(), schema)


_ON_PATH = "SELECT current_user, %(schema)s = ANY(current_schemas(false))"


def on_the_path_of(connection: "Connection[Any]", schema: str) -> str | None:
    """Return the role whose search path leads into the schema; None if it does not.

    It does for a role of that name, by PostgreSQL's default of `"$user", public`: what a handler calls `events` is
    then the ledger's table, and what it creates lies among the ledger's.
    """
    row = connection.execute(_ON_PATH, {"schema": schema}).fetchone()
    return str(row[0]) if row and row[1] else None


_FIND = "SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s"


def create(connection: "Connection[Any]", schema: str) -> None:
    """Make the schema unless it is there: one that a DBA has made is enough, with no right to make any."""
    if connection.execute(_FIND, [schema]).fetchone() is None:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
