"""Runs that wait for a rate, and limits, say by which rate they were given their times."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns, which rewrites nothing; what waits keeps its time: the workers take it for one by their rate."""
    op.execute("ALTER TABLE hookonce.runs ADD COLUMN schedule text")
    op.execute("ALTER TABLE hookonce.limits ADD COLUMN schedule text")


def downgrade() -> None:
    """Drop them: what waits keeps its time."""
    op.execute("ALTER TABLE hookonce.limits DROP COLUMN schedule")
    op.execute("ALTER TABLE hookonce.runs DROP COLUMN schedule")
