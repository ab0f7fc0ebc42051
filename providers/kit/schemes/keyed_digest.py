"""Plain digests with the secret among the hashed bytes (no HMAC), of senders that came up with that.

Digest(header="x-cld-signature", before="{body}{timestamp}", timestamp=Timestamp(header="x-cld-timestamp"))
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto.secret_keys import key_of, keys_of
from hookonce.providers.kit.crypto.signature_text import speller
from hookonce.providers.kit.reading.bodies import header_of, octets
from hookonce.providers.kit.signing.message_template import Template, signs_body, template
from hookonce.providers.kit.signing.timestamps import Timestamp
from hookonce.providers.kit.signing.verdict import SignOptions, expect_match

Hash = Literal["sha1", "sha256"]
_SIZES: dict[Hash, int] = {"sha1": 20, "sha256": 32}


@dataclass(kw_only=True, eq=False)
class KeyedDigest:
    """The scheme: hash(`before` + secret + `after`), both templates, in hex in `header`.

    hashes: those that may be used, told apart by their size; the first one signs
    """

    header: str
    timestamp: Timestamp
    before: str
    after: str = ""
    hashes: tuple[Hash, ...] = ("sha256",)
    _before: Template = field(init=False, repr=False)
    _after: Template = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._before, self._after = template(self.before), template(self.after)

    @property
    def proof(self) -> tuple[str, ...]:
        """The place of the digest."""
        return (f"header:{self.header}",)

    @property
    def signs_body(self) -> bool:
        """Whether the body is covered."""
        return signs_body(self.before + self.after)

    @property
    def tolerance(self) -> timedelta | None:
        """How far the signed time may be from ours."""
        return self.timestamp.tolerance

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError for a blank secret."""
        key_of(secret, "raw")

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` if its digest was made with one of `secrets`. Raises: Rejected."""
        keys = keys_of(secrets, "raw")
        _, given = header_of(delivery.headers, (self.header,))
        name, stamp = header_of(delivery.headers, (self.timestamp.header,))
        seconds = self.timestamp.parse(stamp)
        chosen = next((each for each in self.hashes if speller("hex", _SIZES[each]).fold(given)), None)
        if chosen is None:
            raise Rejected(Reason.BAD_HEADER, f"header {self.header} holds no digest in hex")
        right = (self._made(delivery, octets(name, stamp), key, chosen).encode() for key in keys)
        expect_match([given.lower().encode()], right)
        self.timestamp.check(seconds, now)

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return the digest's header and the timestamp's. Raises: ValueError for a blank secret."""
        written = self.timestamp.write(now)
        headers = {self.timestamp.header: written}
        delivery = Delivery("POST", options.get("url", ""), {**options.get("headers", {}), **headers}, body)
        made = self._made(delivery, written.encode(), key_of(secret, "raw"), self.hashes[0])
        return headers | {self.header: made}

    def _made(self, delivery: Delivery, stamp: bytes, key: bytes, name: Hash) -> str:
        message = self._before(delivery, stamp) + key + self._after(delivery, stamp)
        return hashlib.new(name, message).hexdigest()
