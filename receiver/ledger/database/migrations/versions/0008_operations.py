"""Keys of requests have states, owners and leases: one machine, for the API's and for those of others."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_UPGRADE = """
ALTER TABLE hookonce.idempotency RENAME COLUMN token TO scope;
ALTER TABLE hookonce.idempotency
    ADD COLUMN state        text NOT NULL DEFAULT 'completed',
    ADD COLUMN owner        uuid,
    ADD COLUMN attempt      integer NOT NULL DEFAULT 1,
    ADD COLUMN is_uncertain boolean NOT NULL DEFAULT false,
    ADD COLUMN lease_until  timestamptz,
    ADD COLUMN finished_at  timestamptz,
    ADD COLUMN expires_at   timestamptz NOT NULL DEFAULT now() + interval '24 hours';
UPDATE hookonce.idempotency
SET expires_at = started_at + interval '24 hours',
    state = CASE WHEN status IS NULL THEN 'in_progress' ELSE 'completed' END,
    lease_until = CASE WHEN status IS NULL THEN started_at + interval '1 minute' END;
DROP INDEX hookonce.idempotency_started;
CREATE INDEX idempotency_expires ON hookonce.idempotency (expires_at);
"""
_DOWNGRADE = """
DELETE FROM hookonce.idempotency WHERE state NOT IN ('in_progress', 'completed');
DROP INDEX hookonce.idempotency_expires;
CREATE INDEX idempotency_started ON hookonce.idempotency (started_at);
ALTER TABLE hookonce.idempotency
    DROP COLUMN state, DROP COLUMN owner, DROP COLUMN attempt, DROP COLUMN is_uncertain, DROP COLUMN lease_until,
    DROP COLUMN finished_at, DROP COLUMN expires_at;
ALTER TABLE hookonce.idempotency RENAME COLUMN scope TO token;
"""


def upgrade() -> None:
    """Rename one column and add seven; a day's keys are rewritten. A request that is under way keeps its claim."""
    op.execute(_UPGRADE)


def downgrade() -> None:
    """Drop them again, and forget what the version before has no words for."""
    op.execute(_DOWNGRADE)
