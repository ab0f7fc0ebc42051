"""Opens what the ledger keeps sealed: the body of an event, a delivery in quarantine, and single columns.

A key that is not here costs the body and nothing else of what is shown.
"""

import json
from dataclasses import dataclass, field

from hookonce.providers import Delivery
from hookonce.providers.kit.reading.content_coding import HEADER, text_and_headers
from hookonce.receiver.encryption import AssociatedData, CannotDecrypt, Keyring, body_context
from hookonce.receiver.ledger.withheld import WITHHELD


@dataclass(frozen=True, slots=True)
class Body:
    """The body that was delivered, as long as it is kept; `content` is the bytes, or why they can't be had.

    `is_element`: it is one of several events that came in one body.
    `content` is the text of a body that came compressed, and `headers` are without the coding; `sent` and `coding` are
    what came, None and empty of a body that is as it came.
    """

    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
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

    def withheld(self) -> "Body":
        """Return what anybody may see of the body."""
        return Body("", {}, CannotDecrypt(WITHHELD), self.is_element)


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A row of `bodies`, joined with what it is bound to in `events`."""

    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
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
    try:
        content = keyring.open(row.body, row.key_id, bond)
    except CannotDecrypt as error:
        return Body(row.url, row.headers, error, row.is_element)
    coding = row.headers.get(HEADER)
    if coding is None:
        return Body(row.url, row.headers, content, row.is_element)
    text, headers = text_and_headers(content, row.headers)
    return Body(row.url, headers, text, row.is_element, content, coding)


def opened(keyring: Keyring, text: bytes, key: str | None, bond: AssociatedData) -> tuple[bytes, str | None]:
    """Return what a column holds; or nothing, and why it can't be opened."""
    try:
        return keyring.open(text, key, bond), None
    except CannotDecrypt as error:
        return b"", str(error)


def pack(delivery: Delivery) -> bytes:
    """Write a delivery as the bytes that a quarantine seals: a line of JSON, then the body."""
    head = [delivery.method, delivery.url, dict(delivery.headers), delivery.path_secret]
    return json.dumps(head).encode("ascii") + b"\n" + delivery.body


def unpack(packed: bytes) -> Delivery:
    """Read what `pack` wrote."""
    head, _, body = packed.partition(b"\n")
    method, url, headers, path_secret = json.loads(head)
    return Delivery(method, url, headers, body, path_secret)
