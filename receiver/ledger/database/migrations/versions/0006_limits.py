"""Handlers have limits: times that runs were given, and places that they hold."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TABLES = """
ALTER TABLE hookonce.runs ADD COLUMN slot_at timestamptz;
CREATE TABLE hookonce.limits (
    handler text COLLATE "C" NOT NULL,
    key text NOT NULL,
    head timestamptz NOT NULL,
    has_queue boolean NOT NULL DEFAULT false,
    CONSTRAINT limits_pkey PRIMARY KEY (handler, key)
);
CREATE TABLE hookonce.limit_places (
    handler text COLLATE "C" NOT NULL,
    event bigint NOT NULL,
    key text NOT NULL,
    token uuid NOT NULL,
    CONSTRAINT limit_places_pkey PRIMARY KEY (handler, event)
)
"""


def upgrade() -> None:
    """Add a column, which rewrites nothing, and two small tables."""
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop them: what waits for its time keeps it, what waits for a place is made due."""
    op.execute(
        "UPDATE hookonce.events SET parked = NULL WHERE parked LIKE 'limit:%';"
        "UPDATE hookonce.runs SET parked = NULL, due_at = now() WHERE parked LIKE 'limit:%';"
        "DROP TABLE hookonce.limit_places, hookonce.limits;"
        "ALTER TABLE hookonce.runs DROP COLUMN slot_at"
    )
