"""Shared tokens: the secret itself travels with every delivery, and nothing is signed.

    Token(header="x-gitlab-token")
    Token(header="authorization", prefix="Bearer ")
    Token(basic=True)
    Token(query="token")
    Token(field="$.passcode")
    Token(path=True)

Such a sender has `body_is_unsigned`: whoever has once seen a delivery can send any body.
"""

import hmac
import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as declared
from datetime import datetime
from typing import Any, Unpack
from urllib.parse import parse_qsl, urlencode, urlsplit

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto.secret_keys import key_of, keys_of
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.reading.bodies import header_name, header_of, json_or_form, octets, parse_form
from hookonce.providers.kit.schemes import path_secret
from hookonce.providers.kit.signing.signature_in_body import json_or_empty
from hookonce.providers.kit.signing.signed_urls import with_parameter
from hookonce.providers.kit.signing.verdict import FORM, SignOptions


@dataclass(kw_only=True, eq=False)
class Token:
    """The scheme: the token is in `header` (behind `prefix`, as in `Bearer x`), in the URL, or in the body.

    basic: the secret is `user:password`, sent as HTTP Basic authentication in `header`
    query: the parameter of the URL that holds it
    field: its place in a JSON body or a form, `$.passcode`; what holds it is kept with the event, so leave it out of
        fingerprints
    path: it is the last part of our URL, `/hooks/<source>/<secret>`, and nowhere else

    The others may be there as well, where nothing can be set up at the sender but a URL.
    Raises: ValueError for a declaration that can't mean anything.
    """

    header: str = ""
    query: str = ""
    prefix: str = ""
    basic: bool = False
    field: str = ""
    path: bool = False
    _steps: tuple[json_paths.Step, ...] = declared(init=False, repr=False)

    def __post_init__(self) -> None:
        self.header = header_name(self.header) or ("authorization" if self.basic else "")
        if sum(map(bool, (self.header, self.query, self.field, self.path))) != 1:
            msg = "a token is in a header, in the query, in the path or in a field of the body; name one of them"
            raise ValueError(msg)
        self._steps = json_paths.parse(self.field) if self.field else ()
        if None in self._steps:
            msg = f"{self.field!r} names many places; expected one"
            raise ValueError(msg)
        if self.basic:
            self.prefix = "Basic "

    @property
    def proof(self) -> tuple[str, ...]:
        """The place of the token; none of one in the path, which no delivery keeps."""
        places = (("header:", self.header), ("query:", self.query), ("", self.field))
        return tuple(kind + name for kind, name in places if name)

    @property
    def signs_body(self) -> bool:
        """False: nothing is signed."""
        return False

    @property
    def in_body(self) -> bool:
        """Whether the token is in the body."""
        return bool(self.field)

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError for a blank secret, and for one that can't stand where it belongs."""
        if self.path:
            path_secret.check_secret(secret)
        key_of(secret, "raw")
        if self.basic and ":" not in secret:
            msg = "the secret is not usable; expected 'user:password'"
            raise ValueError(msg)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG002
        """Accept `delivery` if it carries one of `secrets`; there is no time to look at. Raises: Rejected."""
        self.authentic(delivery, secrets)

    def authentic(self, delivery: Delivery, secrets: Sequence[str]) -> None:
        """Like `verify`, for handshakes, which have no clock. Raises: Rejected."""
        keys = keys_of(secrets, "raw")
        given = self._given(delivery)
        right = [hmac.compare_digest(given, self._spelled(key)) for key in keys]
        if not any(right):
            raise Rejected(Reason.BAD_SIGNATURE, "the token is none of the secrets of this source")

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:  # noqa: ARG002
        """Return the token's header; none if it belongs elsewhere. Raises: ValueError for a blank secret."""
        spelled = self._spelled(key_of(secret, "raw")).decode("latin-1")
        return {self.header: self.prefix + spelled} if self.header else {}

    def deliver(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        """Return the whole delivery, with the token where it belongs. Raises: ValueError for a blank secret."""
        url = options.get("url", "")
        headers = {**options.get("headers", {}), **self.sign(body, secret, now)}
        if self.query:
            url = with_parameter(url, self.query, urlencode({"": secret})[1:])
        if self.field:
            body, content = _with_field(body, self._steps, secret)
            headers = {**headers, "content-type": content}
        in_path = secret if self.path else ""
        return Delivery(options.get("method", "POST"), url, headers, body, in_path)

    def _spelled(self, key: bytes) -> bytes:
        return b64encode(key) if self.basic else key

    def _given(self, delivery: Delivery) -> bytes:
        if delivery.path_secret and (not self.header or self.header not in delivery.headers):
            return self._spelled(octets("path", delivery.path_secret))
        if self.path:
            raise Rejected(Reason.MISSING_HEADER, "the URL does not end with the secret of this source")
        if self.field:
            return self._in_body(delivery)
        if self.query:
            return self._parameter(delivery.url)
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

    def _in_body(self, delivery: Delivery) -> bytes:
        given = json_paths.find(json_or_form(delivery), self._steps)
        if not isinstance(given, str):
            raise Rejected(Reason.BAD_BODY, f"{self.field} holds no token")
        return given.encode("utf-8", "surrogatepass")


def _with_field(body: bytes, steps: tuple[json_paths.Step, ...], secret: str) -> tuple[bytes, str]:
    """Return the body with the secret at its place, and its type: a form stays one, all else becomes JSON."""
    if body[:1] not in (b"{", b"[") and b"=" in body:
        fields: Any = json_paths.put(parse_form(body.decode("utf-8", "replace")), steps, secret)
        return urlencode(fields).encode(), FORM
    return json.dumps(json_paths.put(json_or_empty(body), steps, secret)).encode(), "application/json"
