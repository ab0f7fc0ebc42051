"""Seals what is kept of deliveries: AES-256-GCM, each text bound to the row it belongs to.

The first configured key seals, every one opens. A sealed text is a random nonce (96 bits), the ciphertext and
its tag; which key it needs stands beside it, as eight hex digits that tell nothing about the key. What a text
is bound to (its kind, source and event) is authenticated and not stored, so that a text that was moved to
another row, changed or cut does not open. With random nonces a key is good for four billion rows.
"""

import os
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12

AssociatedData = tuple[str | bytes, ...]
"""What a sealed text belongs to: it opens with the same values, in the same order, only."""


class CannotDecrypt(Exception):  # noqa: N818  a state of what is stored
    """Sealed content that can't be opened here; the text has the id of the key that it needs, never a key."""


class KeyMissing(CannotDecrypt):
    """The key is not among the configured ones: with it, the text opens."""


class Tampered(CannotDecrypt):
    """The text was changed, or does not belong where it is."""


class Keyring:
    """The encryption keys, 32 bytes each; none at all leaves everything as it is.

    None stands for a key that is configured and missing from this process's environment: where that is the first
    one, nothing can be sealed.
    """

    def __init__(self, keys: Sequence[bytes | None] = ()) -> None:
        self.is_on = bool(keys)
        here = [key for key in keys if key is not None]
        self._ciphers = {key_id(key): AESGCM(key) for key in here}
        self.spellings = frozenset(text for key in here for text in _spellings(key))
        """Each key as a person may have written it, to be masked wherever secrets are."""
        first = keys[0] if keys else None
        self.first = None if first is None else key_id(first)

    @property
    def ids(self) -> list[str]:
        """The ids of the keys that are here, in their order."""
        return list(self._ciphers)

    def encrypt(self, plain: bytes, context: AssociatedData) -> tuple[bytes, str | None]:
        """Seal with the first key; return the text and the key's id, or `plain` and None without keys.

        Raises `KeyMissing` if the first key is not here: what should be sealed must not be stored open.
        """
        if not self.is_on:
            return plain, None
        if self.first is None:
            raise KeyMissing(
                "the first of encryption_keys is not set in this environment, and nothing is sealed with another; "
                "set it"
            )
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._ciphers[self.first].encrypt(nonce, plain, _bytes(context)), self.first

    def open(self, text: bytes, key: str | None, context: AssociatedData) -> bytes:
        """Open what is stored under the key of that id; with None it never was sealed.

        Raises `KeyMissing` and `Tampered`.
        """
        if key is None:
            return text
        cipher = self._ciphers.get(key)
        if cipher is None:
            raise KeyMissing(
                f"it is sealed with key {key}, which is not configured here; add that key to encryption_keys"
            )
        try:
            return cipher.decrypt(text[:NONCE_BYTES], text[NONCE_BYTES:], _bytes(context))
        except (InvalidTag, ValueError):
            raise Tampered(
                f"what is stored under key {key} was changed or moved since; restore that row from a backup"
            ) from None


def _spellings(key: bytes) -> Iterator[str]:
    for text in (b64encode(key).decode(), urlsafe_b64encode(key).decode()):
        yield from (text, text.rstrip("="))
    yield from (key.hex(), key.hex().upper())


OFF = Keyring()


def key_id(key: bytes) -> str:
    """Return a key's id: eight hex digits of its SHA-256."""
    return sha256(b"hookonce encryption key" + key).hexdigest()[:8]


def body_context(source: str, event_id: str, fingerprint: bytes) -> AssociatedData:
    """Bind a body to its event, and to the delivery that brought it: an event in conflict has several."""
    return "body", source, event_id, fingerprint


def traceback_context(event: int, handler: str, cycle: int, attempt: int) -> AssociatedData:
    """Bind the traceback of a failed attempt, by the ledger's id of its event."""
    return "traceback", handler, f"{event} {cycle} {attempt}"


def log_context(event: int, handler: str, cycle: int, attempt: int) -> AssociatedData:
    """Bind what a handler wrote in an attempt, by the ledger's id of its event."""
    return "log", handler, f"{event} {cycle} {attempt}"


def result_context(event: int, handler: str) -> AssociatedData:
    """Bind what a handler returned, by the ledger's id of its event."""
    return "result", f"{event}", handler


def secret_context(source: str) -> AssociatedData:
    """Bind a secret that a sender handed out."""
    return "secret", source


def answer_context(scope: str, key: str) -> AssociatedData:
    """Bind what a client was answered under its key."""
    return "answer", scope, key


def foreign_answer_context(
    scope: str, key: str, fingerprint: bytes, state: str, status: int
) -> AssociatedData:
    """Bind such an answer where others can write: to the request that it answers, and to all that is told of it."""
    return "foreign answer", scope, key, fingerprint, state, f"{status}"


def step_context(event: int, handler: str, step: str) -> AssociatedData:
    """Bind the result of a handler's step, by the ledger's id of its event."""
    return "step", f"{event}", handler, step


def rejected_context(source: str, reason: str, at: datetime) -> AssociatedData:
    """Bind what is kept of a refused delivery."""
    return "rejected", source, reason, _microseconds(at)


def quarantine_context(source: str, reason: str, at: datetime) -> AssociatedData:
    """Bind a delivery in quarantine; the time decides what it is verified against."""
    return "quarantine", source, reason, _microseconds(at)


def _microseconds(at: datetime) -> str:
    return str(round(at.timestamp() * 1_000_000))


def _bytes(context: AssociatedData) -> bytes:
    """Write a bond so that no two are written alike: each part with its length in front."""
    parts = [part.encode() if isinstance(part, str) else part for part in context]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
