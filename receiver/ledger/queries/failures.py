"""The last failed attempt of an issue."""

from typing import Any

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.decryption import decrypt_failure

_LATEST_OF_ISSUE = """
SELECT event, handler, cycle, attempt, started_at, failed_at, error, traceback, key_id FROM hookonce.failures
WHERE issue = %s ORDER BY id DESC LIMIT 1
"""


def latest_of_issue(connection: psycopg.Connection, issue: str, keyring: Keyring) -> dict[str, Any] | None:
    """Return the newest failed attempt of an issue, as `events.detail` does; None if none is kept."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(_LATEST_OF_ISSUE, [issue]).fetchone()
    return None if row is None else decrypt_failure(keyring, row.pop("event"), row)
