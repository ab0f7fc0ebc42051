"""The shapes that the way of an attempt is made of (`jobs.attempts.attempt`).

`Attempt` is what is attempted: one run, or a batch. `Transactions` is what its handler writes in: SQLAlchemy's
transaction, Django's, or none that stays open.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, Protocol

from sqlalchemy import Connection

from hookonce.jobs.attempts.calls import MakeEventLoop
from hookonce.jobs.attempts.time_limit import TimeLimit
from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.handlers import Handler
from hookonce.receiver.ledger.entities import Entities
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.monitoring.log_capture import Lines

Claimed = Sequence[ClaimedRun]
"""A run, or the runs of a batch, under one claim."""
Blocks = Callable[[], AbstractContextManager[Connection]]
"""Opens a short transaction of a handler that has none."""


class Attempt:
    """One attempt of what was claimed together."""

    def __init__(self, claimed: Claimed, handler: Handler) -> None:
        self.handler = handler
        self.is_batch = len(claimed) > 1
        """Whether these are several: one that a handler of batches takes alone is a run like any."""
        self.runs = claimed
        self.run = claimed[0]
        """The run; of a batch the first."""
        self.has_started = False
        """Whether its handler was called, or is about to be."""
        self.events: list[ReceivedEvent] = []
        self.lines: Lines | None = None
        """The lines that its handler has written; None where they are not kept."""
        self.results: Sequence[AttemptResult] = ()
        self.ticket: int | None = None
        """The ticket of the train that its end is flushed with; None where its commit waits for the disk."""
        self.tell_flushed: Callable[[Attempt], None] | None = None
        """Called with it once its end is flushed."""
        self.began = time.monotonic()
        """Since when it is made, by the monotonic clock."""

    def took(self) -> timedelta:
        """Return how long it has taken."""
        return timedelta(seconds=time.monotonic() - self.began)


class Transaction(Protocol):
    """One transaction that was begun."""

    shares_flushes: bool
    """Whether its commit need not wait for the disk, where that is allowed."""

    def lent(self) -> AbstractContextManager[object]:
        """Lend the handler its connection, as long as the block lasts."""

    def require_open(self) -> None:
        """Raise `RolledBack` or `RuntimeError` where the transaction, as the handler left it, can't be committed."""

    def end(self, ended: Ended, *, begins_next: bool = False, waits_for_flush: bool = True) -> None:
        """End an attempt as done and commit, where possible with the begin of the next one's transaction.

        Raises `LeaseLost`, and `CutOff`.
        """


class Transactions(Protocol):
    """Gives each attempt its transaction; for one executor."""

    rolled_back: str
    """The error of an attempt whose handler has rolled its transaction back."""
    blocks: Blocks | None
    """The function that `event.tx()` calls, since `begin`."""

    @property
    def event_loop(self) -> MakeEventLoop:
        """Makes the event loop of `async def` handlers; imported only where there are some."""

    def begin(self, attempt: Attempt) -> None:
        """Begin, on our connection, the transaction in which the body of an event may be read."""

    def open(self, attempt: Attempt, alarm: TimeLimit) -> AbstractContextManager[Transaction]:
        """Open the handler's transaction, as long as the block lasts; it is to be ended in it."""

    @property
    def backend(self) -> int | None:
        """The process id of the backend that the handler writes on; for other threads."""

    def discard(self) -> None:
        """Close connections besides ours, in whatever state they are."""


class ShortTransactions(Transactions, Protocol):
    """Transactions that stay open while the handler runs."""

    def entities(self, given: Any) -> Entities:  # noqa: ANN401  what handlers are given
        """Return the entities as they are in the transaction that a handler is given."""


class Listener:
    """Hears nothing."""

    def attempting(self, _runs: Sequence[ClaimedRun]) -> AbstractContextManager[object]:
        """Hear that an attempt, of a run or of a batch, is under way, as long as the block lasts."""
        return nullcontext()

    def ended(self, run: ClaimedRun, ending: AttemptResult) -> None:
        """Hear how an attempt of a run ended; that is durable by now, and the block may be over."""

    def over(self, run: ClaimedRun) -> None:
        """Hear that nothing more comes of an attempt of a run, however it ended."""

    def ended_batch(self, status: RunStatus, *, has_failed: bool) -> None:
        """Hear, in the block, what became of runs of the batch."""
