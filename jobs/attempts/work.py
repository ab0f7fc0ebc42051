"""What an attempt is made of, as `jobs.attempts.attempt` sees it.

`Work`: one run (`jobs.attempts.single`), or a batch (`jobs.attempts.batch_attempt`). `Transactions`: what its handler
writes in: SQLAlchemy's transaction, Django's, or none that stays open.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection

from hookonce.jobs.attempts.attempt_connection import USUAL, AttemptConnection, Commit, Marking
from hookonce.jobs.attempts.calls import MakeEventLoop
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.attempts.time_limit import TimeLimit
from hookonce.jobs.handlers import Handler
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Ended

Following = Callable[[], ClaimedRun | None]
"""Takes the run that follows at once, if one does."""
Blocks = Callable[[], AbstractContextManager[Connection]]
"""Opens a short transaction of a handler that has none."""


def nothing() -> None:
    """Return that no other run follows."""


class Host(Protocol):
    """What makes attempts, as work knows it."""

    connection: AttemptConnection
    shared: Shared
    tell_failure: Callable[[FailedAttempt], None]

    def discard(self) -> None:
        """Close the connections."""


class Transaction(Protocol):
    """One transaction that was begun."""

    shares_flushes: bool
    """Whether its commit need not wait for the disk, where that is allowed."""

    def lent(self) -> AbstractContextManager[object]:
        """Lend the handler its connection, as long as the block lasts."""

    def require_open(self) -> None:
        """Raise `RolledBack` or `RuntimeError` where what the handler has left can't be committed any more."""

    def end(self, ended: Ended, commit: Commit = USUAL) -> None:
        """End an attempt as done and commit. Raises `LeaseLost`, and `CutOff`."""


class Work(Protocol):
    """One attempt of what was claimed together; `marking`: what is known of its transaction."""

    handler: Handler
    runs: Sequence[ClaimedRun]
    marking: Marking
    has_started: bool
    """Whether its handler was called, or is about to be."""

    def given(self, blocks: Blocks | None) -> object:
        """Return what the handler is given. Raises `BodyDropped` and `CannotDecrypt`, or what stands for several."""

    def results(self, returned: object) -> Sequence[Any]:
        """Return what is kept of what the handler returned, for each run. Raises `TypeError` for no JSON."""

    def end(self, transaction: Transaction, results: Sequence[Any]) -> None:
        """End it as done, in its handler's transaction, and commit. Raises `LeaseLost`."""

    def tell_end(self) -> None:
        """Tell of an end that is committed, once it is durable."""

    def fail(self, error: BaseException, said: str | None) -> None:
        """End it as failed, its writes being rolled back; dead, should they be committed after all.

        `said` is what is kept of the error, where that is not told by the error alone. Raises `LeaseLost`.
        """

    def over(self) -> None:
        """Hear that the attempt has ended, however; nothing more comes of what shares no flush."""


class Transactions(Protocol):
    """Gives each attempt its transaction; for one executor."""

    rolled_back: str
    """What is said of a handler that has rolled its transaction back."""
    blocks: Blocks | None
    """What `event.tx()` opens, since `begin`."""

    @property
    def event_loop(self) -> MakeEventLoop:
        """What makes the event loop of `async def` handlers; imported only where there are some."""

    def begin(self, work: Work) -> None:
        """Begin, on our connection, what the body of an event may be read in."""

    def open(self, work: Work, alarm: TimeLimit) -> AbstractContextManager[Transaction]:
        """Open the handler's transaction, as long as the block lasts; it is to be ended in it."""

    @property
    def backend(self) -> int | None:
        """The process id of the backend that the handler writes on; for other threads."""

    def discard(self) -> None:
        """Close connections besides ours, in whatever state they are."""
