"""Events from one ledger into another, as `hookonce events export` writes them and `hookonce dev --from` pulls them."""

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, ValidationError, model_validator

from hookonce.receiver.config.sources import SOURCE_NAME
from hookonce.receiver.desk.filters import Filter
from hookonce.receiver.desk.models import as_text
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.intake.new_events import plausible_time
from hookonce.receiver.ledger.replay import transfer
from hookonce.receiver.ledger.replay.transfer import Kept, Taken
from hookonce.receiver.ledger.store import NewEvent
from hookonce.receiver.privacy.at_rest import imported

_MAX_ID_BYTES = 255


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # PostgreSQL would keep it, and Python never read it again
        raise ValueError("expected a time from the years 1 to 9999 of UTC") from None


def _decodable(text: str) -> str:
    try:
        b64decode(text, validate=True)
    except ValueError:
        raise ValueError("expected base64") from None
    return text


class ExportedEvent(BaseModel):
    """The fields that an import needs; others (id, status …) are of the other ledger."""

    source: str = Field(pattern=f"^{SOURCE_NAME.pattern}$")
    provider: str = Field(min_length=1, max_length=255)
    event_id: str = Field(min_length=1)
    type: str = Field(max_length=255)
    account: str | None = Field(default=None, max_length=255)
    fingerprint: str = Field(pattern="^[0-9a-f]{64}$")
    id_is_signed: bool
    is_element: bool = False
    is_test: bool = False
    unreadable: str | None = None
    occurred_at: Annotated[AwareDatetime, AfterValidator(_in_utc)] | None = None
    url: str
    headers: dict[str, str]
    body: str | None = None
    body_b64: Annotated[str, AfterValidator(_decodable)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_body(cls, line: object) -> object:
        """Refuse what was exported without a body before its URL and headers, which went with that, are missed."""
        if isinstance(line, dict) and line.get("body") is None and line.get("body_b64") is None:
            raise ValueError("the line has no body: retention had dropped it before the export")
        return line

    @model_validator(mode="after")
    def _fits(self) -> "ExportedEvent":
        texts = (self.provider, self.event_id, self.type, self.account, self.unreadable, self.url)
        if any("\0" in text for text in texts if text):
            raise ValueError("a text holds a NUL")
        if len(self.event_id.encode()) > _MAX_ID_BYTES:
            raise ValueError(f"event_id is longer than {_MAX_ID_BYTES} bytes")
        return self

    @property
    def content(self) -> bytes:
        """The body as it was delivered."""
        return self.body.encode() if self.body is not None else b64decode(self.body_b64 or "")

    def event(self) -> NewEvent:
        """Return the event that it was."""
        known = {name: value for name, value in self if name in NewEvent._fields and name != "body"}
        return NewEvent(
            **known
            | {
                "fingerprint": bytes.fromhex(self.fingerprint),
                "occurred_at": plausible_time(self.occurred_at),
                "headers": json.dumps(self.headers),
                "body": self.content,
            }
        )


def why_refused(error: ValidationError) -> str:
    """Return which field is wrong first, and what was expected; never its value."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{f'{where}: ' if where else ''}{first['msg'].removeprefix('Value error, ')}"


def exported(desk: Desk, wanted: Filter) -> Iterator[dict[str, Any]]:
    """Yield the documents of matching events, oldest first, opened.

    Raises: `CannotDecrypt` with the event that no configured key opens.
    """
    yield from map(_document, transfer.kept(desk.connection, desk.settings.keyring, wanted))


def take_in(desk: Desk, events: Sequence[ExportedEvent], *, run: bool, in_order: bool = False) -> Taken:
    """Take events in that are not known, due at once or (not `run`) held, and return how many were; audited.

    They are redacted and sealed as the sources of this configuration say. See `transfer.take` for `in_order`.
    """
    taken, settings = Taken(), desk.settings
    new = [imported(each.event(), settings.sources, settings.keyring) for each in events]
    transfer.take(desk.connection, new, desk.who, taken, run=run, in_order=in_order)
    desk.notifies_workers |= run and taken.new > 0
    return taken


def _document(event: Kept) -> dict[str, Any]:
    body = event.body
    if body is not None and isinstance(body.content, CannotDecrypt):
        raise type(body.content)(f"event {event.row['id']} can't be exported: {body.content}")
    return {
        **event.row,
        "fingerprint": event.fingerprint.hex(),
        "id_is_signed": event.id_is_signed,
        "is_element": event.is_element,
        "url": body.url if body else None,
        "headers": body.headers if body else None,
        **as_text(body.body if body else None),
    }
