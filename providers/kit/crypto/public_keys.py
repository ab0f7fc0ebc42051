"""Public keys and what they verify: RSA (PKCS#1 v1.5, PSS), ECDSA, Ed25519; the key's kind is fixed by the scheme.

ECDSA is on P-256 with SHA-256 (or SHA-1), on P-384 with SHA-384 and on P-521 with SHA-512, as in signed tokens.

A key is text in one of these forms: PEM (a public key, a certificate, or a private key, of which only the
public half verifies), PEM or DER in base64, the 32 bytes of an Ed25519 key in hex or base64, or a JSON Web Key. PEM
on one line, as environment variables have it, is taken too. With a private key we can sign test deliveries.
"""

import hashlib
import json
import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import unhexlify
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509 import load_der_x509_certificate

from hookonce.providers import Reason, Rejected
from hookonce.providers.kit.crypto.signature_text import Encoding

Algorithm = Literal[
    "ed25519",
    "rsa-sha256",
    "rsa-sha384",
    "rsa-sha512",
    "rsa-sha1",
    "rsa-pss-sha256",
    "rsa-pss-sha384",
    "rsa-pss-sha512",
    "ecdsa-sha256",
    "ecdsa-sha384",
    "ecdsa-sha512",
    "ecdsa-sha1",
]
ALGORITHMS: Final[tuple[Algorithm, ...]] = tuple(
    name for name in get_args(Algorithm) if not name.endswith("sha1")
)
"""Those of today; SHA-1 is for senders that still use it."""
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | Ed25519PublicKey
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | Ed25519PrivateKey

_Hash = hashes.SHA1 | hashes.SHA256 | hashes.SHA384 | hashes.SHA512
_HASHES: Final[dict[str, type[_Hash]]] = {
    "sha1": hashes.SHA1,
    "sha256": hashes.SHA256,
    "sha384": hashes.SHA384,
    "sha512": hashes.SHA512,
}
_CURVES: Final[dict[str, type[ec.EllipticCurve]]] = {
    "sha1": ec.SECP256R1,
    "sha256": ec.SECP256R1,
    "sha384": ec.SECP384R1,
    "sha512": ec.SECP521R1,
}
_JWK_CURVES: Final[dict[object, type[ec.EllipticCurve]]] = {
    "P-256": ec.SECP256R1,
    "P-384": ec.SECP384R1,
    "P-521": ec.SECP521R1,
}
_RSA_BITS: Final = range(2048, 8193)
"""RFC 7518 has no smaller keys, since they can be factored, and a larger one would only cost time."""
_P: Final = 2**255 - 19
_ORDER_8: Final = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER: Final = frozenset((0, 1, _ORDER_8, _P - _ORDER_8, _P - 1, _P, _P + 1))
"""Points of Ed25519, without their sign, under which anybody can sign: all zeros, a placeholder, is one of them."""
_NEW_RSA_BITS: Final = 2048
_EXPONENT_BITS: Final = 32
_KINDS: Final[dict[str, tuple[type[Any], type[Any]]]] = {
    "rsa": (rsa.RSAPublicKey, rsa.RSAPrivateKey),
    "ecdsa": (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey),
    "ed25519": (Ed25519PublicKey, Ed25519PrivateKey),
}
_LOOKS: Final = {
    "rsa": "an RSA public key of 2048 bits or more in PEM ('-----BEGIN PUBLIC KEY-----') or base64",
    "ecdsa": "a {curve} public key in PEM ('-----BEGIN PUBLIC KEY-----') or base64",
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
    public, private = _KINDS[key_kind(algorithm)]
    key = _loaded(text)
    found: Any = key.public_key() if isinstance(key, private) else key
    if not isinstance(found, public) or not fits(found, algorithm):
        msg = f"the key is not usable; expected {looks(algorithm)}"
        raise ValueError(msg)
    usable: PublicKey = found
    return usable


def looks(algorithm: Algorithm) -> str:
    """Say what a key for `algorithm` looks like."""
    return _LOOKS[key_kind(algorithm)].format(
        curve=f"P-{_CURVES.get(_hash(algorithm), ec.SECP256R1)().key_size}"
    )


def fits(key: PublicKey, algorithm: Algorithm) -> bool:
    """Whether `key` is of the kind, and the size or curve, that `algorithm` needs, and not one that anybody has."""
    if not isinstance(key, _KINDS[key_kind(algorithm)][0]):
        return False
    if isinstance(key, ec.EllipticCurvePublicKey):
        return isinstance(key.curve, _CURVES[_hash(algorithm)])
    if isinstance(key, rsa.RSAPublicKey):
        return key.key_size in _RSA_BITS
    return int.from_bytes(key.public_bytes_raw(), "little") % 2**255 not in _SMALL_ORDER


def algorithms_of(text: str) -> tuple[Algorithm, ...]:
    """Return what a key, in any of the forms above, may verify, the usual one first; () for a text that is none."""
    found = []
    for name in ALGORITHMS:
        with suppress(ValueError):
            public_key(text, name)
            found.append(name)
    return tuple(found)


def is_public_key(text: str) -> bool:
    """Whether `text` is certainly a key and no shared secret: any 32 bytes could be an Ed25519 key."""
    return _loaded(text) is not None and not _is_raw(text)


def can_sign(text: str) -> bool:
    """Whether `text` holds a private key."""
    return isinstance(_loaded(text), PrivateKey)


def public_half(text: str) -> str:
    """Return the public half of a private key, in PEM: what a program that verifies is to know. Raises: ValueError."""
    key = _loaded(text)
    if not isinstance(key, PrivateKey):
        raise ValueError("that is no private key")  # noqa: TRY004  what the text holds
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return key.public_key().public_bytes(*form).decode()


def new_key(algorithm: Algorithm) -> str:
    """Return a new private key for `algorithm`, in PEM: for test deliveries, of which no sender knows."""
    key: PrivateKey
    if key_kind(algorithm) == "rsa":
        key = rsa.generate_private_key(public_exponent=65537, key_size=_NEW_RSA_BITS)
    elif key_kind(algorithm) == "ecdsa":
        key = ec.generate_private_key(_CURVES[_hash(algorithm)]())
    else:
        key = Ed25519PrivateKey.generate()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


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
        raise Rejected(Reason.NO_SECRET, f"no usable public key; expected {looks(algorithm)}")
    return keys


def verifies(key: PublicKey, algorithm: Algorithm, signature: bytes, message: bytes) -> bool:
    """Whether `signature` (ECDSA in DER) is right; a key of another kind verifies nothing."""
    if not fits(key, algorithm):
        return False
    try:
        if isinstance(key, rsa.RSAPublicKey):
            hashed = _HASHES[_hash(algorithm)]()
            key.verify(
                signature, message, _pss(hashed) if "-pss-" in algorithm else padding.PKCS1v15(), hashed
            )
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, message, ec.ECDSA(_HASHES[_hash(algorithm)]()))
        else:
            key.verify(signature, message)
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
    key = _loaded(text)
    right = isinstance(key, PrivateKey) and fits(key.public_key(), algorithm)
    if right and isinstance(key, rsa.RSAPrivateKey):
        if "-pss-" in algorithm:
            return _pss_signature(key, message, _hash(algorithm))
        return key.sign(message, padding.PKCS1v15(), _HASHES[_hash(algorithm)]())
    if right and isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(message, ec.ECDSA(_HASHES[_hash(algorithm)](), deterministic_signing=True))
    if right and isinstance(key, Ed25519PrivateKey):
        return key.sign(message)
    msg = f"the private key is of another kind; expected the private half of {looks(algorithm)}"
    if not isinstance(key, PrivateKey):
        msg = "a public key can't sign; to try the source out, put a private key of your own in its place"
    raise ValueError(msg)


def _hash(algorithm: Algorithm) -> str:
    return algorithm.rpartition("-")[2]


def _pss(hashed: _Hash) -> padding.PSS:
    return padding.PSS(padding.MGF1(hashed), padding.PSS.AUTO)


def _pss_signature(key: rsa.RSAPrivateKey, message: bytes, name: str) -> bytes:
    """Sign by RFC 8017 (8.1.1) with a salt that is made of the message: `cryptography` has random ones only.

    For test deliveries, which are the same each time; the time that it takes is not the same for each key.
    """

    def hashed(*parts: bytes) -> bytes:
        return hashlib.new(name, b"".join(parts)).digest()

    digest = hashed(message)
    size, bits = len(digest), key.key_size - 1
    length = -(-bits // 8)
    salt = hashed(b"salt of a test delivery", digest)
    own = hashed(bytes(8), digest, salt)
    block = bytes(length - 2 * size - 2) + b"\x01" + salt
    mask = b"".join(hashed(own, count.to_bytes(4)) for count in range(-(-len(block) // size)))[: len(block)]
    masked = int.from_bytes(block) ^ int.from_bytes(mask)
    kept = masked & ((1 << (len(block) * 8 - (8 * length - bits))) - 1)
    encoded = int.from_bytes(kept.to_bytes(len(block)) + own + b"\xbc")
    numbers = key.private_numbers()
    of_p, of_q = pow(encoded, numbers.dmp1, numbers.p), pow(encoded, numbers.dmq1, numbers.q)
    signature = of_q + numbers.q * (numbers.iqmp * (of_p - of_q) % numbers.p)  # RFC 8017, 5.1.2
    return signature.to_bytes(-(-key.key_size // 8))


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
    """Return the key of a JSON Web Key (RFC 7517), None for what is none, or not for signatures as we use them."""
    try:
        if data.get("use", "sig") != "sig" or "verify" not in data.get("key_ops", ["verify"]):
            return None
        number = {name: int.from_bytes(_b64url(data[name])) for name in ("n", "e") if name in data}
        if data["kty"] == "RSA":
            is_usual = number["n"].bit_length() in _RSA_BITS and number["e"].bit_length() <= _EXPONENT_BITS
            return rsa.RSAPublicNumbers(number["e"], number["n"]).public_key() if is_usual else None
        point = {name: _b64url(data[name]) for name in ("x", "y") if name in data}
        if data["kty"] == "EC" and data["crv"] in _JWK_CURVES:
            x, y = int.from_bytes(point["x"]), int.from_bytes(point["y"])
            return ec.EllipticCurvePublicNumbers(x, y, _JWK_CURVES[data["crv"]]()).public_key()
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
    raw = _raw_bytes(text)
    return Ed25519PublicKey.from_public_bytes(raw) if raw else None


def _is_raw(text: str) -> bool:
    return _raw_bytes(text.strip()) is not None


def _raw_bytes(text: str) -> bytes | None:
    raw = decode(text, "hex") or decode(text, "base64") or decode(text, "base64url")
    return raw if raw and len(raw) == _SEED_BYTES else None


def _der(text: str) -> Any:  # noqa: ANN401
    der = b64decode("".join(text.split()), validate=True)
    return _pem(der.decode("ascii")) if der.startswith(b"-----") else serialization.load_der_public_key(der)
