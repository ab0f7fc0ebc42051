"""Signatures that a public key verifies, as one declaration each; the counterpart of `Hmac`.

    Signed(header="x-signature-sha256", algorithm="rsa-sha256")
    Signed(header="x-signature-ed25519", algorithm="ed25519", encoding="hex", signed="{timestamp}{body}",
           timestamp=Timestamp(header="x-signature-timestamp"))
    Signed(header="x-webhook-signature", key="v0", algorithm="rsa-sha256", signed="{timestamp}.{body}",
           timestamp=Timestamp(key="t", unit="ms"))

The secret of such a source is the sender's public key (`providers.kit.crypto.public_keys` lists its forms), or a JWK
set.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, Unpack

from hookonce.providers import Delivery, KeyNeeded, Reason, Rejected
from hookonce.providers.kit.crypto import jws
from hookonce.providers.kit.crypto.fetched_keys import Documents
from hookonce.providers.kit.crypto.public_keys import (
    Algorithm,
    PublicKey,
    decode,
    expect_signature,
    key_kind,
    public_key,
    public_keys,
    signature_of,
)
from hookonce.providers.kit.crypto.signature_text import Encoding, speller
from hookonce.providers.kit.reading.bodies import header_of, octets
from hookonce.providers.kit.signing.header_lists import items, only, pairs
from hookonce.providers.kit.signing.message_template import Template, signs_body, template
from hookonce.providers.kit.signing.timestamps import Timestamp, expect_time
from hookonce.providers.kit.signing.verdict import MAX_SIGNATURES, SignOptions

Form = Literal["der", "numbers"]
FORMS: Final[tuple[Form, ...]] = ("der", "numbers")
_SIZES: Final = {"256": 64, "384": 96, "512": 132}
"""Bytes of an ECDSA signature that is two numbers, by the hash that goes with its curve."""


@dataclass(kw_only=True, eq=False)
class Signed:
    """One sender's scheme; `verify`, `sign` and `check_secret` are what a provider module exports.

    header: where the signature is
    prefix: what stands before each signature; required if given
    key: the header is a list of `key=value`, and the signatures are those under this key, `v1`
    separator: what stands between several signatures, or between the pairs (then `,` if not given)
    form: of an ECDSA signature, DER or two numbers of the same size
    signed: the template of the signed bytes (`providers.kit.signing.message_template`), or what makes
        them of the delivery
    hashed_by: the hash that is signed instead of these bytes, of a sender that hashes twice
    timestamp: the signed time
    jwks: the URL of the sender's JWK set, fetched where a source has no secret; `verify_by_set` takes what was fetched
    key_id: the header that names the key of the set
    """

    header: str
    algorithm: Algorithm
    encoding: Encoding = "base64"
    prefix: str = ""
    key: str = ""
    separator: str = ""
    form: Form = "der"
    signed: str | Callable[[Delivery], bytes] = "{body}"
    hashed_by: str = ""
    timestamp: Timestamp | None = None
    jwks: str = ""
    key_id: str = ""
    _message: Template = field(init=False, repr=False)
    _alg: jws.Alg | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.header, self.key_id = self.header.lower(), self.key_id.lower()
        made, self._alg = self.signed, jws.alg_of(self.algorithm)
        message = template(made) if isinstance(made, str) else lambda delivery, _: made(delivery)
        self._message = message
        if name := self.hashed_by:
            self._message = lambda delivery, stamp: hashlib.new(name, message(delivery, stamp)).digest()
        if self.key:
            self.separator = self.separator or ","
        expect_time(self.timestamp, made, self.key)
        if self.jwks and not self._alg:
            msg = f"{self.algorithm} has no name among the keys of a set; leave jwks out"
            raise ValueError(msg)
        if self.form != "der" and key_kind(self.algorithm) != "ecdsa":
            msg = f"form is {self.form!r}, and only an ECDSA signature has forms; leave it out"
            raise ValueError(msg)

    @property
    def proof(self) -> tuple[str, ...]:
        """The places of the signatures."""
        return (f"header:{self.header}",)

    @property
    def tolerance(self) -> timedelta | None:
        """How far the signed time may be from ours, None where no time is signed."""
        return self.timestamp.tolerance if self.timestamp else None

    @property
    def signs_body(self) -> bool | None:
        """Whether the body is covered, None where a function of the sender's makes the signed bytes."""
        return signs_body(self.signed) if isinstance(self.signed, str) else None

    @property
    def key_algorithm(self) -> Algorithm:
        """The algorithm of the sender's key."""
        return self.algorithm

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a key of this sender looks like."""
        if self._alg and secret.lstrip().startswith("{"):
            jws.expect_keys(secret, (self._alg,))
        else:
            public_key(secret, self.algorithm)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` if one of the keys made its signature. Raises: Rejected."""
        self._check_time(self.authentic(delivery, secrets), now)

    def verify_by_set(
        self, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None
    ) -> None:
        """Accept `delivery` if a key of `secrets`, or of the set, signed it. Raises: Rejected, KeyNeeded."""
        source = jws.KeySource(secrets, self.jwks, keys)
        named = delivery.headers.get(self.key_id) if self.key_id else None
        if self.key_id and named is None and source.is_fetched:
            raise Rejected(Reason.MISSING_HEADER, f"header {self.key_id} is missing")
        source.expect_usable((self._alg or "RS256",))
        known = jws.known_keys(source, named, self._alg or "RS256")
        try:
            seconds = self._signed_at(delivery, known)
        except Rejected as error:
            if source.is_fetched and not self.key_id and error.reason is Reason.BAD_SIGNATURE:
                raise KeyNeeded(self.jwks) from None  # a key without a name may be one that came since
            raise
        self._check_time(seconds, now)

    def authentic(self, delivery: Delivery, secrets: Sequence[str]) -> float:
        """Check all but the time; Unix seconds of the signed time (0 without one). Raises: Rejected."""
        return self._signed_at(delivery, self._keys(delivery, secrets))

    def signed_message(self, delivery: Delivery) -> bytes:
        """Return what the signature of `delivery` covers, the time as it was sent. Raises: Rejected."""
        return self._message(delivery, self._stamp(delivery, self._split(delivery)[1]))

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return the signature's header, and the timestamp's. Raises: ValueError unless `secret` is a private key."""
        written = self.timestamp.write(now) if self.timestamp else ""
        headers = {self.timestamp.header: written} if self.timestamp and self.timestamp.header else {}
        if self.key_id and self.key_id not in options.get("headers", {}):
            headers[self.key_id] = "a-key-of-one-s-own"
        besides = {**options.get("headers", {}), **headers}
        delivery = Delivery(options.get("method", "POST"), options.get("url", ""), besides, body)
        raw = signature_of(secret, self.algorithm, self._message(delivery, written.encode()))
        value = self.prefix + spelled(self._formed(raw), self.encoding)
        if self.key:
            stamp = (
                f"{self.timestamp.key}={written}{self.separator}"
                if self.timestamp and self.timestamp.key
                else ""
            )
            value = f"{stamp}{self.key}={value}"
        return headers | {self.header: value}

    def _keys(self, delivery: Delivery, secrets: Sequence[str]) -> list[PublicKey]:
        if not self._alg or not any(secret.lstrip().startswith("{") for secret in secrets):
            return public_keys(secrets, self.algorithm)
        named = delivery.headers.get(self.key_id) if self.key_id else None
        source = jws.KeySource(secrets)
        source.expect_usable((self._alg,))
        return jws.known_keys(source, named, self._alg)

    def _signed_at(self, delivery: Delivery, keys: Sequence[PublicKey]) -> float:
        """Check all but the time under `keys`. Raises: Rejected."""
        texts, stamps = self._split(delivery)
        signatures = self._signatures(texts)
        stamp = self._stamp(delivery, stamps)
        seconds = self.timestamp.parse(stamp.decode("latin-1")) if self.timestamp else 0.0
        message = self._message(delivery, stamp)
        for at, signature in enumerate(signatures, 1):
            try:
                expect_signature(keys, self.algorithm, signature, message)
            except Rejected:
                if at == len(signatures):
                    raise
            else:
                break
        return seconds

    def _check_time(self, seconds: float, now: datetime) -> None:
        if self.timestamp:
            self.timestamp.check(seconds, now)

    def _split(self, delivery: Delivery) -> tuple[list[str], list[str]]:
        """Return the signatures in the header, and the times if they are in it. Raises: Rejected(missing_header)."""
        value = header_of(delivery.headers, (self.header,))[1]
        if not self.key:
            return items(value, self.separator), []
        return pairs(value, self.separator, self.key, self.timestamp.key if self.timestamp else "")

    def _stamp(self, delivery: Delivery, stamps: list[str]) -> bytes:
        """Return the signed time as it was sent, empty where there is none. Raises: Rejected."""
        if self.timestamp is None:
            return b""
        if self.timestamp.header:
            return octets(*header_of(delivery.headers, (self.timestamp.header,)))
        return octets(self.header, only(self.header, self.timestamp.key, stamps))

    def _signatures(self, texts: list[str]) -> list[bytes]:
        """Return those of `texts` that are spelled as signatures, never none. Raises: Rejected(bad_header)."""
        start = len(self.prefix)
        fitting = [text[start:] for text in texts[:MAX_SIGNATURES] if text.startswith(self.prefix)]
        found = [raw for text in fitting if (raw := decode(text, self.encoding))]
        if self.form == "numbers":
            found = [jws.as_der(raw) for raw in found if len(raw) == self._size]
        if not found:
            raise Rejected(Reason.BAD_HEADER, f"header {self.header} holds no signature in {self.encoding}")
        return found

    @property
    def _size(self) -> int:
        return _SIZES[self.algorithm[-3:]]

    def _formed(self, raw: bytes) -> bytes:
        return jws.as_numbers(raw, self._size) if self.form == "numbers" else raw


def spelled(raw: bytes, encoding: Encoding) -> str:
    """Return a signature as text."""
    return speller(encoding, len(raw)).spell(raw)
