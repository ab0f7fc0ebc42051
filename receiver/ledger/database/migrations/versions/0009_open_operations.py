"""Keys of requests that are in progress can be found without looking at all: for metrics and alerts."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make a small index on a table of a day's keys; requests with keys wait for it a moment."""
    op.execute(
        "CREATE INDEX idempotency_open ON hookonce.idempotency (started_at) WHERE state = 'in_progress'"
    )


def downgrade() -> None:
    """Drop it again."""
    op.execute("DROP INDEX hookonce.idempotency_open")
