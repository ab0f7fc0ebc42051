"""Events that an operator sent as a test say so."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column with a constant default, which rewrites nothing."""
    op.execute("ALTER TABLE hookonce.events ADD COLUMN is_test bool NOT NULL DEFAULT false")


def downgrade() -> None:
    """Drop it; tests can no longer be told from other events then."""
    op.execute("ALTER TABLE hookonce.events DROP COLUMN is_test")
