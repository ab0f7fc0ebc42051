"""Secrets that senders hand out with a probe, one per source; the only secrets hookonce keeps itself.

The first one stays: whoever can reach a source's URL can send such a probe, so only an operator makes room
for another. They are sealed where bodies are.
"""

from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from hookonce.receiver.encryption import OFF, CannotDecrypt, Keyring, secret_context
from hookonce.receiver.ledger.access import audit_log

_KEEP = """
INSERT INTO hookonce.handed_secrets (source, secret, sealed, key_id) VALUES (%s, %s, %s, %s)
ON CONFLICT DO NOTHING RETURNING source
"""
_KEPT = "SELECT secret, sealed, key_id FROM hookonce.handed_secrets WHERE source = %s"
_ALL = "SELECT source, handed_at, secret, sealed, key_id FROM hookonce.handed_secrets ORDER BY source"
_FORGET = "DELETE FROM hookonce.handed_secrets WHERE source = %s RETURNING source"


@dataclass(frozen=True, slots=True)
class Handed:
    """A secret as it is kept; None where it is sealed with a key that is not here."""

    source: str
    secret: str | None = field(repr=False)
    at: datetime


def keep(connection: psycopg.Connection, source: str, secret: str, keyring: Keyring) -> bool:
    """Keep a secret unless the source has one; return whether it is kept by this call. Committed when it returns.

    Raises `KeyMissing`.
    """
    text, key = keyring.encrypt(secret.encode(), secret_context(source))
    columns = [source, secret, None, None] if key is None else [source, None, text, key]
    return connection.execute(_KEEP, columns).fetchone() is not None


def kept(connection: psycopg.Connection, source: str, keyring: Keyring) -> str | None:
    """Return the secret that is kept for a source. Raises `CannotDecrypt`."""
    row = connection.execute(_KEPT, [source]).fetchone()
    return _opened(keyring, source, *row) if row else None


def all_kept(connection: psycopg.Connection, keyring: Keyring = OFF) -> list[Handed]:
    """Return what is kept, by source; without its keys, that it is."""
    found = []
    for source, at, *columns in connection.execute(_ALL):
        try:
            secret = _opened(keyring, source, *columns)
        except CannotDecrypt:
            secret = None
        found.append(Handed(source, secret, at))
    return found


def forget(connection: psycopg.Connection, source: str, who: str) -> bool:
    """Make room for another secret; return whether one was kept. Audited."""
    with connection.transaction():
        was_kept = connection.execute(_FORGET, [source]).fetchone() is not None
        if was_kept:
            audit_log.note(connection, who, "forget secret", f"source {source}")
    return was_kept


def _opened(
    keyring: Keyring, source: str, secret: str | None, sealed: bytes | None, key: str | None
) -> str | None:
    return secret if sealed is None else keyring.open(sealed, key, secret_context(source)).decode()
