"""Bodies that a sender encrypts: decrypted after they were verified, and stored so."""

import json
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.crypto.secret_keys import keys_of
from hookonce.providers.kit.reading.bodies import json_body

_BLOCK: Final = 16


def decrypt_json(delivery: Delivery, secrets: Sequence[str], name: str) -> Delivery:
    """`delivery` with the JSON that is encrypted under `name` of its body in the body's place.

    The cipher is AES-256 in CBC mode, the key the SHA-256 of the secret, the first block the initial vector. As it
    is, if there is nothing to decrypt or no secret fits.
    """
    try:
        data = json_body(delivery)
        encrypted = b64decode(data[name], validate=True) if isinstance(data, dict) else b""
        keys = keys_of(secrets, "raw")
    except (Rejected, LookupError, TypeError, ValueError):
        return delivery
    for key in keys:
        plain = _decrypted(encrypted, key)
        if plain is not None:
            return replace(delivery, body=plain)
    return delivery


def _decrypted(encrypted: bytes, key: bytes) -> bytes | None:
    unpadder = PKCS7(8 * _BLOCK).unpadder()
    try:
        cipher = Cipher(algorithms.AES(sha256(key).digest()), modes.CBC(encrypted[:_BLOCK])).decryptor()
        padded = cipher.update(encrypted[_BLOCK:]) + cipher.finalize()
        plain = unpadder.update(padded) + unpadder.finalize()
        json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return plain
