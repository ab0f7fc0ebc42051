"""A ledger knows which it is, and what is parked: what waits for somebody, and no claim needs to look at meanwhile."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE hookonce.ledger (id uuid PRIMARY KEY DEFAULT gen_random_uuid());
INSERT INTO hookonce.ledger DEFAULT VALUES;

ALTER TABLE hookonce.events ADD COLUMN parked text;
ALTER TABLE hookonce.runs ADD COLUMN parked text;

DROP INDEX hookonce.events_due;
CREATE INDEX events_due ON hookonce.events (due_at) WHERE due_at IS NOT NULL AND parked IS NULL;
CREATE INDEX events_parked ON hookonce.events (parked, source, id) WHERE parked IS NOT NULL;
CREATE INDEX events_parked_received ON hookonce.events (received_at) WHERE parked IS NOT NULL AND due_at IS NOT NULL;
CREATE INDEX runs_parked ON hookonce.runs (parked, handler, event) WHERE parked IS NOT NULL;

-- A fingerprint lands anywhere, so after a checkpoint nearly every insert logs a whole page of this index: what is on
-- it, without its free space. Four bytes of hash instead of source and fingerprint, and pages that stay three quarters
-- empty, make that 2 KB instead of 6, for twice the disk. Repeats are left out: equal entries make a chain that grows.
DROP INDEX hookonce.events_repeat;
CREATE INDEX events_repeat ON hookonce.events USING hash (fingerprint) WITH (fillfactor = 25)
    WHERE NOT id_is_signed AND repeat_of IS NULL;
CREATE INDEX events_repeat_of ON hookonce.events (repeat_of, id) WHERE repeat_of IS NOT NULL;
"""


def upgrade() -> None:
    """Give the ledger its id, add two columns, which rewrites nothing, and build six indexes.

    Deliveries wait while those are built. The tables of an older ledger are moved by `migrate`, before any revision
    runs.
    """
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop all that; what is parked is due again, and is passed over by every claim. The tables stay in the schema."""
    op.execute(
        "DROP INDEX hookonce.runs_parked, hookonce.events_parked_received, hookonce.events_parked, hookonce.events_due"
    )
    op.execute("ALTER TABLE hookonce.runs DROP COLUMN parked; ALTER TABLE hookonce.events DROP COLUMN parked")
    op.execute("CREATE INDEX events_due ON hookonce.events (due_at) WHERE due_at IS NOT NULL")
    op.execute("DROP INDEX hookonce.events_repeat, hookonce.events_repeat_of")
    op.execute("CREATE INDEX events_repeat ON hookonce.events (source, fingerprint) WHERE NOT id_is_signed")
    op.execute("DROP TABLE hookonce.ledger")
