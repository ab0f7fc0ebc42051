"""Handlers of batches: what is handled together, what is to be tried by itself, and how large batches were."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE hookonce.batches (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT batches_pkey PRIMARY KEY,
    handler text COLLATE "C" NOT NULL,
    events bigint[] NOT NULL,
    token uuid,
    lease_until timestamptz,
    error text,
    made_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0);
CREATE TABLE hookonce.batch_counts (
    handler text COLLATE "C" NOT NULL,
    batches bigint NOT NULL,
    events bigint NOT NULL,
    halvings bigint NOT NULL,
    CONSTRAINT batch_counts_pkey PRIMARY KEY (handler)
) WITH (fillfactor = 50);
ALTER TABLE hookonce.handlers ADD COLUMN batch integer
"""


def upgrade() -> None:
    """Add two small tables and a column, which rewrites nothing."""
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop them: what is under way is taken up again when its lease ends."""
    op.execute(
        "DROP TABLE hookonce.batches, hookonce.batch_counts; ALTER TABLE hookonce.handlers DROP COLUMN batch"
    )
