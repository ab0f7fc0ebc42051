"""Failures say which issue they are of, and on which release; a dead run is of its last failure's issue."""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE hookonce.issues (
    id text COLLATE "C" CONSTRAINT issues_pkey PRIMARY KEY,
    handler text COLLATE "C" NOT NULL,
    title text NOT NULL,
    first_seen timestamptz DEFAULT now() NOT NULL,
    first_release text NOT NULL,
    fixed_after timestamptz,
    ignored_until timestamptz,
    reopened_at timestamptz
);
CREATE TABLE hookonce.releases (
    name text COLLATE "C" CONSTRAINT releases_pkey PRIMARY KEY,
    first_seen timestamptz DEFAULT now() NOT NULL
)
"""


def upgrade() -> None:
    """Add tables, and columns, which rewrites nothing; of failures of before no issue is known.

    The indexes hold no row yet. To make them PostgreSQL reads the tables once, and ends of runs wait: 2.4 s for
    five million runs in memory, 35 s from a cold disk. Deliveries do not wait, and leases are renewed meanwhile.
    """
    op.execute(_TABLES)
    op.execute(
        'ALTER TABLE hookonce.failures ADD COLUMN issue text COLLATE "C", ADD COLUMN release text COLLATE "C"'
    )
    op.execute('ALTER TABLE hookonce.runs ADD COLUMN issue text COLLATE "C"')
    op.execute("CREATE INDEX failures_issue ON hookonce.failures (issue, id) WHERE issue IS NOT NULL")
    op.execute("CREATE INDEX runs_issue ON hookonce.runs (issue, event) WHERE issue IS NOT NULL AND is_last")


def downgrade() -> None:
    """Drop them with what they hold."""
    op.execute("ALTER TABLE hookonce.runs DROP COLUMN issue")
    op.execute("ALTER TABLE hookonce.failures DROP COLUMN issue, DROP COLUMN release")
    op.execute("DROP TABLE hookonce.releases, hookonce.issues")
