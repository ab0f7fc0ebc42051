"""Runs say whether others ran beside them in the same process, and workers what their slots are at."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_UPGRADE = """
ALTER TABLE hookonce.runs ADD COLUMN beside boolean NOT NULL DEFAULT false;
CREATE TABLE hookonce.worker_slots (
    worker   uuid NOT NULL,
    name     text NOT NULL,
    slots    integer NOT NULL,
    busy     integer NOT NULL,
    lost     integer NOT NULL,
    attempts json NOT NULL,
    seen_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT worker_slots_pkey PRIMARY KEY (worker)
)
"""


def upgrade() -> None:
    """Add a column with a constant default, which rewrites nothing, and a small table."""
    op.execute(_UPGRADE)


def downgrade() -> None:
    """Drop them; suspects run like any other then."""
    op.execute(
        "UPDATE hookonce.events SET parked = NULL WHERE parked = 'suspect';"
        "UPDATE hookonce.runs SET parked = NULL WHERE parked = 'suspect';"
        "DROP TABLE hookonce.worker_slots;"
        "ALTER TABLE hookonce.runs DROP COLUMN beside"
    )
