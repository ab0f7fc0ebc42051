"""A store whose results are sealed: what clients were answered lies nowhere in the clear.

Status, key and times stay readable. The result's headers and body are sealed together, bound to the key's record; the
id of the encryption key stands where the headers were. Without any key everything is as in the store itself.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from hookonce.receiver.encryption import CannotDecrypt, Keyring, answer_context
from hookonce.receiver.idempotency.postgresql import Cursor, PostgresStore
from hookonce.receiver.idempotency.records import Claim, Key, Record, Result, State, Store, StoreUnavailable

SEALED_WITH = "Hookonce-Key"
_ROOM = 4096
"""Bytes that sealing may add."""


class SealedStore:
    """Another store, with its results sealed by the first of some encryption keys (32 bytes each); all of them open."""

    def __init__(self, store: Store, keys: Sequence[bytes] | Keyring) -> None:
        self.store = store
        self.loses = store.loses
        self.max_result = store.max_result - _ROOM
        self._keyring = keys if isinstance(keys, Keyring) else Keyring(keys)

    def close(self) -> None:
        """Close the connections that the store keeps."""
        if isinstance(self.store, PostgresStore):
            self.store.close()

    def claim(self, wanted: Claim) -> Claim | Record | None:
        """Claim a key; see `Store`."""
        found = self.store.claim(wanted)
        return self._opened(wanted.key, found) if isinstance(found, Record) else found

    def complete(self, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim; see `Store`."""
        self.store.complete(claim, state, self._sealed(claim.key, result))

    def within(self, cursor: Cursor, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim in the transaction of a cursor, as `PostgresStore.within` does. Raises as that, and TypeError."""
        if not isinstance(self.store, PostgresStore):
            raise TypeError("only PostgreSQL stores a result in the transaction of the work")
        self.store.within(cursor, claim, state, self._sealed(claim.key, result))

    def release(self, claim: Claim) -> None:
        """Forget a claim; see `Store`."""
        self.store.release(claim)

    def find(self, key: Key) -> Record | None:
        """Return the record; see `Store`."""
        found = self.store.find(key)
        return found and self._opened(key, found)

    def _sealed(self, key: Key, result: Result | None) -> Result | None:
        if result is None or not result.is_kept or not self._keyring.is_on:
            return result
        plain = json.dumps(dict(result.headers)).encode() + b"\n" + result.body
        try:
            text, key_id = self._keyring.encrypt(plain, answer_context(key.scope, key.key))
        except CannotDecrypt as error:
            raise StoreUnavailable(str(error)) from None
        return replace(result, headers={SEALED_WITH: str(key_id)}, body=text)

    def _opened(self, key: Key, record: Record) -> Record:
        result = record.result
        if result is None or result.headers.keys() != {SEALED_WITH}:
            return record
        bond = answer_context(key.scope, key.key)
        try:
            plain = self._keyring.open(result.body, result.headers[SEALED_WITH], bond)
        except CannotDecrypt as error:
            raise StoreUnavailable(f"a stored answer can't be opened: {error}") from None
        headers, _, body = plain.partition(b"\n")
        return replace(record, result=replace(result, headers=json.loads(headers), body=body))
