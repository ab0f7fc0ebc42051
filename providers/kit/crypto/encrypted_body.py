"""Bodies that a sender encrypts: decrypted after they were verified, and stored so."""

import json
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.crypto.secret_keys import keys_of
from hookonce.providers.kit.reading.bodies import json_body

_BLOCK: Final = 16
RESOURCE_KEY: Final = 32
"""Bytes of the key that `decrypt_resource` takes."""


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


def decrypt_resource(delivery: Delivery, keys: Sequence[str]) -> Delivery:
    """`delivery` with what is encrypted as `resource` of its body in that place.

    The cipher is AES-256-GCM; nonce and associated data stand beside it. As it is, if there is nothing to decrypt or
    no key fits.
    """
    try:
        data = json_body(delivery)
        opened = next(filter(None, (_opened(data["resource"], key.encode()) for key in keys)))
    except (Rejected, LookupError, AttributeError, TypeError, ValueError, StopIteration):
        return delivery
    return replace(delivery, body=json.dumps({**data, "resource": opened}).encode(), readings={})


def _opened(sealed: Any, key: bytes) -> Any:  # noqa: ANN401  any JSON
    if len(key) != RESOURCE_KEY:
        return None
    try:
        nonce, text = sealed["nonce"].encode(), b64decode(sealed["ciphertext"], validate=True)
        return json.loads(AESGCM(key).decrypt(nonce, text, sealed.get("associated_data", "").encode()))
    except (InvalidTag, RecursionError):
        return None
