"""Failed attempts keep their tracebacks, sealed where bodies are."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns, which rewrites nothing."""
    op.execute("ALTER TABLE hookonce.failures ADD COLUMN traceback bytea, ADD COLUMN key_id text")


def downgrade() -> None:
    """Drop them, with what they hold."""
    op.execute("ALTER TABLE hookonce.failures DROP COLUMN traceback, DROP COLUMN key_id")
