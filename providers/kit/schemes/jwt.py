"""JSON Web Tokens in a delivery: whose they are, which delivery they speak of, and when.

What a signed token is, and who signed it, is `providers.kit.crypto.jws`'s.

    Jwt(header="x-webhook-signature", issuers=("netlify",), body_hash=("sha256", "hex"))
    Jwt(header="x-jws-signature", detached=True, algorithms=("RS512",), jwks="https://keys.example/jwks.json")
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal, Unpack

from hookonce.providers import Delivery, KeyNeeded, Reason, Rejected
from hookonce.providers.kit.crypto import jws
from hookonce.providers.kit.crypto.fetched_keys import Documents
from hookonce.providers.kit.crypto.jws import Alg, Key, Token
from hookonce.providers.kit.crypto.public_keys import Algorithm
from hookonce.providers.kit.crypto.secret_keys import Codec
from hookonce.providers.kit.crypto.signature_text import Encoding, speller
from hookonce.providers.kit.events.fields import EventView, Extractor
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.reading.bodies import header_of, json_body, parse_json, text_of
from hookonce.providers.kit.signing import signature_in_body
from hookonce.providers.kit.signing.verdict import SignOptions, made_id

_BEARER: Final = "bearer "
_MAX_AUDIENCES: Final = 100
_MAX_AGE: Final = timedelta(days=3650)
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
    prefix: what the sender writes before the token: `Bearer ` or nothing
    field: the path of a JSON body at which the token is, with an empty `header`; nothing else in the body is proven
    detached: the token's payload is the body, which it leaves out; its header stands for its claims
    issuers: what `iss` may be; not looked at if empty
    audiences: what `aud` must name one of; not looked at if empty
    body_hash: the claim with the body's hash and its spelling; `hash` is SHA-256 unless said otherwise; with
        `hash_is_optional` a delivery without a body needs none
    url: the claim that must name our URL, and how: as it is, or its SHA-256 in hex
    needs: the claims of time that must be there (`exp`, `nbf`, `iat`); those that are there always count
    leeway: how far our clocks may differ; max_age: how old `iat` may be, where the sender sets no end
    lifetime: how long the sender's tokens live, for tests
    longest: how far ahead `exp` may be, and how old `iat` of a token without `exp`
    jwks: the URL of the sender's JWK set, fetched where a source has no secret; `verify_by_set` takes what was fetched
    more: what else must hold: raises Rejected
    """

    header: str = "authorization"
    prefix: Literal["Bearer ", ""] = ""
    field: str = ""
    detached: bool = False
    algorithms: tuple[Alg, ...] = ("HS256",)
    issuers: tuple[str, ...] = ()
    audiences: tuple[str, ...] = ()
    body_hash: tuple[str, Encoding] | None = None
    hash: str = "sha256"
    hash_is_optional: bool = False
    url: tuple[str, Literal["plain", "sha256"]] | None = None
    needs: tuple[str, ...] = ()
    leeway: timedelta = timedelta(0)
    max_age: timedelta | None = None
    lifetime: timedelta = timedelta(minutes=5)
    longest: timedelta | None = None
    secret: Codec = "raw"  # noqa: S105  a codec's name
    jwks: str = ""
    more: Callable[[Mapping[str, Any], Delivery], None] = dataclass_field(default=lambda _, __: None)

    def __post_init__(self) -> None:
        self.header = self.header.lower()

    @property
    def proof(self) -> tuple[str, ...]:
        """The place of the token; `$` stands for the whole body."""
        return (f"header:{self.header}" if self.header else self.field or "$",)

    @property
    def tolerance(self) -> timedelta | None:
        """How far a token's time may be from ours, None where its time is not looked at."""
        return self.max_age or (self.lifetime if self.needs else None)

    @property
    def signs_body(self) -> bool | None:
        """True where the token holds the body's hash or is the body, None where only `more` could tell."""
        return True if self.body_hash or not self.header or self.detached else None

    @property
    def in_body(self) -> bool:
        """Whether the token is the body, or in it."""
        return not self.header

    @property
    def key_algorithm(self) -> Algorithm | None:
        """The algorithm of the sender's key, None where a secret is shared."""
        return jws.algorithm_of(self.algorithms[0])

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a secret or key of this sender looks like."""
        if jws.is_shared(self.algorithms[0]):
            self._key(secret)
        else:
            jws.expect_keys(secret, self.algorithms)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` if its token is signed and speaks of it. Raises: Rejected."""
        if jws.is_shared(self.algorithms[0]):
            self.check(delivery, self.keys(secrets), now)
        else:
            self.verify_by_set(delivery, secrets, now)

    def verify_by_set(
        self, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None
    ) -> None:
        """Accept `delivery` if a key of `secrets`, or of the set, signed its token. Raises: Rejected, KeyNeeded."""
        source = jws.KeySource(secrets, self.jwks, keys)
        source.expect_usable(self.algorithms)
        token = self.token(delivery)
        public = [name for name in self.algorithms if not jws.is_shared(name)]
        algorithm = next((name for name in public if name == token.header.get("alg")), None)
        if algorithm is None and source.is_fetched:
            raise Rejected(Reason.BAD_SIGNATURE, f"the token is not signed by {' or '.join(self.algorithms)}")
        named = token.header.get("kid")
        known = jws.known_keys(source, named, algorithm or self.algorithms[0])
        if source.is_fetched and named is None and not jws.is_signed(token, known, self.algorithms):
            raise KeyNeeded(self.jwks)  # a key without a name may be one that came since
        self.check(delivery, known, now)

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
        if self.field:
            text = json_paths.find(json_body(delivery), json_paths.parse(self.field))
            return jws.read(
                text if isinstance(text, str) else "", f"{self.field} of the body", Reason.BAD_BODY
            )
        if not self.header:
            return jws.read(text_of(delivery.body), "the body", Reason.BAD_BODY)
        name, value = header_of(delivery.headers, (self.header,))
        start = len(_BEARER) if value[: len(_BEARER)].lower() == _BEARER else 0
        text = value[start:].strip(" ")
        return (
            jws.read_detached(text, delivery.body, f"header {name}")
            if self.detached
            else jws.read(text, f"header {name}")
        )

    def said(self, delivery: Delivery) -> dict[str, Any]:
        """Return the claims of a token that is, or is in, the body: for `one_event(read=…)`. Raises: Rejected."""
        return self.token(delivery).claims

    def check(self, delivery: Delivery, keys: Sequence[Key], now: datetime) -> dict[str, Any]:
        """Return the claims of the token, which one of `keys` signed, which is of this delivery and of this time.

        Raises: Rejected.
        """
        token = self.token(delivery)
        jws.expect_authentic(token, keys, self.algorithms)
        claims = token.claims
        if self.issuers and claims.get("iss") not in self.issuers:
            raise Rejected(Reason.BAD_SIGNATURE, "the token's issuer is another")
        given = claims.get("aud")
        if self.audiences and not {*self.audiences}.intersection(_texts(given)):
            raise Rejected(Reason.BAD_SIGNATURE, "the token is for another audience")
        self._check_body(claims, delivery.body)
        self._check_url(claims, delivery.url)
        self.more(claims, delivery)
        self._check_times(claims, now.timestamp())
        return claims

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return the token's header, none if it is in the body. Raises: ValueError for a secret that can't sign."""
        if not self.header:
            return {}
        claims = self.claims(body, now, **options)
        key = jws.signing_key(secret, self.secret, self.algorithms[0])
        if self.detached:
            times = {name: claims[name] for name in self.needs}
            return {self.header: self.prefix + jws.make_detached(body, key, self.algorithms[0], times)}
        return {self.header: self.prefix + jws.make(claims, key, self.algorithms[0])}

    def deliver(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        """Return a delivery whose body is, or holds, a token of what `body` says. Raises: ValueError as `sign` does."""
        text = body.decode("utf-8", "replace")
        with suppress(Rejected):
            inner = json_paths.find(parse_json(text), json_paths.parse(self.field)) if self.field else text
            text = json.dumps(jws.read(inner, "it").claims) if isinstance(inner, str) else text
        told = signature_in_body.json_or_empty(text.encode())
        claims = (told if isinstance(told, dict) else {}) | self.claims(body, now, **options)
        if isinstance(told, dict) and "jti" in told:
            claims["jti"] = told["jti"]
        key = jws.signing_key(secret, self.secret, self.algorithms[0])
        token = jws.make(claims, key, self.algorithms[0])
        headers = {
            "content-type": "application/json" if self.field else "application/jwt",
            **options.get("headers", {}),
        }
        made = json.dumps(json_paths.put(None, json_paths.parse(self.field), token)) if self.field else token
        return Delivery(options.get("method", "POST"), options.get("url", ""), headers, made.encode())

    def claims(self, body: bytes, now: datetime, **options: Unpack[SignOptions]) -> dict[str, Any]:
        """Return what the sender would say of `body` at `now`."""
        seconds, spread = int(now.timestamp()), int((self.lifetime - self.leeway).total_seconds())
        times = {"iat": seconds, "nbf": seconds - spread, "exp": seconds + spread}
        said_times = times if "exp" in self.needs else self.needs
        claims: dict[str, Any] = {name: times[name] for name in said_times}
        claims["jti"] = options.get("event_id") or made_id(body)
        if self.issuers:
            claims["iss"] = self.issuers[0]
        if self.audiences:
            claims["aud"] = self.audiences[0]
        if self.body_hash and (body or not self.hash_is_optional):
            digest = hashlib.new(self.hash, body).digest()
            claims[self.body_hash[0]] = speller(self.body_hash[1], len(digest)).spell(digest)
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
        digest = hashlib.new(self.hash, body).digest()
        speak = speller(encoding, len(digest))
        folded = speak.fold(given) if isinstance(given, str) else None
        if folded is None or not hmac.compare_digest(folded, speak.folded(digest)):
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
            raise Rejected(Reason.STALE, "the token is no longer valid", _age(now - times["exp"] + 1))
        if self.longest:
            left = times["exp"] - now if times["exp"] is not None else 0
            age = now - times["iat"] if times["iat"] is not None and times["exp"] is None else 0
            if max(left, age) > self.longest.total_seconds():
                raise Rejected(Reason.STALE, "the token is good for too long")
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
            said = "the token was issued too long ago, or in the future"
            raise Rejected(Reason.STALE, said, _age(now - times["iat"]))


def _age(seconds: float) -> timedelta | None:
    return timedelta(seconds=seconds) if 0 <= seconds < _MAX_AGE.total_seconds() else None


def _texts(value: object) -> list[str]:
    """Return a claim that is a text, or a list of texts."""
    listed = value[:_MAX_AUDIENCES] if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, str)]
