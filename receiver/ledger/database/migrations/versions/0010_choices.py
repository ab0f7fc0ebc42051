"""Events say whether their source keeps bodies; handlers of commands say what they take and give."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns, which rewrites nothing."""
    op.execute(
        "ALTER TABLE hookonce.events ADD COLUMN keep_body boolean NOT NULL DEFAULT true;"
        "ALTER TABLE hookonce.handlers ADD COLUMN models json"
    )


def downgrade() -> None:
    """Drop them; bodies that are there stay until retention takes them."""
    op.execute(
        "ALTER TABLE hookonce.events DROP COLUMN keep_body;ALTER TABLE hookonce.handlers DROP COLUMN models"
    )
