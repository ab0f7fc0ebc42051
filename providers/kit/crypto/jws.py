"""Signed tokens (JWS, compact form): read, verified and made, as far as senders of webhooks use them.

The algorithm is the declaration's, never the token's choice: `none`, an HMAC made with a public key, and
anything else undeclared is refused. Keys that a token brings along (`jwk`, `jku`, `x5u`, `x5c`) are not looked
at, and critical extensions (`crit`) are refused. Segments must be spelled as base64url spells them.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from hookonce.providers import KeyNeeded, Reason, Rejected
from hookonce.providers.kit.crypto import public_keys
from hookonce.providers.kit.crypto.fetched_keys import Documents, fetched
from hookonce.providers.kit.crypto.public_keys import PublicKey
from hookonce.providers.kit.crypto.secret_keys import Codec, key_of
from hookonce.providers.kit.crypto.signature_text import speller
from hookonce.providers.kit.reading.bodies import parse_json

Alg = Literal["HS256", "HS384", "HS512", "RS256", "ES256", "EdDSA"]
Key = bytes | PublicKey
"""The bytes of a shared secret, or a public key; each fits its own algorithms only."""

_HMACS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}
_PUBLIC: Final[dict[str, public_keys.Algorithm]] = {
    "RS256": "rsa-sha256",
    "ES256": "ecdsa-sha256",
    "EdDSA": "ed25519",
}
_ES256_SIZE: Final = 64
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


def expect_authentic(token: Token, keys: Sequence[Key], algorithms: Sequence[Alg]) -> None:
    """Accept `token` if one of `keys` signed it by one of `algorithms`. Raises: Rejected(bad_signature)."""
    algorithm = next((name for name in algorithms if name == token.header.get("alg")), None)
    if algorithm is None:
        raise Rejected(Reason.BAD_SIGNATURE, f"the token is not signed by {' or '.join(algorithms)}")
    if not any(_made(token, key, algorithm) for key in keys):
        raise Rejected(Reason.BAD_SIGNATURE, "no key of this source signed the token")


def _made(token: Token, key: Key, algorithm: Alg) -> bool:
    if algorithm in _HMACS:
        right = isinstance(key, bytes) and hmac.digest(key, token.signed, _HMACS[algorithm])
        return bool(right) and hmac.compare_digest(right or b"", token.signature)
    signature = token.signature
    if algorithm == "ES256":
        if len(signature) != _ES256_SIZE:
            return False
        r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
        signature = encode_dss_signature(r, s)
    return not isinstance(key, bytes) and public_keys.verifies(
        key, _PUBLIC[algorithm], signature, token.signed
    )


def make(
    claims: Mapping[str, object], secret: bytes | str, algorithm: Alg, header: Mapping[str, object] = {}
) -> str:
    """Return a token, signed with a secret's bytes or the text of a private key. Raises: ValueError."""
    segments = [_segment({"alg": algorithm, "typ": "JWT", **header}), _segment(claims)]
    signed = ".".join(segments).encode()
    if isinstance(secret, bytes):
        signature = hmac.digest(secret, signed, _HMACS[algorithm])
    else:
        signature = public_keys.signature_of(secret, _PUBLIC[algorithm], signed)
    if algorithm == "ES256":
        signature = b"".join(number.to_bytes(32) for number in decode_dss_signature(signature))
    return ".".join([*segments, _b64url(signature)])


def _segment(data: Mapping[str, object]) -> str:
    return _b64url(json.dumps(data, separators=(",", ":")).encode())


def _b64url(raw: bytes) -> str:
    return speller("base64url", len(raw)).spell(raw)


def keys_in(document: bytes, kid: object) -> list[PublicKey]:
    """Return the public keys of a fetched JWK set (or of one JWK, bare or under `key`): those with this key id.

    A token without a key id may be signed by any of them. Keys that have ended (Plaid's `expired_at`) are not given.
    """
    try:
        data = parse_json(document.decode())
    except (Rejected, UnicodeDecodeError):
        return []
    listed = data.get("keys", [data.get("key", data)]) if isinstance(data, dict) else None
    found = [key for key in listed if isinstance(key, dict)] if isinstance(listed, list) else []
    current = [key for key in found if not key.get("expired_at")]
    chosen = [key for key in current if kid is None or key.get("kid") == kid]
    return [key for key in map(public_keys.jwk, chosen) if key is not None]  # type: ignore[misc]


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


def verifying_key(secret: str, codec: Codec, algorithm: Alg) -> Key:
    """Read what a token of this algorithm is verified with. Raises: ValueError with what it looks like."""
    if algorithm in _HMACS:
        return key_of(secret, codec)
    return public_keys.public_key(secret, _PUBLIC[algorithm])


def signing_key(secret: str, codec: Codec, algorithm: Alg) -> bytes | str:
    """Read what `make` signs with: a shared secret's bytes, or a private key as it is. Raises: ValueError."""
    return key_of(secret, codec) if algorithm in _HMACS else secret
