"""The key that marks in the dedup window are made with: whoever can write to Redis can't make one."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

# 244 random bits of PostgreSQL's own generator: no extension is needed, and the key is never sent to make it.
_COLUMN = """
ALTER TABLE hookonce.ledger ADD COLUMN window_key bytea NOT NULL
    DEFAULT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')
"""


def upgrade() -> None:
    """Add a column to a table of one row; what older receivers have left in the window is no longer believed."""
    op.execute(_COLUMN)


def downgrade() -> None:
    """Drop it: the window is believed as it was before, by its words alone."""
    op.execute("ALTER TABLE hookonce.ledger DROP COLUMN window_key")
