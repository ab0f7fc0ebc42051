"""Forms of signatures of unknown senders: their bytes show the algorithms that they could be of.

64 bytes are a signature by Ed25519 as well as an HMAC-SHA512, and of ECDSA on P-256 if it is two numbers; only the key
tells. A token says by itself how it is signed.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Final

from hookonce.providers import Rejected
from hookonce.providers.kit.crypto import jws
from hookonce.providers.kit.crypto.public_keys import Algorithm, decode
from hookonce.providers.kit.crypto.signature_text import ENCODINGS, Encoding, speller
from hookonce.providers.kit.http_file import Captured
from hookonce.providers.kit.schemes.public_key_signature import Form

_SIGNATURE: Final = re.compile(r"sign|hmac|jws|jwt|(?<![a-z])(sig|hash|digest)(?![a-z])")
SIGNED: Final = re.compile(r"(?<![A-Za-z_-])signature=", re.IGNORECASE)
"""A pair of a list that is in a header of another name, `Authorization: Signature keyId="k1",signature="…"`."""
_PART: Final = re.compile(r"""(?:[A-Za-z0-9_-]+[=:,])?\s*"?([A-Za-z0-9+/_-]{20,}={0,2})"?""")
_HMACS: Final = {16: "HMAC-MD5", 20: "HMAC-SHA1", 32: "HMAC-SHA256", 64: "HMAC-SHA512"}
_RSA_SIZES: Final = {256, 384, 512}
_RSA: Final[tuple[Algorithm, ...]] = (
    *("rsa-sha256", "rsa-sha512", "rsa-sha384"),
    *("rsa-pss-sha256", "rsa-pss-sha512", "rsa-pss-sha384"),
)
_NUMBERS: Final[Mapping[int, Algorithm]] = {64: "ecdsa-sha256", 96: "ecdsa-sha384", 132: "ecdsa-sha512"}
_DER: Final[tuple[tuple[range, Algorithm], ...]] = (
    (range(66, 73), "ecdsa-sha256"),
    (range(98, 105), "ecdsa-sha384"),
    (range(134, 142), "ecdsa-sha512"),
)
_SEQUENCE: Final = 0x30
_MAX_DEPTH: Final = 3
_ED25519_SIZE: Final = 64
_WORDS: Final = {
    "ed25519": "an Ed25519 signature",
    "ecdsa-sha256": "an ECDSA signature (P-256)",
    "ecdsa-sha384": "an ECDSA signature (P-384)",
    "ecdsa-sha512": "an ECDSA signature (P-521)",
    "rsa-sha256": "an RSA signature",
}


def token_in(text: str, body: bytes = b"") -> jws.Token | None:
    """Return the signed token that a text is, None for any other; one with nothing in its middle speaks of `body`."""
    with suppress(Rejected):
        token = jws.read_detached(text, body, "it") if ".." in text else jws.read(text, "it")
        return token if isinstance(token.header.get("alg"), str) else None
    return None


def bytes_of(text: str) -> Iterator[tuple[Encoding, bytes]]:
    """Yield the bytes of a signature, with each way in which `text` may spell them."""
    encodings: tuple[Encoding, ...] = (
        ("base64", "base64url") if len(text) % 4 == 0 else ("base64url", "base64")
    )
    if re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", text):
        encodings = ("hex",)
    for encoding in encodings:
        if raw := decode(text, encoding):
            yield encoding, raw
            return


def key_pair_algorithms(signature: bytes) -> Iterator[tuple[Algorithm, Form]]:
    """Yield the algorithms, with a key pair, that make signatures of this form, the likeliest first."""
    size = len(signature)
    if size == _ED25519_SIZE:
        yield "ed25519", "der"
    if size in _RSA_SIZES:
        yield from ((algorithm, "der") for algorithm in _RSA)
    for sizes, algorithm in _DER:
        if size in sizes and signature[0] == _SEQUENCE and signature[1] in {size - 2, 0x81}:
            yield algorithm, "der"
    if size in _NUMBERS:
        yield _NUMBERS[size], "numbers"


def described(request: Captured, masked: Collection[str] = ()) -> list[str]:
    """Say of each header that looks like a signature, and of a body that is a token, by what it could be signed.

    masked: names of headers whose value is left out of the file
    """
    hidden = {name.lower() for name in masked}
    said = []
    for name, value in request.lowered().items():
        text = value[7:] if value[:7].lower() == "bearer " else value
        if token := token_in(text, request.body):
            kept = f"; to have it verified, capture with --keep {name}" if name in hidden else ""
            said.append(f"header {name} is {_token(token, is_detached='..' in text)}{kept}")
        elif hashed := hash_of_body(value, request.body):
            said.append(f"header {name} holds the body's own {hashed}, which anybody can make: no signature")
        elif words := _words(value) if _SIGNATURE.search(name) or SIGNED.search(value) else "":
            said.append(f"header {name} holds {words}")
    for where, text in (("the body", request.body.decode("latin-1")), *texts_in(request.body)):
        if token := token_in(text):
            said.append(f"{where} is {_token(token, is_detached=False)}")
    return said


def texts_in(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield each text in the objects of a JSON body, as `texts_of` does."""
    with suppress(ValueError, RecursionError):
        yield from texts_of(json.loads(body))


def texts_of(data: object, at: str = "$", deep: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each text in objects, three deep, with its path."""
    for key, value in data.items() if isinstance(data, dict) and deep < _MAX_DEPTH else ():
        path = f"{at}.{key}" if re.fullmatch(r"[^.\[\]]+", key) else f"{at}['{key}']"
        if isinstance(value, str) and "'" not in key:
            yield path, value
        yield from texts_of(value, path, deep + 1)


def _token(token: jws.Token, *, is_detached: bool) -> str:
    kid = ", and names its key" if token.header.get("kid") is not None else ""
    kind = "a detached token (JWS) of the body" if is_detached else "a signed token (JWT)"
    return f"{kind}, signed by {token.header['alg']}{kid}"


def _words(value: str) -> str:
    for part in re.split(r"[,;]\s*", value):
        found = _PART.fullmatch(part.strip())
        for encoding, raw in bytes_of(found[1]) if found else ():
            kinds = [_WORDS[name] for name, _ in key_pair_algorithms(raw) if name in _WORDS]
            if len(raw) in _HMACS:
                kinds.append(f"an {_HMACS[len(raw)]}")
            if kinds:
                return f"{len(raw)} bytes in {encoding}: {' or '.join(dict.fromkeys(kinds))}"
    return ""


def hash_of_body(value: str, body: bytes) -> str:
    """Return the name of the hash of `body` that a header's value holds, empty for any other."""
    for name in ("sha256", "sha512", "sha1", "md5"):
        digest = hashlib.new(name, body, usedforsecurity=False).digest()
        if digest.hex() in value.lower() or b64encode(digest).decode().rstrip("=") in value:
            return {"sha256": "SHA-256", "sha512": "SHA-512", "sha1": "SHA-1", "md5": "MD5"}[name]
    return ""


def is_bound(value: str, body: bytes) -> bool:
    """Whether a header's value is a token that is good for this body alone: a signature, and no credential."""
    text = value[7:] if value[:7].lower() == "bearer " else value
    token = token_in(text, body)
    if token is None:
        return False
    return ".." in text or next(body_hashes(token, body), None) is not None


def body_hashes(token: jws.Token, body: bytes) -> Iterator[tuple[str, Encoding, str]]:
    """Yield each claim that is a hash of the body, with its spelling and the hash."""
    for name, value in token.claims.items():
        for hashed in ("sha256", "sha384", "sha512"):
            digest = hashlib.new(hashed, body).digest()
            is_padded = isinstance(value, str) and len(value) % 4 == 0
            for encoding in ENCODINGS if is_padded else ENCODINGS[::-1]:
                speak = speller(encoding, len(digest))
                if isinstance(value, str) and speak.fold(value) == speak.folded(digest):
                    yield name, encoding, hashed
