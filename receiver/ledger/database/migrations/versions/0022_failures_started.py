"""Failed attempts say when they began, so that it is known how long each of them took."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column, which rewrites nothing; of failures of before it is not known."""
    op.execute("ALTER TABLE hookonce.failures ADD COLUMN started_at timestamptz")


def downgrade() -> None:
    """Drop it."""
    op.execute("ALTER TABLE hookonce.failures DROP COLUMN started_at")
