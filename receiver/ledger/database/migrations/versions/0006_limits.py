"""Handlers have limits (times that runs were given, places that they hold) and circuit breakers."""

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
);
CREATE TABLE hookonce.breakers (
    handler text COLLATE "C" NOT NULL,
    failures integer NOT NULL,
    error text NOT NULL,
    opened_at timestamptz,
    try_at timestamptz,
    tries integer NOT NULL DEFAULT 0,
    trying bigint,
    CONSTRAINT breakers_pkey PRIMARY KEY (handler)
)
"""


def upgrade() -> None:
    """Add a column, which rewrites nothing, and small tables."""
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop them: what waits for its time keeps it, what waits for a place is made due."""
    op.execute(
        "UPDATE hookonce.events SET parked = NULL WHERE parked LIKE 'limit:%';"
        "UPDATE hookonce.runs SET parked = NULL, due_at = now() WHERE parked LIKE 'limit:%';"
        "DROP TABLE hookonce.breakers, hookonce.limit_places, hookonce.limits;"
        "ALTER TABLE hookonce.runs DROP COLUMN slot_at"
    )
