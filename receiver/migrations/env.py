"""Runs the revisions on the connection that `receiver.migrate` hands over."""

from alembic import context
from sqlalchemy import Connection

from receiver import schema

_connection: Connection = context.config.attributes["connection"]


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Leave alone what lives beside us: the user's own tables and the daily partitions."""
    return kind != "table" or name in schema.metadata.tables


context.configure(
    connection=_connection,
    target_metadata=schema.metadata,
    version_table="hookonce_version",
    include_name=_is_ours,
)
with context.begin_transaction():
    context.run_migrations()
