"""Secrets as they are configured, turned into the keys that sign.

The codec is a fact about the sender: most use the text as it is, Stripe even with its `whsec_`, while
Standard Webhooks takes the same prefix off and decodes the rest.
"""

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

from hookonce.providers import Reason, Rejected

Codec = Literal["raw", "hex", "base64", "whsec"]
CODECS: Final[tuple[Codec, ...]] = ("raw", "hex", "base64", "whsec")
_LOOKS: Final = {
    "raw": "any text that is not blank or a bare prefix",
    "hex": "an even number of hex digits",
    "base64": "base64 text",
    "whsec": "'whsec_' followed by base64 text",
}
MIN_WHSEC_BYTES: Final = 16
"""Standard Webhooks asks for 24 bytes or more; what is shorter than this was cut off or made up."""


def key_of(secret: str, codec: Codec) -> bytes:
    """Return the bytes that `secret` stands for; never empty.

    Raises: ValueError with what a right secret looks like, never with the secret.
    """
    try:
        key = _decode(secret, codec) if secret.strip().removeprefix("whsec_") else b""
    except (ValueError, binascii.Error):
        key = b""
    if not key:
        msg = f"the secret is not usable; expected {_LOOKS[codec]}"
        raise ValueError(msg)
    return key


def check_key(secret: str, codec: Codec) -> None:
    """Raises: ValueError with what a right secret looks like, for one that is cut off too."""
    key = key_of(secret, codec)
    if codec == "whsec" and len(key) < MIN_WHSEC_BYTES:
        msg = f"its key is {len(key)} bytes long; expected {_LOOKS[codec]} of {MIN_WHSEC_BYTES} bytes or more"
        raise ValueError(msg)


def _decode(secret: str, codec: Codec) -> bytes:
    if codec == "raw":
        return secret.encode("utf-8", "surrogateescape")  # a secret of bytes, read from the environment
    secret = secret.strip()
    if codec == "hex":
        return binascii.unhexlify(secret.encode("ascii"))  # unlike bytes.fromhex it takes no spaces
    text = secret.removeprefix("whsec_") if codec == "whsec" else secret
    return b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)


def as_whsec(secret: str) -> str:
    """Return the `whsec_` form of a secret whose text itself is the key; empty for a blank one or a bare prefix."""
    try:
        return "whsec_" + b64encode(key_of(secret, "raw")).decode()
    except ValueError:
        return ""


def keys_of(secrets: Sequence[str], codec: Codec) -> Sequence[bytes]:
    """Return the keys of all usable secrets, in order; a blank or undecodable one never opens anything.

    Raises: Rejected(no_secret) when none is left.
    """
    return _keys(tuple(secrets), codec)


@lru_cache(maxsize=256)
def _keys(secrets: tuple[str, ...], codec: Codec) -> Sequence[bytes]:
    keys = []
    for secret in secrets:
        try:
            keys.append(key_of(secret, codec))
        except ValueError:
            continue
    if not keys:
        raise Rejected(Reason.NO_SECRET, f"no usable signing secret; expected {_LOOKS[codec]}")
    return keys


def mac_of(key: bytes, message: bytes, hash: str) -> bytes:  # noqa: A002  the vocabulary's
    """Return the HMAC of a message, from a key that is hashed once.

    `hmac.digest` lets go of the interpreter's lock for each message, and a waiting thread takes it. Here only a message
    of more than 2 KB does that (CPython's HASHLIB_GIL_MINSIZE).
    """
    made = _begun(key, hash).copy()
    made.update(message)
    return made.digest()


@lru_cache(maxsize=256)
def _begun(key: bytes, hash: str) -> hmac.HMAC:  # noqa: A002
    return hmac.new(key, digestmod=hash)


def wrong_secret(secret: str) -> str:
    """Return a secret of the same form that is not `secret`: one character in its middle is another."""
    middle = len(secret) // 2 + 2
    replacement = "B" if secret[middle - 1 : middle].upper() == "A" else "A"
    return secret[: middle - 1] + replacement + secret[middle:]
