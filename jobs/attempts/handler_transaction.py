"""The transaction that a handler writes in through SQLAlchemy, and the run's end with it, on one connection.

The end is written and committed in one round trip, which begins the next run's transaction where one follows at once.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.calls import handler_event_loop
from hookonce.jobs.attempts.ports import Attempt, Blocks, Transaction
from hookonce.jobs.attempts.time_limit import TimeLimit
from hookonce.jobs.attempts.transaction_guard import ROLLED_BACK, TransactionGuard
from hookonce.jobs.handlers import ISOLATION_LEVELS
from hookonce.receiver.ledger.entities import Entities

_ISOLATION = {level: f"SET TRANSACTION ISOLATION LEVEL {level}".encode() for level in ISOLATION_LEVELS}


def set_isolation(level: str) -> bytes:
    """Return the statement that gives a transaction its level, one of `ISOLATION_LEVELS`."""
    return _ISOLATION[level]


class HandlerTransactions:
    """The transactions of one executor, one after the other; itself the one that is open."""

    rolled_back = ROLLED_BACK
    shares_flushes = True
    event_loop = staticmethod(handler_event_loop)
    blocks: Blocks | None = None

    def __init__(self, connection: AttemptConnection) -> None:
        self.connection = connection
        self.end = connection.end
        self.require_open: Callable[[], None]
        self._guard: TransactionGuard

    def begin(self, attempt: Attempt) -> None:
        """Begin the transaction, if the end of the one before has not."""
        connection, isolation = self.connection, attempt.handler.isolation
        connection.begin_attempt(goes_on=not isolation)
        if isolation:
            connection.ledger.execute(set_isolation(isolation))
            connection.is_transaction_changed = True

    def open(self, attempt: Attempt, alarm: TimeLimit) -> AbstractContextManager[Transaction]:  # noqa: ARG002  the port's
        """Guard the transaction that was begun."""
        self._guard = TransactionGuard(self.connection)
        self.require_open = self._guard.require_open
        return nullcontext(self)

    def entities(self, given: Any) -> Entities:  # noqa: ANN401, ARG002  the port's
        """Return the entities, past the guard."""
        return Entities(self._guard.cursor())

    def lent(self) -> AbstractContextManager[object]:
        """Give the guarded connection out."""
        return self._guard

    @property
    def backend(self) -> int | None:
        """The backend of the connection."""
        return self.connection.backend

    def discard(self) -> None:
        """There is no other connection."""
