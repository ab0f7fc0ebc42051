"""Opens what the ledger keeps sealed, for whoever looks it up: bodies, other bodies, refused beginnings.

A key that is not here costs the body and nothing else of what is shown.
"""

import builtins
import json
from base64 import b64decode
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, WithJsonSchema

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
from hookonce.receiver.ledger.rows import Identifier, IssueId, Ours, as_text
from hookonce.receiver.ledger.traceback_frames import Traceback
from hookonce.receiver.ledger.withheld import EMPTY, NULL, WITHHELD, Content, ContentRow, brief


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


class Failure(ContentRow):
    """A failed attempt; of the newest 50 of an event with its traceback."""

    handler: Ours
    cycle: int
    attempt: int
    failed_at: datetime
    error: Annotated[str, Content(brief)]
    issue: IssueId | None = Field(description="which issue it is of; null where the event could not be read")
    started_at: datetime | None = Field(description="when it began; null where that is not known")
    traceback: str | None = Field(
        description="the exception with its causes, the newest last; null where there was none, as when a worker died"
    )
    frames: Annotated[Traceback | None, Content(Traceback.brief)] = Field(
        description="the traceback as data; null if there is no traceback"
    )
    unreadable: Ours | None = Field(description="why the traceback can't be decrypted here; it is then null")

    @property
    def said(self) -> str:
        """The error with its text, which is in the traceback alone where errors are sealed."""
        return self.frames.whole(self.error) if self.frames and ": " not in self.error else self.error

    def _public(self) -> dict[str, object]:
        public = super()._public()
        frames = public.get("frames")
        return public | {"traceback": frames.text} if isinstance(frames, Traceback) else public


class OtherBody(ContentRow):
    """Another body that came under the event's id; it was kept and not run."""

    id: Identifier
    first_at: datetime
    last_at: datetime
    deliveries: int
    headers: Annotated[dict[str, str], EMPTY]
    bytes: Annotated[int, EMPTY]
    unreadable: Ours | None = Field(description="why the body can't be decrypted here; `bytes` is then 0")
    body: Annotated[str | None, NULL] = Field(default=None, description="with `bodies`, where it is text")
    body_b64: Annotated[str | None, NULL] = Field(
        default=None, description="with `bodies`, where it is not text"
    )

    @property
    def octets(self) -> builtins.bytes:
        """The body as it is kept."""
        return self.body.encode() if self.body is not None else b64decode(self.body_b64 or "")


class Rejection(ContentRow):
    """A rejected delivery, as far as it is kept; credentials are masked."""

    id: Identifier
    rejected_at: datetime
    source: Ours = Field(description="empty where no source has the name")
    reason: Ours
    do: Ours | None = Field(description="advice for that reason")
    detail: str
    headers: Annotated[dict[str, str], EMPTY]
    body_prefix: Annotated[
        bytes,
        EMPTY,
        PlainSerializer(lambda body: body.decode(errors="replace"), return_type=str),
        WithJsonSchema({"type": "string"}),
    ] = Field(description="the first bytes as text; what is no UTF-8 is replaced")
    unreadable: Ours | None = Field(
        description="why they can't be decrypted here; `body_prefix` is then empty"
    )


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


def decrypt_conflict(keyring: Keyring, source: str, event_id: str, row: dict[str, Any]) -> OtherBody:
    """Open a row of `conflicts`; where that can't be done it has no body, and `unreadable` says why."""
    bond = body_context(source, event_id, row.pop("fingerprint"))
    body, unreadable = _opened(keyring, row.pop("body"), row.pop("key_id"), bond)
    text, row["headers"] = text_and_headers(body, row["headers"])
    shown = as_text(None if unreadable else text)
    return OtherBody(**row, bytes=len(text), unreadable=unreadable, **shown)


def decrypt_failure(keyring: Keyring, event: int, row: dict[str, Any]) -> Failure:
    """Open a row of `failures`: its `traceback` as text, and as data (`frames`).

    Both are None where none was kept, or it can't be opened; then `unreadable` says why.
    """
    bond = traceback_context(event, row["handler"], row["cycle"], row["attempt"])
    kept, key = row.pop("traceback"), row.pop("key_id")
    found, unreadable = (b"", None) if kept is None else _opened(keyring, kept, key, bond)
    frames = traceback_frames.parse(found)
    return Failure(**row, traceback=frames.text if frames else None, frames=frames, unreadable=unreadable)


def decrypt_rejected(keyring: Keyring, row: dict[str, Any]) -> Rejection:
    """Open a row of `rejected`; see `decrypt_conflict`."""
    bond = rejected_context(row["source"], row["reason"], row["rejected_at"])
    body, unreadable = _opened(keyring, row.pop("body_prefix"), row.pop("key_id"), bond)
    return Rejection(**row, do=None, body_prefix=body, unreadable=unreadable)


def _opened(keyring: Keyring, text: bytes, key: str | None, bond: AssociatedData) -> tuple[bytes, str | None]:
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
