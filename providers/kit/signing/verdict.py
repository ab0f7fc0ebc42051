"""The parts that all schemes share: the keywords of `sign`, the cap on signatures, the verdict over candidates."""

import hmac
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final, Protocol, TypedDict, Unpack
from uuid import UUID

from hookonce.providers import Delivery, Reason, Rejected

MAX_SIGNATURES: Final = 16
"""As many signatures of one delivery as are looked at; senders send one, or one per secret in a rotation."""
MAX_EVENTS: Final = 15_000
"""Events of one delivery: as many as the ledger takes in one statement in time."""
FORGED: Final = (
    Reason.BAD_SIGNATURE,
    Reason.STALE,
    Reason.MISSING_HEADER,
    Reason.BAD_HEADER,
    Reason.BAD_BODY,
)
"""Why a forged delivery may be refused: for `statuses` of senders that want one answer to all of them."""


class SignOptions(TypedDict, total=False):
    """The options of `sign`: each is derived from the body where it is not given.

    `headers` (lower case) are sent besides, and some senders sign them.
    """

    event_id: str
    type: str
    url: str
    method: str
    headers: Mapping[str, str]


class Sign(Protocol):
    """`sign` of a provider: the headers (lower case) that its sender would send with `body`."""

    def __call__(
        self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]
    ) -> dict[str, str]:
        """Sign `body` with `secret` as of `now`. Raises: ValueError for an unusable secret."""
        ...


def expect_match(given: Iterable[bytes], expected: Iterable[bytes]) -> None:
    """Accept if any of `given` equals any of `expected`, each pair compared in constant time.

    Raises: Rejected(bad_signature).
    """
    candidates = list(given)
    for right in expected:
        for candidate in candidates:
            if hmac.compare_digest(right, candidate):
                return
    raise Rejected(Reason.BAD_SIGNATURE, "no signature fits this body and the secrets of this source")


def made_id(body: bytes) -> str:
    """Return an event id for a delivery that we sign ourselves: a UUID made of the body's digest, no randomness."""
    return str(UUID(bytes=sha256(body).digest()[:16], version=4))


FORM: Final = "application/x-www-form-urlencoded"
"""The content type of HTML forms."""


def headers_of(deliver: Callable[..., Delivery]) -> Sign:
    """Return a `sign` for senders whose signature is not in a header: the headers of what `deliver` makes."""

    def sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        return dict(deliver(body, secret, now, **options).headers)

    return sign


def delivering(deliver: Callable[..., Delivery], sign: Sign) -> Callable[..., Delivery]:
    """Return a `deliver` that sends the headers of `sign` besides, where what proves it is in URL or body."""

    def delivered(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        headers = {**sign(body, secret, now, **options), **options.get("headers", {})}
        told: SignOptions = {**options, "headers": headers}
        return deliver(body, secret, now, **told)

    return delivered


def signer(
    sign: Sign,
    *,
    event_id: str = "",
    type: str = "",  # noqa: A002
    default_type: str = "ping",
    content: str = "application/json",
) -> Sign:
    """Add to `sign` the headers that carry the event's id and type, for senders that keep them there.

    `event_id` and `type` are header names; without the keyword of the same name the id is made from the body
    and the type is `default_type`. `content` is the content type.
    """
    kind = type

    def signed(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        headers = {"content-type": content}
        if event_id:
            headers[event_id] = options.get("event_id") or made_id(body)
        if kind:
            headers[kind] = options.get("type") or default_type
        told: SignOptions = {**options, "headers": {**headers, **options.get("headers", {})}}
        return headers | sign(body, secret, now, **told)

    return signed
