"""What handlers print and log, kept with the attempt."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE hookonce.run_logs (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT run_logs_pkey PRIMARY KEY,
    event bigint NOT NULL,
    handler text COLLATE "C" NOT NULL,
    cycle integer NOT NULL,
    attempt integer NOT NULL,
    received_at timestamptz NOT NULL,
    lines bytea NOT NULL,
    key_id text
)
"""


def upgrade() -> None:
    """Add a table; workers of before keep nothing in it."""
    op.execute(_TABLE)
    op.execute("CREATE INDEX ix_run_logs_event ON hookonce.run_logs (event)")
    op.execute("CREATE INDEX run_logs_received_at ON hookonce.run_logs USING brin (received_at)")


def downgrade() -> None:
    """Drop it with what it holds."""
    op.execute("DROP TABLE hookonce.run_logs")
