"""Secrets that senders hand out, and which secret of a source verified what."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE hookonce.handed_secrets (
    source    text COLLATE "C" NOT NULL,
    secret    text NOT NULL,
    handed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT handed_secrets_pkey PRIMARY KEY (source)
);

CREATE TABLE hookonce.secret_use (
    source  text NOT NULL,
    slot    integer NOT NULL,
    count   bigint NOT NULL,
    last_at timestamptz NOT NULL,
    CONSTRAINT secret_use_pkey PRIMARY KEY (source, slot)
) WITH (fillfactor = 50);
"""


def upgrade() -> None:
    """Add two tables; nothing that is there changes."""
    op.execute(_TABLES)


def downgrade() -> None:
    """Drop them, the secrets that were handed out included."""
    op.execute("DROP TABLE hookonce.secret_use, hookonce.handed_secrets")
