"""Opens what the ledger keeps sealed, for whoever looks it up: bodies, other bodies, refused beginnings.

A key that is not here costs the body and nothing else of what is shown.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from receiver.sealing import Bond, Keyring, NotOpened, of_body, of_rejected


@dataclass(frozen=True, slots=True)
class Body:
    """What was delivered, as long as it is kept; `content` is the bytes, or why they can't be had."""

    url: str
    headers: dict[str, str]
    content: bytes | NotOpened = field(repr=False)

    @property
    def body(self) -> bytes:
        """The bytes. Raises `NotOpened`; ask `unreadable` first where something else can be shown."""
        if isinstance(self.content, NotOpened):
            raise self.content
        return self.content

    @property
    def unreadable(self) -> str | None:
        """Why the bytes can't be had; None if they can."""
        return str(self.content) if isinstance(self.content, NotOpened) else None


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A row of `bodies`, joined with what it is bound to in `events`."""

    url: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    key_id: str | None
    source: str
    event_id: str
    fingerprint: bytes


def open_body(keyring: Keyring, row: StoredBody | None) -> Body | None:
    """Open a row; None where retention has dropped it. Raises nothing."""
    if row is None:
        return None
    bond = of_body(row.source, row.event_id, row.fingerprint)
    return Body(row.url, row.headers, _opened(keyring, row.body, row.key_id, bond))


def open_conflict(keyring: Keyring, source: str, event_id: str, row: dict[str, Any]) -> dict[str, Any]:
    """Give a row of `conflicts` (body, key_id, fingerprint among its columns) with its `body` opened.

    Where it can't be, `body` is empty and `unreadable` says why.
    """
    bond = of_body(source, event_id, row.pop("fingerprint"))
    return _shown(keyring, row, "body", bond)


def open_rejected(keyring: Keyring, row: dict[str, Any]) -> dict[str, Any]:
    """Give a row of `rejected` with its `body_prefix` opened; see `open_conflict`."""
    at: datetime = row["rejected_at"]
    return _shown(keyring, row, "body_prefix", of_rejected(row["source"], row["reason"], at))


def _shown(keyring: Keyring, row: dict[str, Any], column: str, bond: Bond) -> dict[str, Any]:
    content = _opened(keyring, row[column], row.pop("key_id"), bond)
    if isinstance(content, NotOpened):
        return row | {column: b"", "unreadable": str(content)}
    return row | {column: content, "unreadable": None}


def _opened(keyring: Keyring, text: bytes, key: str | None, bond: Bond) -> bytes | NotOpened:
    try:
        return keyring.open(text, key, bond)
    except NotOpened as error:
        return error
