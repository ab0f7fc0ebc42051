"""The ledger. Until the first release its schema is changed here, and the id of this revision with it."""

from alembic import op

from hookonce.receiver.ledger.database import engines, tables

revision = tables.DIGEST
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the whole schema; `migrate` does so without Alembic where there is nothing yet."""
    engines.raw(op.get_bind()).execute(tables.SCHEMA.encode())
