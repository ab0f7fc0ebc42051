"""A store whose results are sealed: what clients were answered lies nowhere in the clear.

Status, key and times stay readable. The result's headers and body are sealed together, bound to the key's record; the
id of the encryption key stands where the headers were. Without any key everything is as in the store itself.

The ledger's own store (PostgreSQL) is believed: rows of before there was a key are answers, and `hookonce keys rotate`
seals them. Any other store may have other writers. There the fingerprint, the state and the status are authenticated
along with the answer, the note that a body was too large to keep is sealed too, and an answer that is not sealed is no
answer, but `StoreUnavailable`: neither is it given again, nor is its operation done again, until its record has
expired. So records of before there was a key are refused until their retention is over.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from hookonce.receiver.encryption import (
    AssociatedData,
    CannotDecrypt,
    Keyring,
    answer_context,
    foreign_answer_context,
)
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
        self._keyring = keys if isinstance(keys, Keyring) else Keyring(keys)
        self.max_result = store.max_result - (_ROOM if self._keyring.is_on else 0)
        self._is_ledger = isinstance(store, PostgresStore)

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
        self.store.complete(claim, state, self._sealed(claim, state, result))

    def within(self, cursor: Cursor, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim in the transaction of a cursor, as `PostgresStore.within` does. Raises as that, and TypeError."""
        if not isinstance(self.store, PostgresStore):
            raise TypeError("only PostgreSQL stores a result in the transaction of the work")
        self.store.within(cursor, claim, state, self._sealed(claim, state, result))

    def release(self, claim: Claim) -> None:
        """Forget a claim; see `Store`."""
        self.store.release(claim)

    def find(self, key: Key) -> Record | None:
        """Return the record; see `Store`."""
        found = self.store.find(key)
        return found and self._opened(key, found)

    def _sealed(self, claim: Claim, state: State, result: Result | None) -> Result | None:
        if result is None or not self._keyring.is_on or (self._is_ledger and not result.is_kept):
            return result
        headers = dict(result.headers) if result.is_kept else None
        plain = json.dumps(headers).encode() + b"\n" + result.body
        bond = self._bond(claim.key, claim.fingerprint, state, result.status)
        try:
            text, key_id = self._keyring.encrypt(plain, bond)
        except CannotDecrypt as error:
            raise StoreUnavailable(str(error)) from None
        return replace(result, headers={SEALED_WITH: str(key_id)}, body=text, is_kept=True)

    def _opened(self, key: Key, record: Record) -> Record:
        result = record.result
        if result is None:
            return record
        if record.is_expired and not self._is_ledger:
            return replace(record, result=None)
        if result.headers.keys() != {SEALED_WITH}:
            if self._keyring.is_on and not self._is_ledger:
                raise StoreUnavailable(
                    f"the stored answer {key.digest[:12]} is not sealed, though encryption_keys are set: it is from "
                    "before they were, or not ours; it is not given, and its key is free when its retention is over"
                )
            return record
        bond = self._bond(key, record.fingerprint, record.state, result.status)
        try:
            plain = self._keyring.open(result.body, result.headers[SEALED_WITH], bond)
        except CannotDecrypt as error:
            raise StoreUnavailable(f"a stored answer can't be opened: {error}") from None
        text, _, body = plain.partition(b"\n")
        headers = json.loads(text)
        return replace(
            record, result=replace(result, headers=headers or {}, body=body, is_kept=headers is not None)
        )

    def _bond(self, key: Key, fingerprint: bytes, state: State, status: int) -> AssociatedData:
        """Return what a sealed answer is bound to; the ledger's rows keep theirs, which rotation knows."""
        if self._is_ledger:
            return answer_context(key.scope, key.key)
        return foreign_answer_context(key.scope, key.key, fingerprint, str(state), status)
