"""Opens what the ledger keeps sealed, for whoever looks it up: bodies, other bodies, refused beginnings.

A key that is not here costs the body and nothing else of what is shown.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hookonce.providers import Delivery
from hookonce.providers.kit.reading.content_coding import HEADER, text_and_headers
from hookonce.receiver.encryption import (
    AssociatedData,
    CannotDecrypt,
    Keyring,
    body_context,
    rejected_context,
    traceback_context,
)
from hookonce.receiver.ledger import traceback_frames


@dataclass(frozen=True, slots=True)
class Body:
    """The body that was delivered, as long as it is kept; `content` is the bytes, or why they can't be had.

    `is_element`: it is one of several events that came in one body.
    `content` is the text of a body that came compressed, and `headers` are without the coding; `sent` and `coding` are
    what came, None and empty of a body that is as it came.
    """

    url: str
    headers: dict[str, str]
    content: bytes | CannotDecrypt = field(repr=False)
    is_element: bool = False
    sent: bytes | None = field(default=None, repr=False)
    coding: str = ""

    @property
    def body(self) -> bytes:
        """The bytes. Raises `CannotDecrypt`; ask `unreadable` first where something else can be shown."""
        if isinstance(self.content, CannotDecrypt):
            raise self.content
        return self.content

    @property
    def unreadable(self) -> str | None:
        """Why the bytes can't be had; None if they can."""
        return str(self.content) if isinstance(self.content, CannotDecrypt) else None


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
    is_element: bool = False


def decrypt_body(keyring: Keyring, row: StoredBody | None) -> Body | None:
    """Open a row; None where retention has dropped it. Raises nothing."""
    if row is None:
        return None
    bond = body_context(row.source, row.event_id, row.fingerprint)
    content = _opened(keyring, row.body, row.key_id, bond)
    coding = row.headers.get(HEADER)
    if coding is None or isinstance(content, CannotDecrypt):
        return Body(row.url, row.headers, content, row.is_element)
    text, headers = text_and_headers(content, row.headers)
    return Body(row.url, headers, text, row.is_element, content, coding)


def decrypt_conflict(keyring: Keyring, source: str, event_id: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `conflicts` (body, key_id, fingerprint among its columns) with its `body` opened.

    Where it can't be, `body` is empty and `unreadable` says why.
    """
    bond = body_context(source, event_id, row.pop("fingerprint"))
    shown = _shown(keyring, row, "body", bond)
    text, headers = text_and_headers(shown["body"], shown["headers"])
    return shown | {"body": text, "headers": headers}


def decrypt_failure(keyring: Keyring, event: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `failures` with its `traceback` as text, and as data (`frames`).

    Both are None where none was kept, or it can't be opened; then `unreadable` says why.
    """
    kept, key = row["traceback"], row.pop("key_id")
    bond = traceback_context(event, row["handler"], row["cycle"], row["attempt"])
    content = None if kept is None else _opened(keyring, kept, key, bond)
    if isinstance(content, CannotDecrypt):
        return row | {"traceback": None, "frames": None, "unreadable": str(content)}
    frames = traceback_frames.parse(content) if content else None
    return row | {"traceback": frames and frames.text, "frames": frames, "unreadable": None}


def decrypt_rejected(keyring: Keyring, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `rejected` with its `body_prefix` opened; see `decrypt_conflict`."""
    at: datetime = row["rejected_at"]
    return _shown(keyring, row, "body_prefix", rejected_context(row["source"], row["reason"], at))


def _shown(keyring: Keyring, row: dict[str, Any], column: str, bond: AssociatedData) -> dict[str, Any]:
    content = _opened(keyring, row[column], row.pop("key_id"), bond)
    if isinstance(content, CannotDecrypt):
        return row | {column: b"", "unreadable": str(content)}
    return row | {column: content, "unreadable": None}


def _opened(keyring: Keyring, text: bytes, key: str | None, bond: AssociatedData) -> bytes | CannotDecrypt:
    try:
        return keyring.open(text, key, bond)
    except CannotDecrypt as error:
        return error


def pack(delivery: Delivery) -> bytes:
    """Write a delivery as the bytes that a quarantine seals: a line of JSON, then the body."""
    head = [delivery.method, delivery.url, dict(delivery.headers), delivery.path_secret]
    return json.dumps(head).encode("ascii") + b"\n" + delivery.body


def unpack(packed: bytes) -> Delivery:
    """Read what `pack` wrote."""
    head, _, body = packed.partition(b"\n")
    method, url, headers, path_secret = json.loads(head)
    return Delivery(method, url, headers, body, path_secret)
