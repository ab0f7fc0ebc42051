"""The statuses of events and runs without CHECK constraints, which PostgreSQL parses anew in every statement."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_DROP = """
ALTER TABLE hookonce.events DROP CONSTRAINT IF EXISTS events_status_check;
ALTER TABLE hookonce.runs DROP CONSTRAINT IF EXISTS runs_status_check
"""
_ADD = """
ALTER TABLE hookonce.events ADD CONSTRAINT events_status_check CHECK (status IN
    ('received', 'running', 'waiting', 'done', 'dead', 'ignored', 'held')) NOT VALID;
ALTER TABLE hookonce.runs ADD CONSTRAINT runs_status_check CHECK (status IN
    ('waiting', 'running', 'done', 'dead')) NOT VALID
"""


def upgrade() -> None:
    """Drop them, which reads nothing."""
    op.execute(_DROP)


def downgrade() -> None:
    """Put them back for what is written from now on; what is there is not read."""
    op.execute(_ADD)
