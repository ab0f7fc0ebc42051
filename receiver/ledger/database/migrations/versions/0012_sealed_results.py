"""Results of runs and secrets that senders handed out can be sealed, and errors tell no more than where they came from.

Where a traceback is sealed, it holds what the error said: the clear text beside it keeps its class and its place.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# The class of an error and where it came from, "ValueError (shop/pay.py:12)"; of a sentence of ours, its beginning.
_BARE_ERROR = r"""
CASE WHEN t.error ~ '^[A-Za-z_][A-Za-z0-9_.]*(:| [(]|$)'
     THEN substring(t.error FROM '^[A-Za-z_][A-Za-z0-9_.]*')
          || coalesce(substring(t.error FROM ' [(][^()]+:[0-9]+[)]$'), '')
     ELSE split_part(t.error, '; then it failed with', 1) END
"""
_UPGRADE = f"""
ALTER TABLE hookonce.runs ADD COLUMN sealed_result bytea, ADD COLUMN key_id text;
ALTER TABLE hookonce.handed_secrets
    ALTER COLUMN secret DROP NOT NULL, ADD COLUMN sealed bytea, ADD COLUMN key_id text;
UPDATE hookonce.failures AS t SET error = {_BARE_ERROR} WHERE key_id IS NOT NULL AND traceback IS NOT NULL;
"""  # noqa: S608  a constant
_DOWNGRADE = """
DELETE FROM hookonce.handed_secrets WHERE secret IS NULL;
ALTER TABLE hookonce.handed_secrets
    DROP COLUMN sealed, DROP COLUMN key_id, ALTER COLUMN secret SET NOT NULL;
ALTER TABLE hookonce.runs DROP COLUMN sealed_result, DROP COLUMN key_id;
"""


def upgrade() -> None:
    """Add columns, which rewrites nothing; the errors beside sealed tracebacks are shortened."""
    op.execute(_UPGRADE)


def downgrade() -> None:
    """Drop them: sealed results and secrets are lost."""
    op.execute(_DOWNGRADE)
