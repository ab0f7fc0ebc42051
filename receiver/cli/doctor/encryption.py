"""Findings of `hookonce doctor` about encryption: whether everything that is sealed can be opened here."""

from collections.abc import Iterator

import psycopg

from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.maintenance import key_rotation

_AT_MOST = "SET LOCAL statement_timeout = '3s'"
"""For each table: looking at every row of a large one is for `hookonce keys list`."""


def encryption(connection: psycopg.Connection, settings: Settings) -> Iterator[Finding]:
    """Compare the keys that rows need with those that are here."""
    keyring = settings.keyring
    try:
        with connection.transaction():
            connection.execute(_AT_MOST)
            needed = key_rotation.keys_in_use(connection)
    except psycopg.errors.QueryCanceled:
        yield Finding("warn", "encryption", "too many rows to look at in passing; `hookonce keys list` does")
        return
    missing = sorted(key for key in needed if key and key not in keyring.ids)
    if missing:
        text = f"rows are sealed with key {', '.join(missing)}, which is not configured here; add it to encryption_keys"
        yield Finding("fail", "encryption", text)
    if keyring.is_on and keyring.first is None:
        text = "the first of encryption_keys is not set here; nothing that this environment stores could be sealed"
        yield Finding("warn", "encryption", text)
    elif keyring.is_on and not missing:
        yield _progress(needed - {keyring.first}, str(keyring.first))


def _progress(others: set[str | None], first: str) -> Finding:
    if others:
        what = "in the clear" if None in others else f"under key {', '.join(sorted(filter(None, others)))}"
        text = f"new rows are sealed with key {first}, old ones are {what}; `hookonce keys rotate` seals them"
        return Finding("warn" if None in others else "ok", "encryption", text)
    return Finding("ok", "encryption", f"everything is sealed with key {first}")
