"""Of senders whose signature covers something else than the body's bytes: what of each event was signed."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE hookonce.repeat_marks (
    source text COLLATE "C" NOT NULL,
    mark bytea NOT NULL,
    event bigint NOT NULL REFERENCES hookonce.events (id) ON DELETE CASCADE,
    CONSTRAINT repeat_marks_pkey PRIMARY KEY (source, mark)
);
CREATE INDEX repeat_marks_event ON hookonce.repeat_marks (event);
"""


def upgrade() -> None:
    """Add a table: a column and its index would have to go through all events first, with every receiver waiting."""
    op.execute(_TABLE)


def downgrade() -> None:
    """Drop it: repeats are known by the bytes of their bodies again."""
    op.execute("DROP TABLE hookonce.repeat_marks")
