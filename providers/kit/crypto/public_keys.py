"""Public keys and what they verify: RSA (PKCS#1 v1.5), ECDSA on P-256, Ed25519; the key's kind is fixed by the scheme.

A key is text in one of these forms: PEM (a public key, a certificate, or a private key, of which only the
public half verifies), PEM or DER in base64, the 32 bytes of an Ed25519 key in hex or base64, or a JSON Web Key. PEM
on one line, as environment variables have it, is taken too. With a private key we can sign test deliveries.
"""

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import unhexlify
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509 import load_der_x509_certificate

from hookonce.providers import Reason, Rejected
from hookonce.providers.kit.crypto.signature_text import Encoding

Algorithm = Literal["rsa-sha256", "rsa-sha1", "ecdsa-sha256", "ecdsa-sha1", "ed25519"]
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | Ed25519PublicKey
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | Ed25519PrivateKey

_HASHES: Final[dict[str, type[hashes.SHA1 | hashes.SHA256]]] = {"sha1": hashes.SHA1, "sha256": hashes.SHA256}
_KINDS: Final[dict[str, tuple[type[Any], type[Any]]]] = {
    "rsa": (rsa.RSAPublicKey, rsa.RSAPrivateKey),
    "ecdsa": (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey),
    "ed25519": (Ed25519PublicKey, Ed25519PrivateKey),
}
_LOOKS: Final = {
    "rsa": "an RSA public key in PEM ('-----BEGIN PUBLIC KEY-----') or base64",
    "ecdsa": "a P-256 public key in PEM ('-----BEGIN PUBLIC KEY-----') or base64",
    "ed25519": "an Ed25519 public key: 32 bytes in hex or base64, or PEM",
}
_PEM: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----(.*?)-----END \1-----", re.DOTALL)
_SEED_BYTES: Final = 32


def key_kind(algorithm: Algorithm) -> str:
    """`rsa`, `ecdsa` or `ed25519`."""
    return algorithm.partition("-")[0]


def public_key(text: str, algorithm: Algorithm) -> PublicKey:
    """Return the key that verifies, from any of the forms above.

    Raises: ValueError with what a right key looks like, never with the key.
    """
    kind = key_kind(algorithm)
    public, private = _KINDS[kind]
    key = _loaded(text)
    found: Any = key.public_key() if isinstance(key, private) else key
    right_curve = not isinstance(found, ec.EllipticCurvePublicKey) or isinstance(found.curve, ec.SECP256R1)
    if not isinstance(found, public) or not right_curve:
        msg = f"the key is not usable; expected {_LOOKS[kind]}"
        raise ValueError(msg)
    usable: PublicKey = found
    return usable


def usable_keys(texts: Sequence[str], algorithm: Algorithm) -> list[PublicKey]:
    """Return the keys of all usable texts, in order."""
    keys = []
    for text in texts:
        with suppress(ValueError):
            keys.append(public_key(text, algorithm))
    return keys


def public_keys(texts: Sequence[str], algorithm: Algorithm) -> list[PublicKey]:
    """Like `usable_keys`. Raises: Rejected(no_secret) when there is none."""
    keys = usable_keys(texts, algorithm)
    if not keys:
        raise Rejected(Reason.NO_SECRET, f"no usable public key; expected {_LOOKS[key_kind(algorithm)]}")
    return keys


def verifies(key: PublicKey, algorithm: Algorithm, signature: bytes, message: bytes) -> bool:
    """Whether `signature` (ECDSA in DER) is right; a key of another kind verifies nothing."""
    kind, _, digest = algorithm.partition("-")
    try:
        if kind == "rsa" and isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, padding.PKCS1v15(), _HASHES[digest]())
        elif kind == "ecdsa" and isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, message, ec.ECDSA(_HASHES[digest]()))
        elif kind == "ed25519" and isinstance(key, Ed25519PublicKey):
            key.verify(signature, message)
        else:
            return False
    except (InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def expect_signature(
    keys: Sequence[PublicKey], algorithm: Algorithm, signature: bytes, message: bytes
) -> None:
    """Accept if one of `keys` made `signature`. Raises: Rejected(bad_signature)."""
    if not any(verifies(key, algorithm, signature, message) for key in keys):
        raise Rejected(Reason.BAD_SIGNATURE, "no key of this source made the signature of this delivery")


def signature_of(text: str, algorithm: Algorithm, message: bytes) -> bytes:
    """Return the signature by a private key, the same each time. Raises: ValueError for a key that can't sign."""
    kind, _, digest = algorithm.partition("-")
    key = _loaded(text)
    if kind == "rsa" and isinstance(key, rsa.RSAPrivateKey):
        return key.sign(message, padding.PKCS1v15(), _HASHES[digest]())
    if kind == "ecdsa" and isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(message, ec.ECDSA(_HASHES[digest](), deterministic_signing=True))
    if kind == "ed25519" and isinstance(key, Ed25519PrivateKey):
        return key.sign(message)
    msg = "a public key can't sign; to try the source out, put a private key of your own in its place"
    raise ValueError(msg)


def decode(text: str, encoding: Encoding) -> bytes | None:
    """Return the bytes of a signature, None unless `text` is their one spelling (hex in any case, padding optional)."""
    try:
        if encoding == "hex":
            return unhexlify(text.encode("ascii"))
        plain = text.rstrip("=")
        given = (plain + "=" * (-len(plain) % 4)).encode("ascii")
        raw = b64decode(given, altchars=b"-_" if encoding == "base64url" else None, validate=True)
        spelled = b64encode(raw) if encoding == "base64" else urlsafe_b64encode(raw)
    except ValueError:
        return None
    return raw if raw and spelled == given else None


def signature_in(name: str, text: str, encoding: Encoding) -> bytes:
    """Return the bytes of the signature in header `name`. Raises: Rejected(bad_header)."""
    signature = decode(text, encoding)
    if not signature:
        raise Rejected(Reason.BAD_HEADER, f"header {name} holds no signature in {encoding}")
    return signature


def jwk(data: Any) -> PublicKey | PrivateKey | None:  # noqa: ANN401  whatever the JSON held
    """Return the key of a JSON Web Key (RFC 7517), None for what is none, or of a kind we do not use."""
    try:
        number = {name: int.from_bytes(_b64url(data[name])) for name in ("n", "e") if name in data}
        if data["kty"] == "RSA":
            return rsa.RSAPublicNumbers(number["e"], number["n"]).public_key()
        point = {name: _b64url(data[name]) for name in ("x", "y") if name in data}
        if data["kty"] == "EC" and data["crv"] == "P-256":
            x, y = int.from_bytes(point["x"]), int.from_bytes(point["y"])
            return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        if data["kty"] == "OKP" and data["crv"] == "Ed25519":
            return Ed25519PublicKey.from_public_bytes(point["x"])
    except (LookupError, TypeError, ValueError, AttributeError):
        pass
    return None


def _b64url(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@lru_cache(maxsize=256)
def _loaded(text: str) -> Any:  # noqa: ANN401  a key of any kind, or None
    """Whatever key the text holds, None for none; ValueError never leaves with a part of it."""
    stripped = text.strip()
    readers: tuple[Callable[[str], Any], ...] = (_pem, _json, _raw, _der)
    for read in readers:
        with suppress(ValueError, TypeError, UnsupportedAlgorithm, RecursionError):
            key = read(stripped)
            if key is not None:
                return key
    return None


def _pem(text: str) -> Any:  # noqa: ANN401
    block = _PEM.search(text.replace("\\n", "\n"))
    if block is None:
        return None
    der = b64decode("".join(block[2].split()), validate=True)
    if block[1] == "CERTIFICATE":
        return load_der_x509_certificate(der).public_key()
    if block[1].endswith("PRIVATE KEY"):
        return serialization.load_der_private_key(der, password=None)
    return serialization.load_der_public_key(der)


def _json(text: str) -> Any:  # noqa: ANN401
    return jwk(json.loads(text)) if text.startswith("{") else None


def _raw(text: str) -> Any:  # noqa: ANN401
    raw = decode(text, "hex") or decode(text, "base64")
    return Ed25519PublicKey.from_public_bytes(raw) if raw and len(raw) == _SEED_BYTES else None


def _der(text: str) -> Any:  # noqa: ANN401
    der = b64decode("".join(text.split()), validate=True)
    return _pem(der.decode("ascii")) if der.startswith(b"-----") else serialization.load_der_public_key(der)
