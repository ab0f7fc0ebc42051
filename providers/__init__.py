"""Deliveries, and the events made of them: the contract between the receiver and a provider.

A provider is one module in this folder (or anywhere else, see `providers.kit.registry`) with

    verify(delivery, secrets, now) -> None      raise Rejected unless the delivery is authentic
    events(delivery) -> list[Event]             of a verified delivery; needs no clock and no secret
    sign(body, secret, now, ...) -> headers     what the sender would send
    sender = Sender(id_is_signed=…, retry_horizon=…, …)     what else is to be known, see `providers.kit.sender`

and, named in `sender`, what few senders need: `handshake(delivery, secrets)` for those that probe the URL, `deliver`,
`sample`, `decode`. Where a source can set options there is `configure(options)`, which returns all of it as a
`Configured`.

Providers are pure: bytes and headers in, values out; no I/O, no clock, no environment.
Only `Rejected` (and `KeyNeeded`, see there) may leave one, whatever bytes arrive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

UNREADABLE: Final = "unreadable"
"""The type of an event that is authentic, and not readable by its adapter; its id is the SHA-256 (hex) of its bytes."""


class Reason(StrEnum):
    """Why a delivery is refused; the same slug is the log field, metric label, reply code and CLI filter."""

    MISSING_HEADER = "missing_header"
    BAD_HEADER = "bad_header"
    BAD_SIGNATURE = "bad_signature"
    STALE = "stale"
    BAD_BODY = "bad_body"
    NO_SECRET = "no_secret"  # noqa: S105  a slug, not a password
    UNKNOWN_SOURCE = "unknown_source"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    BAD_METHOD = "bad_method"
    UNSUPPORTED_ENCODING = "unsupported_encoding"


class Rejected(Exception):  # noqa: N818  a verdict about a delivery, named as the field names it
    """The delivery is not authentic or not readable; `detail` never holds a secret, a signature or a body.

    `age`: how long ago a stale delivery was signed, where that is known.
    """

    def __init__(self, reason: Reason, detail: str, age: timedelta | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.age = age


class KeyNeeded(Exception):  # noqa: N818  a request to the receiver, not a failure
    """The provider needs the document at `url` (a certificate or key set) to go on.

    The receiver fetches it under its own rules and calls `verify` again with `keys={url: bytes}`. Raised for
    a URL that was given, it says that the document there lacks the key. `post` is JSON to be sent along, for
    senders that want credentials; it never shows.
    """

    def __init__(self, url: str, post: bytes | None = None) -> None:
        super().__init__(url)
        self.url = url
        self.post = post


@dataclass(frozen=True, slots=True)
class Delivery:
    """One HTTP request as it was sent.

    `headers` has lower-case names and latin-1 text values (duplicates joined with a comma, as WSGI does);
    `url` is the public URL the sender posted to, query string included; `body` is the raw bytes, or where these were
    compressed and have been inflated (`providers.kit.reading.content_coding`) their text, and `sent` the raw bytes.
    `path_secret` is what followed the source's name in the path (and is left out of `url`): all that some
    senders can prove who they are with. `readings` is what was read of the body so far
    (`providers.kit.reading.bodies.read_once`), so that nobody has to read it twice.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    path_secret: str = field(default="", repr=False)
    readings: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    sent: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `id` is the sender's, the same on every redelivery.

    `data` is the parsed payload, `account` the sender's tenant, `occurred_at` aware UTC;
    `raw` is set for an element of a batch only: its own bytes. `retry_ids`: another attempt to deliver this event may
    have one of these ids, of a sender that signs each attempt anew (`Attempts`), or of a source whose operator chose
    other ids between the attempts. `is_undated`: another event may have this id as well, so the time of receipt counts
    too; None where that is so of all the sender's events, or of none (`Sender.id_period`).
    `unreadable`: why its adapter could not read it; it has the type `UNREADABLE` then, and no handler gets it.
    """

    id: str
    type: str
    data: Any
    account: str | None = None
    occurred_at: datetime | None = None
    raw: bytes | None = None
    retry_ids: tuple[str, ...] = ()
    is_undated: bool | None = None
    unreadable: str = ""


def unreadable(  # noqa: PLR0913  all but two by keyword
    own: bytes,
    why: Rejected,
    *,
    sender_id: str | None = None,
    data: object = None,
    account: str | None = None,
    raw: bytes | None = None,
) -> Event:
    """Return the event for bytes that an adapter could not read; `own` makes its id, `raw` is given for an element.

    `sender_id` is what can still be read as the sender's id. It is only told: the event that is read one day needs it.
    """
    told = f"{why}; its id reads {sender_id}" if sender_id else str(why)
    return Event(sha256(own).hexdigest(), UNREADABLE, data, account, raw=raw, unreadable=told)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer for a sender that wants something other than hookonce's own JSON.

    `secret`: the sender hands it out with this probe and signs with it from now on. Only the operator may see
    it, and only one is kept unasked: whoever can reach the URL can send such a probe.
    `fetch`: a URL of the sender's that must be fetched first, to confirm a subscription; it is fetched under the
    rules for keys, and if that fails the probe is not answered.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    secret: str | None = None
    fetch: str | None = None
