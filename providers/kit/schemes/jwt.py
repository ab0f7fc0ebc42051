"""JSON Web Tokens in a delivery: whose they are, which delivery they speak of, and when.

What a signed token is, and who signed it, is `providers.kit.crypto.jws`'s.

    Jwt(header="x-webhook-signature", issuers=("netlify",), body_hash=("sha256", "hex"))
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto import jws
from hookonce.providers.kit.crypto.jws import Alg, Key, Token
from hookonce.providers.kit.crypto.secret_keys import Codec
from hookonce.providers.kit.crypto.signature_text import Encoding, speller
from hookonce.providers.kit.events.fields import EventView, Extractor
from hookonce.providers.kit.reading.bodies import header_of, text_of
from hookonce.providers.kit.signing.verdict import SignOptions, made_id

_BEARER: Final = "bearer "
_MAX_TIME: Final = 1e12
"""Seconds beyond every calendar; what a token says may be an integer that no float can hold."""


def claim(name: str, header: str = "authorization") -> Extractor:
    """A claim of the token in `header`; None where there is no token (stored deliveries lack it)."""

    def get(view: EventView) -> object:
        try:
            return Jwt(header=header).token(view.delivery).claims.get(name)
        except Rejected:
            return None

    return Extractor(get, f"the token's {name}")


@dataclass(kw_only=True, eq=False)
class Jwt:
    """The scheme of a sender that puts a token into a header, signed with a secret or with its private key.

    header: where the token is; `Bearer` before it is passed over; the body is the token if empty
    issuers: what `iss` may be; not looked at if empty
    body_hash: the claim with the body's SHA-256 and its spelling; with `hash_is_optional` a delivery without
        a body needs none
    url: the claim that must name our URL, and how: as it is, or its SHA-256 in hex
    needs: the claims of time that must be there (`exp`, `nbf`, `iat`); those that are there always count
    leeway: how far our clocks may differ; max_age: how old `iat` may be, where the sender sets no end
    lifetime: how long the sender's tokens live, for tests
    more: what else must hold: raises Rejected
    """

    header: str = "authorization"
    algorithms: tuple[Alg, ...] = ("HS256",)
    issuers: tuple[str, ...] = ()
    body_hash: tuple[str, Encoding] | None = None
    hash_is_optional: bool = False
    url: tuple[str, Literal["plain", "sha256"]] | None = None
    needs: tuple[str, ...] = ()
    leeway: timedelta = timedelta(0)
    max_age: timedelta | None = None
    lifetime: timedelta = timedelta(minutes=5)
    secret: Codec = "raw"  # noqa: S105  a codec's name
    more: Callable[[Mapping[str, Any], Delivery], None] = field(default=lambda _, __: None)

    @property
    def tolerance(self) -> timedelta | None:
        """How far a token's time may be from ours, None where its time is not looked at."""
        return self.max_age or (self.lifetime if self.needs else None)

    @property
    def signs_body(self) -> bool | None:
        """True where the token holds the body's hash or is the body, None where only `more` could tell."""
        return True if self.body_hash or not self.header else None

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a secret or key of this sender looks like."""
        self._key(secret)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` if its token is signed and speaks of it. Raises: Rejected."""
        self.check(delivery, self.keys(secrets), now)

    def keys(self, secrets: Sequence[str]) -> list[Key]:
        """Return the keys of all usable secrets. Raises: Rejected(no_secret) when none is left."""
        keys: list[Key] = []
        for secret in secrets:
            with suppress(ValueError):
                keys.append(self._key(secret))
        if not keys:
            raise Rejected(Reason.NO_SECRET, "this source has no usable key for its sender's tokens")
        return keys

    def token(self, delivery: Delivery) -> Token:
        """Return the token of `delivery`, not verified. Raises: Rejected(missing_header, bad_header, bad_body)."""
        if not self.header:
            return jws.read(text_of(delivery.body), "the body", Reason.BAD_BODY)
        name, value = header_of(delivery.headers, (self.header,))
        start = len(_BEARER) if value[: len(_BEARER)].lower() == _BEARER else 0
        return jws.read(value[start:].strip(" "), f"header {name}")

    def check(self, delivery: Delivery, keys: Sequence[Key], now: datetime) -> dict[str, Any]:
        """Return the claims of the token, which one of `keys` signed, which is of this delivery and of this time.

        Raises: Rejected.
        """
        token = self.token(delivery)
        jws.expect_authentic(token, keys, self.algorithms)
        claims = token.claims
        if self.issuers and claims.get("iss") not in self.issuers:
            raise Rejected(Reason.BAD_SIGNATURE, "the token's issuer is another")
        self._check_body(claims, delivery.body)
        self._check_url(claims, delivery.url)
        self.more(claims, delivery)
        self._check_times(claims, now.timestamp())
        return claims

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return the token's header. Raises: ValueError for a secret that can't sign."""
        claims = self.claims(body, now, **options)
        key = jws.signing_key(secret, self.secret, self.algorithms[0])
        return {self.header: jws.make(claims, key, self.algorithms[0])}

    def claims(self, body: bytes, now: datetime, **options: Unpack[SignOptions]) -> dict[str, Any]:
        """Return what the sender would say of `body` at `now`."""
        seconds, spread = int(now.timestamp()), int((self.lifetime - self.leeway).total_seconds())
        times = {"iat": seconds, "nbf": seconds - spread, "exp": seconds + spread}
        said_times = times if "exp" in self.needs else self.needs
        claims: dict[str, Any] = {name: times[name] for name in said_times}
        claims["jti"] = options.get("event_id") or made_id(body)
        if self.issuers:
            claims["iss"] = self.issuers[0]
        if self.body_hash and (body or not self.hash_is_optional):
            claims[self.body_hash[0]] = speller(self.body_hash[1], 32).spell(sha256(body).digest())
        if self.url:
            claims[self.url[0]] = self._url(options.get("url", ""))
        return claims

    def _key(self, secret: str) -> Key:
        return jws.verifying_key(secret, self.secret, self.algorithms[0])

    def _check_body(self, claims: Mapping[str, Any], body: bytes) -> None:
        if self.body_hash is None:
            return
        name, encoding = self.body_hash
        given = claims.get(name)
        if given is None and not body and self.hash_is_optional:
            return
        speak = speller(encoding, 32)
        folded = speak.fold(given) if isinstance(given, str) else None
        if folded is None or not hmac.compare_digest(folded, speak.folded(sha256(body).digest())):
            raise Rejected(Reason.BAD_SIGNATURE, f"the token's {name} is not this body's")

    def _check_url(self, claims: Mapping[str, Any], url: str) -> None:
        if self.url and claims.get(self.url[0]) != self._url(url):
            msg = f"the token's {self.url[0]} is not this source's URL; public_url in the configuration says which"
            raise Rejected(Reason.BAD_SIGNATURE, msg)

    def _url(self, url: str) -> str:
        plain = self.url is None or self.url[1] == "plain"
        return url if plain else sha256(url.encode("utf-8", "surrogatepass")).hexdigest()

    def _check_times(self, claims: Mapping[str, Any], now: float) -> None:
        times = {name: claims.get(name) for name in ("iat", "nbf", "exp")}
        for name, value in times.items():
            if value is None and name not in self.needs:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _MAX_TIME:
                raise Rejected(Reason.BAD_HEADER, f"the token's {name} is not a time")
        leeway = self.leeway.total_seconds()
        if times["exp"] is not None and now >= times["exp"] + leeway:
            raise Rejected(Reason.STALE, "the token is no longer valid")
        ahead = (self.tolerance or self.lifetime).total_seconds()
        if times["iat"] is not None and times["iat"] - now > ahead:
            raise Rejected(Reason.STALE, "the token was issued in the future")
        if times["nbf"] is not None and now < times["nbf"] - leeway:
            raise Rejected(Reason.STALE, "the token is not yet valid")
        if (
            self.max_age
            and times["iat"] is not None
            and abs(now - times["iat"]) > self.max_age.total_seconds()
        ):
            raise Rejected(Reason.STALE, "the token was issued too long ago, or in the future")
