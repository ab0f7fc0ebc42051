"""The last failed attempt of a run, or of an issue."""

from typing import Any

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.decryption import decrypt_failure

_LATEST = """
SELECT handler, cycle, attempt, started_at, failed_at, error, traceback, key_id,
       (SELECT due_at FROM hookonce.queue q
        WHERE q.event = failures.event AND q.handler = failures.handler AND q.token IS NULL) AS next_at
FROM hookonce.failures WHERE event = %s AND handler = %s AND attempt = %s AND failed_at > now() - interval '1 minute'
ORDER BY id DESC LIMIT 1
"""

_LATEST_OF_ISSUE = """
SELECT event, handler, cycle, attempt, started_at, failed_at, error, traceback, key_id FROM hookonce.failures
WHERE issue = %s ORDER BY id DESC LIMIT 1
"""


def just_failed(
    connection: psycopg.Connection, event: int, handler: str, attempt: int, keyring: Keyring
) -> dict[str, Any] | None:
    """Return an attempt that failed within the last minute, as `events.detail` does; None if none did."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(_LATEST, [event, handler, attempt]).fetchone()
    return None if row is None else decrypt_failure(keyring, event, row)


def latest_of_issue(connection: psycopg.Connection, issue: str, keyring: Keyring) -> dict[str, Any] | None:
    """Return the newest failed attempt of an issue, as `events.detail` does; None if none is kept."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(_LATEST_OF_ISSUE, [issue]).fetchone()
    return None if row is None else decrypt_failure(keyring, row.pop("event"), row)
