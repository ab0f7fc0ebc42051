"""The operation as an endpoint's function sees it: which attempt it is, and how to complete it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from hookonce.receiver.endpoints import stores
from hookonce.receiver.idempotency import operation as machine
from hookonce.receiver.idempotency.counted import Counted
from hookonce.receiver.idempotency.operation import Stored
from hookonce.receiver.idempotency.records import Claim, Key, Result, State, Store

_current: ContextVar["Operation"] = ContextVar("hookonce_operation")


class Operation:
    """One attempt of one operation, or its result of before.

    `attempt` counts from 1. `is_uncertain`: an attempt before this one was cut off, and may have had its effect; ask
    the other side by `idempotency_key`, which is the same on every attempt. `is_done`: it was done before; `value` is
    then what `complete` was given, as JSON keeps it. `transaction` is what the endpoint's `transaction` has opened.
    """

    transaction: Any = None

    def __init__(self, counted: Counted, store: Store, key: Key, begun: Claim | Stored) -> None:
        self._counted = counted
        self._store = store
        self.idempotency_key = machine.downstream_key(key)
        self.claim = begun if isinstance(begun, Claim) else None
        self.attempt = begun.attempt if isinstance(begun, Claim) else 0
        self.is_uncertain = isinstance(begun, Claim) and begun.is_uncertain
        self.is_done = isinstance(begun, Stored)
        self.value: Any = None
        if isinstance(begun, Stored):
            self.value = json.loads(begun.result.body) if begun.result.body else None

    def complete(self, value: object = None, *, within: object = None) -> None:
        """Store what came of it (JSON), in the transaction of `within` if that is given, else at once.

        `within` is a connection or session to the database of the records: psycopg's, SQLAlchemy's or Django's.
        Raises: `LeaseLost`, which must roll back that transaction; `StoreUnavailable`; TypeError; ValueError for
        what is too large, or done.
        """
        if self.claim is None or self.is_done:
            raise ValueError("this operation is done; look at `is_done` before doing it")
        result = Result(200, {}, json.dumps(value).encode())
        if not machine.fitting(self._store, result).is_kept:
            raise ValueError(
                f"a result of {len(result.body)} bytes; expected {self._store.max_result} at most"
            )
        if within is None:
            self._counted.complete(self._store, self.claim, result)
        else:
            with self._counted.ended(State.COMPLETED):
                stores.complete_within(self._store, within, self.claim, State.COMPLETED, result)
        self.is_done, self.value = True, value


def current_operation() -> Operation:
    """Return the operation that the endpoint now running is an attempt of. Raises: LookupError outside of one."""
    return _current.get()


@contextmanager
def running(operation: Operation) -> Iterator[None]:
    """Let `current_operation` be this one."""
    token = _current.set(operation)
    try:
        yield
    finally:
        _current.reset(token)
