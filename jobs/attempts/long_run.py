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
from hookonce.jobs.attempts.calls import handler_event_loop
from hookonce.jobs.attempts.heartbeat import Heartbeat
from hookonce.jobs.attempts.ports import Attempt, Blocks, Transaction
from hookonce.jobs.attempts.transaction_guard import (
    OF_BLOCK,
    ROLLED_BACK,
    OverlongBlock,
    TransactionGuard,
    require_at_rest,
)
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Ended

OPEN_ALREADY = "a transaction of this event is open already; end its block first, or use tx.begin_nested()"
OTHER_THREAD = "event.tx() is for the thread that the handler was called in; let others hand it what to write"
TOO_LONG = (
    "a block of event.tx() may be open for {:g} s, and was cut; end it before you wait for something else"
)
ENDED = "the attempt has ended; event.tx() can't be opened any more"


class _Block:
    """The block that `event.tx()` gives, to be entered once."""

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
            guard = TransactionGuard(ours, texts=OF_BLOCK)
            with guard as connection:
                yield connection
            guard.require_open()
            require_at_rest(ours.ledger)
            ours.take_out()
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


class LongTransactions:
    """No transaction stays open while such a handler works: it opens its own, and its end has one by itself."""

    rolled_back = ROLLED_BACK
    event_loop = staticmethod(handler_event_loop)
    shares_flushes = False

    def __init__(self, connection: AttemptConnection, heartbeat: Heartbeat) -> None:
        self.blocks: Blocks | None = None
        self._connection = connection
        self._heartbeat = heartbeat
        self._run: LongRun

    def begin(self, attempt: Attempt) -> None:
        """Begin nothing that stays open."""
        self._connection.be_idle()
        (run,) = attempt.runs
        self._run = LongRun(self._connection, run)
        self.blocks = self._run.transaction

    @contextmanager
    def open(self, *_: object) -> Iterator[Transaction]:
        """Hold no connection as long as the handler has none, and watch over its transactions."""
        self._connection.put_back()
        with self._heartbeat.cutting(self._run.cut_overlong):
            yield self

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Give no connection; when the handler has ended, none is to be had."""
        try:
            yield
        finally:
            self._run.end()

    def require_open(self) -> None:
        """There is nothing that could not be committed."""

    def end(self, ended: Ended, **_: bool) -> None:
        """End a run as done and commit, once none of its transactions goes on: one that does has locked the run."""
        self._connection.end(ended)

    @property
    def backend(self) -> int | None:
        """The backend of a transaction that is open."""
        return self._connection.backend

    def discard(self) -> None:
        """There is no other connection."""
