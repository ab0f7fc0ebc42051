"""HMAC signatures: two thirds of all senders, as one declaration each.

    Hmac(header="x-hub-signature-256", prefix="sha256=")
    Hmac(header="x-shopify-hmac-sha256", encoding="base64")
    Hmac(header="x-slack-signature", prefix="v0=", signed="v0:{timestamp}:{body}",
         timestamp=Timestamp(header="x-slack-request-timestamp"))
    Hmac(header="stripe-signature", key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))

Order of checks: secrets, headers, signature, time; so a forged delivery is `bad_signature` however old it
claims to be.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, Unpack
from urllib.parse import quote

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto.secret_keys import Codec, check_key, key_of, keys_of, mac_of
from hookonce.providers.kit.crypto.signature_text import Encoding, Speller, speller
from hookonce.providers.kit.events.fields import EventView, Extractor
from hookonce.providers.kit.reading.bodies import header_of, octets
from hookonce.providers.kit.signing.header_lists import items, only, pairs
from hookonce.providers.kit.signing.message_template import Template, signs_body, template
from hookonce.providers.kit.signing.signed_urls import url_parameter, with_parameter
from hookonce.providers.kit.signing.timestamps import Timestamp, expect_time
from hookonce.providers.kit.signing.verdict import MAX_SIGNATURES, SignOptions, expect_match

Hash = Literal["md5", "sha1", "sha256", "sha512"]
HASHES: Final[tuple[Hash, ...]] = ("sha256", "sha1", "sha512", "md5")
_SIZES: Final = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}


@dataclass(kw_only=True, eq=False)
class Hmac:
    """One sender's HMAC scheme; `verify`, `sign` and `check_secret` are what a provider module exports.

    header: where the signature is; of several names the first one sent counts
    query: the parameter of the URL that holds it, if none of the headers was sent; `deliver` puts it there if there is
        no header at all
    every: each of these headers may hold a signature, and any of them will do
    prefix: what stands before each signature, `sha256=`; required if given
    key: the header is a list of `key=value`, and the signatures are those under this key, `v1`
    separator: what stands between several signatures, or between the pairs (then `,` if not given)
    signed: the template of the signed bytes (`providers.kit.signing.message_template`), or a function
        that makes them of the
        delivery and the signed time
    timestamp: the signed time, if there is one
    secret: how the configured text becomes the key

    Raises: ValueError for a declaration that can't mean anything.
    """

    header: str | tuple[str, ...] = ()
    query: str = ""
    every: bool = False
    hash: Hash = "sha256"
    encoding: Encoding = "hex"
    prefix: str = ""
    key: str = ""
    separator: str = ""
    signed: str | Template = "{body}"
    timestamp: Timestamp | None = None
    secret: Codec = "raw"  # noqa: S105  a codec's name
    _names: tuple[str, ...] = field(init=False, repr=False)
    _speller: Speller = field(init=False, repr=False)
    _message: Template = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = (self.header,) if isinstance(self.header, str) else self.header
        self._names = tuple(name.lower() for name in names)
        if not self._names and not self.query:
            msg = "a signature is in a header or in the query; name one of them"
            raise ValueError(msg)
        self._speller = speller(self.encoding, _SIZES[self.hash])
        self._message = template(self.signed) if isinstance(self.signed, str) else self.signed
        if self.key:
            self.separator = self.separator or ","
        expect_time(self.timestamp, self.signed, self.key)

    @property
    def proof(self) -> tuple[str, ...]:
        """The places in which the signature may be."""
        return (*(f"header:{name}" for name in self._names), *([f"query:{self.query}"] if self.query else ()))

    @property
    def tolerance(self) -> timedelta | None:
        """How far the signed time may be from ours, None where no time is signed."""
        return self.timestamp.tolerance if self.timestamp else None

    @property
    def signed_at(self) -> Extractor:
        """The signed time, in Unix seconds; None where there is none, as in deliveries that were stored."""

        def get(view: EventView) -> float | None:
            sent, timestamp = view.delivery.headers, self.timestamp
            with suppress(Rejected):
                if timestamp and timestamp.header:
                    return timestamp.parse(header_of(sent, (timestamp.header,))[1])
                if timestamp:
                    name, value = header_of(sent, self._names)
                    return timestamp.parse(only(name, timestamp.key, self._split(value)[1]))
            return None

        return Extractor(get, "the signed time")

    @property
    def signs_body(self) -> bool | None:
        """Whether the body is covered, None where a function of the sender's makes the signed bytes."""
        return signs_body(self.signed) if isinstance(self.signed, str) else None

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a secret of this sender looks like."""
        check_key(secret, self.secret)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` if one of its signatures is right under one of `secrets`. Raises: Rejected."""
        seconds = self.authentic(delivery, secrets)
        if self.timestamp:
            self.timestamp.check(seconds, now)

    def authentic(self, delivery: Delivery, secrets: Sequence[str]) -> float:
        """Check all but the time; Unix seconds of the signed time (0 without one), for handshakes.

        Raises: Rejected.
        """
        keys = keys_of(secrets, self.secret)
        name, value = self._sent(delivery)
        texts, stamps = self._split(value)
        if self.every and name in self._names:  # so it is not in the query
            texts = [delivery.headers[each] for each in self._names if each in delivery.headers]
        given = self._signatures(name, texts)
        stamp = self._stamp(delivery, name, stamps)
        seconds = self.timestamp.parse(stamp.decode("latin-1")) if self.timestamp else 0.0
        self._expect(given, keys, delivery, stamp)
        return seconds

    def signed_message(self, delivery: Delivery) -> bytes:
        """Return what the signature of `delivery` covers, the time as it was sent. Raises: Rejected."""
        name, value = self._sent(delivery)
        return self._message(delivery, self._stamp(delivery, name, self._split(value)[1]))

    def _stamp(self, delivery: Delivery, name: str, stamps: list[str]) -> bytes:
        """Return the signed time as it was sent, empty where there is none. Raises: Rejected."""
        if self.timestamp is None:
            return b""
        if self.timestamp.header:
            return octets(*header_of(delivery.headers, (self.timestamp.header,)))
        return octets(name, only(name, self.timestamp.key, stamps))

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return the signature header, if it is in one, and the timestamp's. Raises: ValueError for a bad secret."""
        value, headers = self._made(body, secret, now, **options)
        return headers | dict.fromkeys(self._names[:1], value)

    def deliver(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        """Return the whole delivery, with the signature in the URL. Raises: ValueError for a bad secret."""
        value, headers = self._made(body, secret, now, **options)
        url = with_parameter(options.get("url", ""), self.query, quote(value, safe=""))
        return Delivery(options.get("method", "POST"), url, {**options.get("headers", {}), **headers}, body)

    def _made(
        self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]
    ) -> tuple[str, dict[str, str]]:
        """Return what stands where the signature is, and the timestamp's header."""
        written = self.timestamp.write(now) if self.timestamp else ""
        headers = {self.timestamp.header: written} if self.timestamp and self.timestamp.header else {}
        besides = {**options.get("headers", {}), **headers}
        delivery = Delivery(options.get("method", "POST"), options.get("url", ""), besides, body)
        mac = mac_of(key_of(secret, self.secret), self._message(delivery, written.encode()), self.hash)
        value = self.prefix + self._speller.spell(mac)
        if self.key:
            value = f"{self.key}={value}"
            if self.timestamp and self.timestamp.key:
                value = f"{self.timestamp.key}={written}{self.separator}{value}"
        return value, headers

    def expect(self, given: object, message: bytes, secrets: Sequence[str]) -> None:
        """Accept `given`, a signature that stood in the body, if it is right for `message`. Raises: Rejected."""
        keys = keys_of(secrets, self.secret)
        if not isinstance(given, str):
            raise Rejected(Reason.MISSING_HEADER, f"the body holds no {self._names[0]}")
        signatures = self._signatures(self._names[0], items(given, self.separator))
        expect_match(signatures, [self._speller.folded(mac_of(key, message, self.hash)) for key in keys])

    def signature(self, message: bytes, secret: str) -> str:
        """Return the signature of `message`, to be put into a body. Raises: ValueError for a bad secret."""
        return self.prefix + self._speller.spell(mac_of(key_of(secret, self.secret), message, self.hash))

    def _expect(self, given: list[bytes], keys: Sequence[bytes], delivery: Delivery, stamp: bytes) -> None:
        message = self._message(delivery, stamp)
        expect_match(given, [self._speller.folded(mac_of(key, message, self.hash)) for key in keys])

    def _sent(self, delivery: Delivery) -> tuple[str, str]:
        """Return where the signature is, and what is there. Raises: Rejected(missing_header)."""
        there = next((name for name in self._names if name in delivery.headers), None)
        if there or not self.query:
            return header_of(delivery.headers, self._names)
        value = url_parameter(delivery.url, self.query)
        if value is None:
            raise Rejected(Reason.MISSING_HEADER, f"query parameter {self.query} is missing")
        return self.query, value

    def _split(self, value: str) -> tuple[list[str], list[str]]:
        """Return the signatures in the header, and the times if they are in it."""
        if not self.key:
            return items(value, self.separator), []
        return pairs(value, self.separator, self.key, self.timestamp.key if self.timestamp else "")

    def _signatures(self, name: str, texts: list[str]) -> list[bytes]:
        """Return those of `texts` that have the form of a signature, 16 at most; others are passed over."""
        start = len(self.prefix)
        looked_at = texts if self.every else texts[:MAX_SIGNATURES]
        fitting = [text[start:] for text in looked_at if text.startswith(self.prefix)]
        given = [folded for text in fitting if (folded := self._speller.fold(text)) is not None]
        if not given:
            raise Rejected(
                Reason.BAD_HEADER, f"header {name} holds no {self.hash} signature in {self.encoding}"
            )
        return given
