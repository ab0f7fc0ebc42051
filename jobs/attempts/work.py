"""What is attempted: one run (`jobs.attempts.single`), or a batch (`jobs.batches.batch_attempt`)."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
from sqlalchemy import Connection

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.attempts.transaction_guard import Marking
from hookonce.jobs.handlers import Handler
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import LeaseLost

if TYPE_CHECKING:
    from hookonce.jobs.attempts.transactions import Transaction

HasNext = Callable[[], bool]
"""Returns whether another run follows at once."""
Blocks = Callable[[], AbstractContextManager[Connection]]
"""Opens a short transaction of a handler that has none."""


def no_next() -> bool:
    """Return that no other run follows."""
    return False


class Host(Protocol):
    """What makes attempts, as work knows it."""

    connection: AttemptConnection
    shared: Shared
    tell_failure: Callable[[FailedAttempt], None]

    def count_refused(self, sources: AbstractSet[str]) -> None:
        """Count an end that was refused."""

    def discard(self) -> None:
        """Close the connections."""


class Work(Protocol):
    """One attempt of what was claimed together; `marking`: what is known of its transaction."""

    marking: Marking
    has_started: bool
    """Whether its handler was called, or is about to be."""

    @property
    def handler(self) -> Handler:
        """Who takes it."""

    @property
    def runs(self) -> Sequence[ClaimedRun]:
        """What was claimed."""

    def listened(self) -> AbstractContextManager[object]:
        """Have listeners hear of the attempt, as long as the block lasts."""

    def note_start(self) -> None:
        """Write down that the handler is about to be called, where a start is charged."""

    def given(self, blocks: Blocks | None) -> object:
        """Return what the handler is given. Raises `BodyDropped` and `CannotDecrypt`, or what stands for several."""

    def mark(self, cursor: psycopg.Cursor[Any]) -> str:
        """Mark the handler's transaction by a cursor in it; return its id. Raises `LeaseLost`."""

    def end(self, transaction: "Transaction", returned: object) -> None:
        """End it as done, in its handler's transaction, and commit. Raises `LeaseLost`, and `TypeError` for no JSON."""

    def tell_end(self) -> None:
        """Tell of an end that is committed, once it is durable."""

    def is_ours(self) -> bool:
        """Return whether it is still under its token."""

    def refused(self, lost: LeaseLost) -> None:
        """Say, and count, that it could not be ended, since its lease is somebody else's."""

    def fail(self, error: BaseException, said: str | None) -> None:
        """End it as failed, its writes being rolled back; dead, should they be committed after all.

        `said` is what is kept of the error, where that is not told by the error alone.
        """

    def over(self) -> None:
        """Hear that the attempt has ended, however; nothing more comes of what shares no flush."""
