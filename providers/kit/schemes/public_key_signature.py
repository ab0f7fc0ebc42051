"""Signatures that a public key verifies, as one declaration each; the counterpart of `Hmac`.

    Signed(header="x-signature-sha256", algorithm="rsa-sha256")
    Signed(header="x-signature-ed25519", algorithm="ed25519", encoding="hex", signed="{timestamp}{body}",
           timestamp=Timestamp(header="x-signature-timestamp"))

The secret of such a source is the sender's public key (`providers.kit.crypto.public_keys` lists its forms).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers import Delivery
from hookonce.providers.kit.crypto.public_keys import (
    Algorithm,
    expect_signature,
    public_key,
    public_keys,
    signature_in,
    signature_of,
)
from hookonce.providers.kit.crypto.signature_text import Encoding, speller
from hookonce.providers.kit.reading.bodies import header_of, octets
from hookonce.providers.kit.signing.message_template import Template, signs_body, template
from hookonce.providers.kit.signing.timestamps import Timestamp
from hookonce.providers.kit.signing.verdict import SignOptions


@dataclass(kw_only=True, eq=False)
class Signed:
    """One sender's scheme; `verify`, `sign` and `check_secret` are what a provider module exports.

    header: where the signature is
    signed: the template of the signed bytes (`providers.kit.signing.message_template`), or what makes
        them of the delivery
    timestamp: the signed time, in a header of its own
    """

    header: str
    algorithm: Algorithm
    encoding: Encoding = "base64"
    signed: str | Callable[[Delivery], bytes] = "{body}"
    timestamp: Timestamp | None = None
    _message: Template = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.header = self.header.lower()
        made = self.signed
        self._message = template(made) if isinstance(made, str) else lambda delivery, _: made(delivery)

    @property
    def tolerance(self) -> timedelta | None:
        """How far the signed time may be from ours, None where no time is signed."""
        return self.timestamp.tolerance if self.timestamp else None

    @property
    def signs_body(self) -> bool | None:
        """Whether the body is covered, None where a function of the sender's makes the signed bytes."""
        return signs_body(self.signed) if isinstance(self.signed, str) else None

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a key of this sender looks like."""
        public_key(secret, self.algorithm)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` if one of the keys made its signature. Raises: Rejected."""
        seconds = self.authentic(delivery, secrets)
        if self.timestamp:
            self.timestamp.check(seconds, now)

    def authentic(self, delivery: Delivery, secrets: Sequence[str]) -> float:
        """Check all but the time; Unix seconds of the signed time (0 without one). Raises: Rejected."""
        keys = public_keys(secrets, self.algorithm)
        signature = signature_in(*header_of(delivery.headers, (self.header,)), self.encoding)
        stamp, seconds = b"", 0.0
        if self.timestamp:
            name, text = header_of(delivery.headers, (self.timestamp.header,))
            stamp, seconds = octets(name, text), self.timestamp.parse(text)
        expect_signature(keys, self.algorithm, signature, self._message(delivery, stamp))
        return seconds

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return the signature's header, and the timestamp's. Raises: ValueError unless `secret` is a private key."""
        written = self.timestamp.write(now) if self.timestamp else ""
        headers = {self.timestamp.header: written} if self.timestamp else {}
        besides = {**options.get("headers", {}), **headers}
        delivery = Delivery(options.get("method", "POST"), options.get("url", ""), besides, body)
        raw = signature_of(secret, self.algorithm, self._message(delivery, written.encode()))
        return headers | {self.header: spelled(raw, self.encoding)}


def spelled(raw: bytes, encoding: Encoding) -> str:
    """Return a signature as text."""
    return speller(encoding, len(raw)).spell(raw)
