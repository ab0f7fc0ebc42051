"""Marks: rows that handlers' own transactions insert, by which others learn that these were committed."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE hookonce.marks (
    event bigint NOT NULL,
    handler text COLLATE "C" NOT NULL,
    token uuid NOT NULL,
    CONSTRAINT marks_pkey PRIMARY KEY (event, handler, token)
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0)
"""


def upgrade() -> None:
    """Add a small table. Workers of before leave no marks, and ask for transaction ids until they end."""
    op.execute(_TABLE)


def downgrade() -> None:
    """Drop it: what a handler has committed by itself is found out no longer once its worker is gone."""
    op.execute("DROP TABLE hookonce.marks")
