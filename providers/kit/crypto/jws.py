"""Signed tokens (JWS, compact form): read, verified and made, as far as senders of webhooks use them.

The algorithm is the declaration's, never the token's choice: `none`, an HMAC made with a public key, and
anything else undeclared is refused. Keys that a token brings along (`jwk`, `jku`, `x5u`, `x5c`) are not looked
at, and critical extensions (`crit`) are refused, but for `b64` (RFC 7797) of a detached token, whose payload is the
body. Segments must be spelled as base64url spells them.
"""

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from hookonce.providers import KeyNeeded, Reason, Rejected
from hookonce.providers.kit.crypto import public_keys
from hookonce.providers.kit.crypto.fetched_keys import Documents, fetched
from hookonce.providers.kit.crypto.public_keys import PublicKey
from hookonce.providers.kit.crypto.secret_keys import Codec, key_of
from hookonce.providers.kit.crypto.signature_text import speller
from hookonce.providers.kit.reading.bodies import parse_json

Alg = Literal[
    "HS256",
    "HS384",
    "HS512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
]
Key = bytes | PublicKey
"""The bytes of a shared secret, or a public key; each fits its own algorithms only."""

_HMACS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
_PUBLIC: Final[dict[str, public_keys.Algorithm]] = {
    "RS256": "rsa-sha256",
    "RS384": "rsa-sha384",
    "RS512": "rsa-sha512",
    "PS256": "rsa-pss-sha256",
    "PS384": "rsa-pss-sha384",
    "PS512": "rsa-pss-sha512",
    "ES256": "ecdsa-sha256",
    "ES384": "ecdsa-sha384",
    "ES512": "ecdsa-sha512",
    "EdDSA": "ed25519",
}
ALGS: Final[tuple[Alg, ...]] = tuple(Alg.__args__)  # type: ignore[attr-defined]
_ECDSA_SIZES: Final = {"ES256": 64, "ES384": 96, "ES512": 132}
_MAX_KEYS: Final = 16
"""As many keys of one set as are tried: a set has a few, and one with thousands would only cost time."""
_MAX_TOKEN_LENGTH: Final = 65_536


class Token(NamedTuple):
    """A token that was read and not yet verified."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


def read(text: str, where: str, fault: Reason = Reason.BAD_HEADER) -> Token:
    """Take a token apart. Raises: Rejected(`fault`), naming `where` it stood."""
    segments = text.split(".", 3) if len(text) <= _MAX_TOKEN_LENGTH else []
    raw = [public_keys.decode(segment, "base64url") if "=" not in segment else None for segment in segments]
    if len(raw) != 3 or not all(raw):  # noqa: PLR2004  header, claims, signature
        raise Rejected(fault, f"{where} holds no signed token")
    try:
        header, claims = (parse_json((part or b"").decode()) for part in raw[:2])
    except (Rejected, UnicodeDecodeError):
        raise Rejected(fault, f"{where} holds a token that is not JSON") from None
    if not isinstance(header, dict) or not isinstance(claims, dict) or "crit" in header:
        raise Rejected(fault, f"{where} holds a token of an unknown kind")
    return Token(header, claims, f"{segments[0]}.{segments[1]}".encode(), raw[2] or b"")


def read_detached(text: str, body: bytes, where: str) -> Token:
    """Take a token apart that has `body` as its payload and nothing in its middle (RFC 7515, appendix F).

    The header stands for the claims. Raises: Rejected(bad_header).
    """
    segments = text.split(".", 3) if len(text) <= _MAX_TOKEN_LENGTH else []
    raw = [public_keys.decode(segment, "base64url") if "=" not in segment else None for segment in segments]
    if len(raw) != 3 or segments[1] or not raw[0] or not raw[2]:  # noqa: PLR2004  header, nothing, signature
        raise Rejected(Reason.BAD_HEADER, f"{where} holds no detached token")
    try:
        header = parse_json(raw[0].decode())
    except (Rejected, UnicodeDecodeError):
        raise Rejected(Reason.BAD_HEADER, f"{where} holds a token that is not JSON") from None
    if not isinstance(header, dict) or (header.get("crit"), header.get("b64", True)) not in _DETACHED:
        raise Rejected(Reason.BAD_HEADER, f"{where} holds a token of an unknown kind")
    payload = _b64url(body).encode() if header.get("b64", True) else body
    return Token(header, header, segments[0].encode() + b"." + payload, raw[2])


_DETACHED: Final[tuple[tuple[object, object], ...]] = ((None, True), (["b64"], False), (["b64"], True))


def expect_authentic(token: Token, keys: Sequence[Key], algorithms: Sequence[Alg]) -> None:
    """Accept `token` if one of `keys` signed it by one of `algorithms`. Raises: Rejected(bad_signature)."""
    algorithm = next((name for name in algorithms if name == token.header.get("alg")), None)
    if algorithm is None:
        raise Rejected(Reason.BAD_SIGNATURE, f"the token is not signed by {' or '.join(algorithms)}")
    if not is_signed(token, keys, algorithms):
        raise Rejected(Reason.BAD_SIGNATURE, "no key of this source signed the token")


def is_signed(token: Token, keys: Sequence[Key], algorithms: Sequence[Alg]) -> bool:
    """Whether one of `keys` signed `token` by one of `algorithms`."""
    algorithm = next((name for name in algorithms if name == token.header.get("alg")), None)
    return algorithm is not None and any(_made(token, key, algorithm) for key in keys)


def _made(token: Token, key: Key, algorithm: Alg) -> bool:
    if algorithm in _HMACS:
        right = isinstance(key, bytes) and hmac.digest(key, token.signed, _HMACS[algorithm])
        return bool(right) and hmac.compare_digest(right or b"", token.signature)
    signature = token.signature
    if algorithm in _ECDSA_SIZES:
        if len(signature) != _ECDSA_SIZES[algorithm]:
            return False
        signature = as_der(signature)
    return not isinstance(key, bytes) and public_keys.verifies(
        key, _PUBLIC[algorithm], signature, token.signed
    )


def as_der(signature: bytes) -> bytes:
    """Return an ECDSA signature in DER, of one that is two numbers of the same size."""
    half = len(signature) // 2
    return encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))


def as_numbers(der: bytes, size: int) -> bytes:
    """Return an ECDSA signature as two numbers, `size` bytes in all, of one in DER."""
    return b"".join(number.to_bytes(size // 2) for number in decode_dss_signature(der))


def make(
    claims: Mapping[str, object], secret: bytes | str, algorithm: Alg, header: Mapping[str, object] = {}
) -> str:
    """Return a token, signed with a secret's bytes or the text of a private key. Raises: ValueError."""
    segments = [_segment({"alg": algorithm, "typ": "JWT", **header}), _segment(claims)]
    return ".".join([*segments, _signature(".".join(segments).encode(), secret, algorithm)])


def make_detached(body: bytes, secret: bytes | str, algorithm: Alg, header: Mapping[str, object] = {}) -> str:
    """Return a token with `body` as its payload, which it leaves out. Raises: ValueError."""
    head = _segment({"alg": algorithm, **header})
    payload = _b64url(body).encode() if header.get("b64", True) else body
    return f"{head}..{_signature(head.encode() + b'.' + payload, secret, algorithm)}"


def _signature(signed: bytes, secret: bytes | str, algorithm: Alg) -> str:
    if isinstance(secret, bytes):
        signature = hmac.digest(secret, signed, _HMACS[algorithm])
    else:
        signature = public_keys.signature_of(secret, _PUBLIC[algorithm], signed)
    if algorithm in _ECDSA_SIZES:
        signature = as_numbers(signature, _ECDSA_SIZES[algorithm])
    return _b64url(signature)


def _segment(data: Mapping[str, object]) -> str:
    return _b64url(json.dumps(data, separators=(",", ":")).encode())


def _b64url(raw: bytes) -> str:
    return speller("base64url", len(raw)).spell(raw)


def keys_in(document: bytes, kid: object, algorithm: str | None = None) -> list[PublicKey]:
    """Return the public keys of a fetched JWK set (or of one JWK, bare or under `key`): those with this key id.

    A token without a key id may be signed by any of them. Keys that have ended (Plaid's `expired_at`), that say they
    are for another `algorithm`, or not for signatures, are not given, nor more than 16 of the others.
    """
    try:
        data = parse_json(document.decode())
    except (Rejected, UnicodeDecodeError):
        return []
    listed = data.get("keys", [data.get("key", data)]) if isinstance(data, dict) else None
    found = [key for key in listed if isinstance(key, dict)] if isinstance(listed, list) else []
    current = [key for key in found if not key.get("expired_at")]
    chosen = [key for key in current if kid is None or key.get("kid") == kid]
    if algorithm is not None:
        chosen = [key for key in chosen if key.get("alg", algorithm) == algorithm]
    usable = (key for key in map(public_keys.jwk, chosen) if key is not None)
    return list(islice(usable, _MAX_KEYS))  # type: ignore[arg-type]


def fetched_keys(
    url: str, documents: Documents, patterns: Sequence[str], kid: object, post: bytes | None = None
) -> list[PublicKey]:
    """Return the public keys with this id in the key set at `url`; never none.

    Raises: KeyNeeded where the set is not there, or does not know the id; Rejected(bad_signature) for another URL.
    """
    found = keys_in(fetched(url, documents, patterns, post), kid)
    if not found:
        raise KeyNeeded(url, post)
    return found


class KeySource(NamedTuple):
    """The place of a source's keys: its secrets, or else a set at `url` that is among the fetched documents."""

    secrets: Sequence[str]
    url: str = ""
    documents: Documents = None

    @property
    def is_fetched(self) -> bool:
        """Whether the keys are those of the set."""
        return bool(self.url) and not any(secret.strip() for secret in self.secrets)

    def expect_usable(self, algorithms: Sequence[Alg]) -> None:
        """Raises: Rejected(no_secret) where the keys are secrets, and none is a key for one of `algorithms`."""
        is_usable = (_is_usable(secret, name) for secret in self.secrets for name in algorithms)
        if not self.is_fetched and not any(is_usable):
            looks = public_keys.looks(_PUBLIC[algorithms[0]])
            raise Rejected(Reason.NO_SECRET, f"no usable public key; expected {looks}")


def known_keys(source: KeySource, kid: object, algorithm: Alg) -> list[PublicKey]:
    """Return the keys of `source` that may have signed by `algorithm`; of a set those with this key id.

    A secret is a public key in any form, or a JWK set. Raises: KeyNeeded where the set does not know the id,
    Rejected(bad_signature) for one that is no text.
    """
    if kid is not None and not isinstance(kid, str):
        raise Rejected(Reason.BAD_SIGNATURE, "the name of the key is no text")
    if source.is_fetched:
        document = fetched(source.url, source.documents, (re.escape(source.url),))
        if not (found := keys_in(document, kid, algorithm)):
            raise KeyNeeded(source.url)
        return found
    return [key for secret in source.secrets for key in _pinned(secret, kid, algorithm)]


def expect_keys(secret: str, algorithms: Sequence[Alg]) -> None:
    """Raises: ValueError unless `secret` is a public key for one of `algorithms`, or a JWK set with one."""
    if not any(_is_usable(secret, algorithm) for algorithm in algorithms):
        forms = " or ".join(dict.fromkeys(public_keys.looks(_PUBLIC[algorithm]) for algorithm in algorithms))
        msg = f"the key is not usable; expected {forms}, a JWK or a JWK set"
        raise ValueError(msg)


def _is_usable(secret: str, algorithm: Alg) -> bool:
    return bool(_pinned(secret, None, algorithm))


def _pinned(secret: str, kid: str | None, algorithm: Alg) -> list[PublicKey]:
    """Return the keys that a secret holds, of a set those with this key id."""
    text = secret.strip()
    if text.startswith("{") and '"keys"' in text:
        found = keys_in(text.encode(), kid, algorithm)
    else:
        found = public_keys.usable_keys([text], _PUBLIC[algorithm])
    return [key for key in found if public_keys.fits(key, _PUBLIC[algorithm])]


def alg_of(algorithm: public_keys.Algorithm) -> Alg | None:
    """Return what tokens call an algorithm, None for one with SHA-1."""
    return next((name for name in ALGS if _PUBLIC.get(name) == algorithm), None)


def is_shared(algorithm: Alg) -> bool:
    """Whether tokens of this algorithm are signed with a shared secret."""
    return algorithm in _HMACS


def verifying_key(secret: str, codec: Codec, algorithm: Alg) -> Key:
    """Read what a token of this algorithm is verified with. Raises: ValueError with what it looks like."""
    if algorithm in _HMACS:
        if public_keys.is_public_key(secret):
            msg = (
                f"a public key is no secret, and {algorithm} would take it for one; expected a shared secret"
            )
            raise ValueError(msg)
        return key_of(secret, codec)
    return public_keys.public_key(secret, _PUBLIC[algorithm])


def algorithm_of(alg: Alg) -> public_keys.Algorithm | None:
    """Return the algorithm of a token's public keys, None where a secret is shared."""
    return _PUBLIC.get(alg)


def signing_key(secret: str, codec: Codec, algorithm: Alg) -> bytes | str:
    """Read what `make` signs with: a shared secret's bytes, or a private key as it is. Raises: ValueError."""
    return key_of(secret, codec) if algorithm in _HMACS else secret
