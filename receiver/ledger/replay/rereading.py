"""Unreadable events: what is stored of them, to be read anew, and their end once that has succeeded.

The next cycle of such an event is done, and its result points to the events that it held. No row of `events` changes:
the readable event has a row of its own, under its own id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import psycopg
from psycopg.types.json import Json

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.decryption import Body, StoredBody, decrypt_body
from hookonce.receiver.ledger.states import RunStatus, one_of
from hookonce.receiver.ledger.stats import activity
from hookonce.receiver.ledger.store import Key

_STORED: Final = """
SELECT e.received_at, e.provider, e.type, e.account,
       b.url, b.headers, b.body, b.key_id, e.source, e.event_id, e.fingerprint, b.is_element
FROM hookonce.events e JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at WHERE e.id = %s
"""

_FIND: Final = """
SELECT e.id FROM unnest(%s::text[], %s::text[]) AS k (source, event_id) JOIN hookonce.events e USING (source, event_id)
ORDER BY e.id
"""

_END: Final = f"""
WITH buried AS (
    UPDATE hookonce.runs SET is_last = false
    WHERE event = %(event)s AND handler = '' AND {one_of("status", (RunStatus.DEAD, RunStatus.DISCARDED))} AND is_last
    RETURNING event, cycle
)
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at, result)
SELECT event, '', cycle + 1, '{RunStatus.DONE}', 0, now(), %(result)s FROM buried
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True)
class UnreadDelivery:
    """An event as the ledger keeps it to be read anew, with its body, opened."""

    source: str
    received_at: datetime
    provider: str
    type: str
    account: str | None
    body: Body


def find(connection: psycopg.Connection, event: int, keyring: Keyring) -> UnreadDelivery | None:
    """Return what is stored of an event; None where its body is gone, or can't be decrypted here."""
    found = stored(connection, event, keyring)
    return None if found is None or found.body.unreadable else found


def stored(connection: psycopg.Connection, event: int, keyring: Keyring) -> UnreadDelivery | None:
    """Return what is stored of an event; None where its body is gone. Its body may be one that can't be decrypted."""
    row = connection.execute(_STORED, [event]).fetchone()
    if row is None:
        return None
    received_at, provider, kind, account, *columns = row
    kept = StoredBody(*columns)
    body = decrypt_body(keyring, kept)
    return None if body is None else UnreadDelivery(kept.source, received_at, provider, kind, account, body)


def end_as_read(connection: psycopg.Connection, event: int, keys: Sequence[Key]) -> None:
    """End an unreadable event, which is locked, as the events of these keys, in the caller's transaction."""
    found = connection.execute(_FIND, [[source for source, _ in keys], [name for _, name in keys]])
    result = Json({"read_as": [number for (number,) in found]})
    activity.keep_ends(connection, [event])
    connection.execute(_END, {"event": event, "result": result})
