"""A run without an open transaction: its handler opens short ones, and waits without any.

Each locks the run first, under the token of its lease, so that a worker that lost it can't commit. What one of them
has committed stays, whatever becomes of the attempt: such a handler is done at least once.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.handler_transaction import require_at_rest
from hookonce.jobs.attempts.transaction_guard import TransactionGuard
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import renewal
from hookonce.receiver.ledger.runs.claimed import Attempt, ClaimedRun

OPEN_ALREADY = "a transaction of this event is open already; end its block first, or use tx.begin_nested()"
OTHER_THREAD = "event.tx() is for the thread that the handler was called in; let others hand it what to write"
ENDED = "the attempt has ended; event.tx() can't be opened any more"


class LongRun:
    """One attempt of such a run, on a connection that it gives back whenever it has no transaction."""

    def __init__(self, connection: AttemptConnection, run: ClaimedRun) -> None:
        self._connection = connection
        self._run = run
        self._thread = threading.get_ident()
        self._opened: float | None = None
        self._has_ended = False

    @property
    def attempt(self) -> Attempt:
        """What its lease is renewed by."""
        return Attempt(self._run.event.id, self._run.handler, self._run.token)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction that has locked the run; committed at the end of the block, rolled back on an error."""
        self._require_free()
        ours = self._connection
        self._opened = time.monotonic()
        try:
            ours.begin()
            renewal.lock(ours.ledger, self._run)
            guard = TransactionGuard(connection := ours.connection)
            with guard:
                yield connection
            guard.require_open()
            require_at_rest(ours.ledger)
            reach("long.written")
            ours.begin().commit()
            reach("long.committed")
        finally:
            self._opened = None
            ours.put_back()

    def end(self) -> None:
        """Open no further transaction: the handler has returned, or raised."""
        self._has_ended = True

    def cut_overlong(self, now: float) -> None:
        """Close the socket of a transaction that is open for longer than its lease allows."""
        opened = self._opened
        if opened is not None and now - opened > renewal.TRANSACTION_LIMIT.total_seconds():
            self._connection.cut()

    def _require_free(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError(OTHER_THREAD)
        if self._has_ended:
            raise RuntimeError(ENDED)
        if self._opened is not None:
            raise RuntimeError(OPEN_ALREADY)
