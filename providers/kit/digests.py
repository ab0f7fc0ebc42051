"""Plain digests with the secret among the hashed bytes (no HMAC), of senders that came up with that.

Digest(header="x-cld-signature", before="{body}{timestamp}", timestamp=Timestamp(header="x-cld-timestamp"))
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit.encoding import speller
from providers.kit.keys import key_of, keys_of
from providers.kit.reading import header_of, octets
from providers.kit.signing import Said, expect_match
from providers.kit.template import Template, template
from providers.kit.times import Timestamp

Hash = Literal["sha1", "sha256"]
_SIZES: dict[Hash, int] = {"sha1": 20, "sha256": 32}


@dataclass(kw_only=True, eq=False)
class Digest:
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

    def sign(self, body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
        """The digest's header and the timestamp's. Raises: ValueError for a blank secret."""
        written = self.timestamp.write(now)
        headers = {self.timestamp.header: written}
        delivery = Delivery("POST", said.get("url", ""), {**said.get("headers", {}), **headers}, body)
        made = self._made(delivery, written.encode(), key_of(secret, "raw"), self.hashes[0])
        return headers | {self.header: made}

    def _made(self, delivery: Delivery, stamp: bytes, key: bytes, name: Hash) -> str:
        message = self._before(delivery, stamp) + key + self._after(delivery, stamp)
        return hashlib.new(name, message).hexdigest()
