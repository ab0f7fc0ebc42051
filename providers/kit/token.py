"""Shared tokens: the secret itself travels with every delivery, and nothing is signed.

A module with such a scheme says `BODY_IS_UNSIGNED = True`: whoever has once seen a delivery can send any
body.
"""

import hmac
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Unpack
from urllib.parse import parse_qsl, urlsplit

from providers import Delivery, Reason, Rejected
from providers.kit.keys import key_of, keys_of
from providers.kit.reading import header_of, octets
from providers.kit.signing import Said


@dataclass(kw_only=True, eq=False)
class Token:
    """The scheme: the token is in `header` (behind `prefix`, as in `Bearer x`) or in a query parameter.

    basic: the secret is `user:password`, sent as HTTP Basic authentication in `header`

    Where nothing can be set up at the sender but a URL, the secret may be its last part, `/hooks/<source>/<secret>`.
    """

    header: str = ""
    query: str = ""
    prefix: str = ""
    basic: bool = False

    def __post_init__(self) -> None:
        self.header = self.header.lower() or ("authorization" if self.basic else "")
        if bool(self.header) == bool(self.query):
            msg = "a token is in a header or in the query; name one of them"
            raise ValueError(msg)
        if self.basic:
            self.prefix = "Basic "

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError for a blank secret, or one that is not `user:password` where that is wanted."""
        key_of(secret, "raw")
        if self.basic and ":" not in secret:
            msg = "the secret is not usable; expected 'user:password'"
            raise ValueError(msg)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG002
        """Accept `delivery` if it carries one of `secrets`; there is no time to look at. Raises: Rejected."""
        keys = keys_of(secrets, "raw")
        given = self._given(delivery)
        right = [hmac.compare_digest(given, self._spelled(key)) for key in keys]
        if not any(right):
            raise Rejected(Reason.BAD_SIGNATURE, "the token is none of the secrets of this source")

    def sign(self, body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:  # noqa: ARG002
        """The token's header; none if it belongs in the URL. Raises: ValueError for a blank secret."""
        spelled = self._spelled(key_of(secret, "raw")).decode("latin-1")
        return {self.header: self.prefix + spelled} if self.header else {}

    def _spelled(self, key: bytes) -> bytes:
        return b64encode(key) if self.basic else key

    def _given(self, delivery: Delivery) -> bytes:
        if self.query:
            return self._parameter(delivery.url)
        if delivery.path_secret and self.header not in delivery.headers:
            return self._spelled(octets("path", delivery.path_secret))
        name, value = header_of(delivery.headers, (self.header,))
        start = len(self.prefix)
        if value[:start].lower() != self.prefix.lower():  # the names of HTTP's schemes have no case
            raise Rejected(Reason.BAD_HEADER, f"header {name} does not start with {self.prefix!r}")
        return octets(name, value[start:])

    def _parameter(self, url: str) -> bytes:
        try:
            pairs = parse_qsl(
                urlsplit(url).query, keep_blank_values=True, encoding="latin-1", max_num_fields=100
            )
        except ValueError:
            raise Rejected(Reason.BAD_HEADER, "the URL's query can't be read") from None
        found = [value for name, value in pairs if name == self.query]
        if not found:
            raise Rejected(Reason.MISSING_HEADER, f"query parameter {self.query} is missing")
        return octets(f"query parameter {self.query}", found[0])
