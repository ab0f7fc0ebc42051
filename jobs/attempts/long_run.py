"""A run without an open transaction: its handler opens short ones, and waits without any.

Each locks the run first, under the token of its lease, so that a worker that lost it can't commit. What one of them
has committed stays, whatever becomes of the attempt: such a handler is done at least once.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import NoReturn

from sqlalchemy import Connection

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.handler_transaction import require_at_rest
from hookonce.jobs.attempts.transaction_guard import OF_BLOCK, TransactionGuard
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

OPEN_ALREADY = "a transaction of this event is open already; end its block first, or use tx.begin_nested()"
OTHER_THREAD = "event.tx() is for the thread that the handler was called in; let others hand it what to write"
TOO_LONG = (
    "a block of event.tx() may be open for {:g} s, and was cut; end it before you wait for something else"
)
ENDED = "the attempt has ended; event.tx() can't be opened any more"


class OverlongBlock(RuntimeError):  # noqa: N818  what was found
    """A transaction was open for longer than its lease allows, and its connection is gone."""


class _Block:
    """What `event.tx()` gives: a block to enter, once."""

    def __init__(self, block: AbstractContextManager[Connection]) -> None:
        self._block = block

    def __enter__(self) -> Connection:
        return self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._block.__exit__(kind, error, trace)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"event.tx() is a block, and has no '{name}'; expected: with event.tx() as tx: tx.{name}(…)"
        )


class LongRun:
    """One attempt of such a run, on a connection that it gives back whenever it has no transaction."""

    def __init__(self, connection: AttemptConnection, run: ClaimedRun) -> None:
        self._connection = connection
        self._run = run
        self._thread = threading.get_ident()
        self._opened: float | None = None
        self._is_cut = False
        self._has_ended = False

    def transaction(self) -> AbstractContextManager[Connection]:
        """Open a transaction that has locked the run; committed at the end of the block, rolled back on an error."""
        return _Block(self._transaction())

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        self._require_free()
        ours = self._connection
        self._opened, self._is_cut = time.monotonic(), False
        try:
            ours.begin()
            leases.lock(ours.ledger, self._run)
            guard = TransactionGuard(connection := ours.connection, ours.adopt, texts=OF_BLOCK)
            with guard:
                yield connection
            guard.require_open()
            require_at_rest(ours.ledger)
            ours.take_out(asks_for_prepared=guard.may_have_prepared)
            reach("long.written")
            ours.begin().commit()
            reach("long.committed")
        except BaseException as error:
            ours.discard()  # what a rollback leaves in the session
            if self._is_cut and isinstance(error, Exception):
                limit = leases.TRANSACTION_LIMIT.total_seconds()
                raise OverlongBlock(TOO_LONG.format(limit)) from error
            raise
        finally:
            self._opened = None
            ours.put_back()

    def end(self) -> None:
        """Open no further transaction: the handler has returned, or raised."""
        self._has_ended = True

    def cut_overlong(self, now: float) -> None:
        """Close the socket of a transaction that is open for longer than its lease allows."""
        opened = self._opened
        if opened is not None and now - opened > leases.TRANSACTION_LIMIT.total_seconds():
            self._is_cut = True
            self._connection.cut()

    def _require_free(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError(OTHER_THREAD)
        if self._has_ended:
            raise RuntimeError(ENDED)
        if self._opened is not None:
            raise RuntimeError(OPEN_ALREADY)
