"""The transaction that a handler writes in, and its end with it: SQLAlchemy's, Django's, or none that stays open."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import psycopg

from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult

if TYPE_CHECKING:
    from hookonce.jobs.attempts.time_limit import TimeLimit
    from hookonce.jobs.attempts.work import Blocks, Work


class EndCutOff(psycopg.OperationalError):
    """The connection broke while an attempt whose handler had returned was ended: it may be ended, or not."""


class Transaction(Protocol):
    """One transaction that was begun."""

    shares_flushes: bool
    """Whether its commit need not wait for the disk, where that is allowed."""

    def lent(self) -> AbstractContextManager[object]:
        """Lend the handler its connection, as long as the block lasts."""

    def require_open(self) -> None:
        """Raise `RolledBack` or `RuntimeError` where what the handler has left can't be committed any more."""

    def end(
        self,
        run: ClaimedRun,
        ending: AttemptResult,
        took: timedelta,
        *,
        has_next: bool,
        waits_for_flush: bool,
    ) -> None:
        """End a run as done and commit; where `has_next`, the next transaction may be begun with that.

        Raises `LeaseLost`, and `EndCutOff`.
        """

    def end_by(self, write: Callable[[psycopg.Connection], None]) -> None:
        """End a batch: `write` ends its runs, and commits."""


class Transactions(Protocol):
    """Gives each attempt its transaction; for one executor."""

    rolled_back: str
    """What is said of a handler that has rolled its transaction back."""
    takes_batches: bool
    blocks: "Blocks | None"
    """What `event.tx()` opens, since `begin`."""

    def begin(self, work: "Work") -> None:
        """Begin, on our connection, what the body of an event may be read in."""

    def open(self, work: "Work", alarm: "TimeLimit") -> AbstractContextManager[Transaction]:
        """Open the handler's transaction, as long as the block lasts; it is to be ended in it."""

    @property
    def backend(self) -> int | None:
        """The process id of the backend that the handler writes on; for other threads."""

    def discard(self) -> None:
        """Close connections besides ours, in whatever state they are."""
