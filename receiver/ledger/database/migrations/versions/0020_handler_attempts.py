"""Numbers of attempts: what each worker that is alive gives to its handlers, so that the largest holds.

And a column: when a limit has given a time last, by which it is known that the database's clock was set back since.
"""

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
    """Add a small table, and a column, which rewrites nothing. Workers of before go by their own numbers."""
    op.execute(_TABLE)
    op.execute("ALTER TABLE hookonce.limits ADD COLUMN given_at timestamptz")


def downgrade() -> None:
    """Drop them: each worker goes by its own numbers."""
    op.execute("ALTER TABLE hookonce.limits DROP COLUMN given_at")
    op.execute("DROP TABLE hookonce.handler_attempts")
