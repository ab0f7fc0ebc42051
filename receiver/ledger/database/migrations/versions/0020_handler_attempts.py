"""Numbers of attempts: what each worker that is alive gives to its handlers, so that the largest of them holds."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE hookonce.handler_attempts (
    handler text COLLATE "C" NOT NULL,
    attempts integer NOT NULL,
    announced_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT handler_attempts_pkey PRIMARY KEY (handler, attempts)
)
"""


def upgrade() -> None:
    """Add a small table. Workers of before announce nothing there, and go by their own numbers until they end."""
    op.execute(_TABLE)


def downgrade() -> None:
    """Drop it: each worker goes by its own numbers."""
    op.execute("DROP TABLE hookonce.handler_attempts")
