"""Runs the revisions on the connection that `receiver.ledger.database.migrate` hands over."""

from alembic import context
from sqlalchemy import Connection

from hookonce.receiver.ledger.database import tables

_connection: Connection = context.config.attributes["connection"]
_schema: str = context.config.attributes["schema"]
_TABLES = {table.name for table in tables.metadata.tables.values()}


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Leave alone what lives beside us: the user's own tables and the daily partitions."""
    if kind == "schema":
        return name == _schema
    return kind != "table" or name in _TABLES


context.configure(
    connection=_connection,
    target_metadata=tables.metadata,
    version_table="hookonce_version",
    version_table_schema=_schema,
    include_schemas=True,
    include_name=_is_ours,
)
with context.begin_transaction():
    context.run_migrations()
