"""A sample as it is to be sent: with an id and times of its own, edited perhaps, and encoded.

sample = fresh(provider, "user.created", now)
sample.set("data.username=ann")
delivery = sample.delivery(secret, now, url)
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import FORM, SignOptions
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.samples import edits, files
from hookonce.receiver.samples.envelopes import envelope, signatures_of, words_of
from hookonce.receiver.samples.files import Sample
from hookonce.receiver.samples.fresh_ids import Id, replaced, reshaped
from hookonce.receiver.samples.moved_times import moved, moved_text, seconds_since_written

NEW_ID = "evt_3mR8sVq0kYw15bTz7LhN2cXe"
"""The form of an id where neither the sample nor its sender has one."""


@dataclass(slots=True)
class Document:
    """One body to be sent, and what its headers need to know; `form` as of a `Sample`, `at` when it happened."""

    provider: Provider
    type: str
    event_id: str
    form: str
    body: Any
    at: datetime
    headers: Mapping[str, str] = field(default_factory=dict)

    def set(self, assignment: str) -> None:
        """Set a value, `path=value`. Raises: ValueError."""
        self._by_path()
        edits.set_path(self.body, assignment)

    def remove(self, path: str) -> None:
        """Remove a value. Raises: ValueError."""
        self._by_path()
        edits.remove_path(self.body, path)

    @property
    def text(self) -> str:
        """The body to be read and edited: indented JSON, also of a form's fields; any other text as it is."""
        if self.form == "text":
            return str(self.body)
        return json.dumps(self.body, indent=2, ensure_ascii=False) + "\n"

    def edited(self, text: str) -> None:
        """Take what was made of `text`. Raises: ValueError naming the line that can't be read."""
        body = text if self.form == "text" else json.loads(text)
        if self.form == "form" and not isinstance(body, dict):
            raise ValueError("the fields of a form are an object of names and values")
        self.body = body

    def encoded(self) -> bytes:
        """Return the bytes: compact JSON in ASCII, whatever an edit brought in; or a form; or the text."""
        if self.form == "json":
            return encode(self.body)
        if self.form == "form":
            fields = {
                key: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
                for key, value in self.body.items()
            }
            return urlencode(fields).encode("ascii")
        return str(self.body).encode(errors="surrogateescape")

    def delivery(self, secret: str, now: datetime, url: str) -> Delivery:
        """Return what the sender would send, signed with `secret`. Raises: ValueError for an unusable secret."""
        body = self.encoded()
        words = words_of(self.type, self.event_id, self.at) | signatures_of(body, secret)
        besides = envelope(self.provider.name, self.body, words) | dict(self.headers)
        said = SignOptions(event_id=self.event_id, type=self.type, url=url, headers=besides)
        made = self.provider.delivery(body, secret, now, **said)
        return replace(made, headers={**besides, **made.headers, **self.headers})

    def _by_path(self) -> None:
        if self.form == "text":
            raise ValueError(f"the body of {self.provider.name} is not JSON and has no paths; use --edit")


def fresh(provider: Provider, type: str | None, now: datetime, event_id: str | None = None) -> Document:  # noqa: A002
    """Return a provider's sample of a type that happens at `now`, an aware time.

    Without a type it is the first that the provider, with the options of its source, can read. `event_id` is put where
    the sender has its ids; without it there is a new one. A provider without samples gets what it can make of id and
    type itself, else `{"id", "type", "created"}`, for any type. Raises: LookupError, with the nearest type, if a
    provider that has samples has none of this type; ValueError for an id that can't be its sender's.
    """
    sample = files.sample(provider.name, _usual_type(provider, now) if type is None else type)
    if sample is None:
        made = event_id or str(reshaped(NEW_ID))
        return _made_up(provider, type or "test", made, now)
    own = reshaped(sample.id or NEW_ID) if event_id is None else _as_id(event_id, sample)
    new: dict[Id, Id] = {each: reshaped(each) for each in sample.fresh}
    if sample.id is not None:
        new[sample.id] = own
    seconds = seconds_since_written(now)
    body = replaced(copy.deepcopy(sample.body), new)
    body = moved_text(body, seconds) if sample.form == "text" else moved(body, seconds)
    return Document(provider, sample.type, str(own), sample.form, body, now, sample.headers)


def _usual_type(provider: Provider, now: datetime) -> str | None:
    """Return the first type whose sample the provider reads with its options; None if there is none."""
    return next((kind for kind in files.types(provider.name) if _is_read(provider, kind, now)), None)


def _is_read(provider: Provider, kind: str, now: datetime) -> bool:
    made = fresh(provider, kind, now)
    try:
        provider.events(Delivery("POST", "", made.headers, made.encoded()))
    except Rejected as error:
        return error.reason is not Reason.BAD_BODY
    return True


def encode(document: object) -> bytes:
    """Write compact JSON, in ASCII."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")


def _as_id(event_id: str, sample: Sample) -> Id:
    if not isinstance(sample.id, int):
        return event_id
    if not (event_id.isascii() and event_id.isdecimal()):
        raise ValueError(f"{event_id!r} can't be the id of a {sample.type}: its sender's ids are numbers")
    return int(event_id)


def _made_up(provider: Provider, kind: str, event_id: str, now: datetime) -> Document:
    if provider.sample is None:
        body = {"id": event_id, "type": kind, "created": int(now.timestamp())}
        return Document(provider, kind, event_id, "json", body, now)
    made = provider.sample(event_id, kind)
    try:
        return Document(provider, kind, event_id, "json", json.loads(made), now)
    except ValueError:
        fields = dict(parse_qsl(made.decode(), keep_blank_values=True))
        return Document(provider, kind, event_id, "form", fields, now, {"content-type": FORM})
