"""An event of another ledger, as `hookonce events export` writes it and `hookonce dev --from` pulls it."""

import json
from base64 import b64decode
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, ValidationError, model_validator

from hookonce.receiver.config.sources import SOURCE_NAME
from hookonce.receiver.intake.new_events import plausible_time
from hookonce.receiver.ledger.store import NewEvent

_MAX_ID_BYTES = 255


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # PostgreSQL would keep it, and Python never read it again
        raise ValueError("expected a time from the years 1 to 9999 of UTC") from None


class ExportedEvent(BaseModel):
    """The fields that an import needs; others (id, status, runs …) are of the other ledger."""

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
    body_b64: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_body(cls, line: object) -> object:
        """Refuse what was exported without a body before its URL and headers, which went with that, are missed."""
        if isinstance(line, dict) and line.get("body") is None and line.get("body_b64") is None:
            raise ValueError("the line has no body: retention had dropped it before the export")
        return line

    @model_validator(mode="after")
    def _fits(self) -> "ExportedEvent":
        if "\0" in self.source + self.provider + self.event_id + self.type + (self.account or "") + self.url:
            raise ValueError("a text holds a NUL")
        if len(self.event_id.encode()) > _MAX_ID_BYTES:
            raise ValueError(f"event_id is longer than {_MAX_ID_BYTES} bytes")
        return self

    def event(self) -> NewEvent:
        """Return the event that it was."""
        body = self.body.encode() if self.body is not None else b64decode(self.body_b64 or "", validate=True)
        return NewEvent(
            source=self.source,
            provider=self.provider,
            event_id=self.event_id,
            type=self.type,
            account=self.account,
            fingerprint=bytes.fromhex(self.fingerprint),
            id_is_signed=self.id_is_signed,
            occurred_at=plausible_time(self.occurred_at),
            url=self.url,
            headers=json.dumps(self.headers),
            body=body,
            is_element=self.is_element,
            is_test=self.is_test,
            unreadable=self.unreadable,
        )


def why_refused(error: ValidationError) -> str:
    """Return which field is wrong first, and what was expected; never its value."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{f'{where}: ' if where else ''}{first['msg'].removeprefix('Value error, ')}"
