"""Steps of handlers: what was done once for an event, and what came of it."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE hookonce.steps (
    event bigint NOT NULL,
    handler text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    state text NOT NULL,
    owner uuid NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    is_uncertain boolean NOT NULL DEFAULT false,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    note text,
    result bytea,
    key_id text,
    CONSTRAINT steps_pkey PRIMARY KEY (event, handler, name),
    CONSTRAINT steps_run_fkey FOREIGN KEY (event, handler) REFERENCES hookonce.runs (event, handler) ON DELETE CASCADE
);
CREATE INDEX steps_stopped ON hookonce.steps (event) WHERE state = 'failed_final';
"""


def upgrade() -> None:
    """Add a table."""
    op.execute(_TABLE)


def downgrade() -> None:
    """Drop it: what the steps have done is forgotten, and a replay does it again."""
    op.execute("DROP TABLE hookonce.steps")
