"""Runs the revisions on the connection that `receiver.ledger.database.migrate` hands over."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="hookonce_version",
    version_table_schema=context.config.attributes["schema"],
)
with context.begin_transaction():
    context.run_migrations()
