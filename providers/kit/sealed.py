"""Bodies that a sender encrypts: opened after they were verified, and stored open."""

import json
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from providers import Delivery, Rejected
from providers.kit.keys import keys_of
from providers.kit.reading import json_body

_BLOCK: Final = 16


def open_json(delivery: Delivery, secrets: Sequence[str], name: str) -> Delivery:
    """`delivery` with the JSON that is encrypted under `name` of its body in the body's place.

    The cipher is AES-256 in CBC mode, the key the SHA-256 of the secret, the first block the initial vector. As it
    is, if there is nothing to open or no secret fits.
    """
    try:
        data = json_body(delivery)
        sealed = b64decode(data[name], validate=True) if isinstance(data, dict) else b""
        keys = keys_of(secrets, "raw")
    except (Rejected, LookupError, TypeError, ValueError):
        return delivery
    for key in keys:
        plain = _opened(sealed, key)
        if plain is not None:
            return replace(delivery, body=plain)
    return delivery


def _opened(sealed: bytes, key: bytes) -> bytes | None:
    unpadder = PKCS7(8 * _BLOCK).unpadder()
    try:
        cipher = Cipher(algorithms.AES(sha256(key).digest()), modes.CBC(sealed[:_BLOCK])).decryptor()
        padded = cipher.update(sealed[_BLOCK:]) + cipher.finalize()
        plain = unpadder.update(padded) + unpadder.finalize()
        json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return plain
