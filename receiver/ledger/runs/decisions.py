"""The decisions of a worker on each due run that a claim has locked, and what it is told for that; no SQL."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from enum import Enum, auto
from typing import NamedTuple, Protocol

from hookonce.receiver.ledger.runs.claimed import QueuedRun, QueueKey
from hookonce.receiver.ledger.runs.run_limits import RunLimit


class ClaimContext(NamedTuple):
    """The handlers that are paused, and those that failed last, as a claim has read them beside its rows.

    `trials`: (event, handler) that may run all the same. `is_anything_lost`: leases are over. `has_suspects`: suspects
    are due, of whichever handlers. `has_rows`: something is paused that rows are told by; they are not among the due
    ones.
    """

    handlers: AbstractSet[str] = frozenset()
    trials: AbstractSet[tuple[int, str]] = frozenset()
    failing: AbstractSet[str] = frozenset()
    is_anything_lost: bool = False
    has_suspects: bool = False
    has_rows: bool = False


class Decision(Enum):
    """The fate of a due run."""

    LEASE = auto()
    WAIT = auto()
    LEAVE = auto()
    IGNORE = auto()


class PlannedRun(NamedTuple):
    """The decision on one run of a row that was locked.

    `n` is where in the queue it is, or will be, where an event is met first that several handlers take. `lane`: what is
    leased in one lane is started in its order. `waits`, `delay`: what it waits for, and for how long; `slot` is how far
    off the time is that its rate has given it, by `schedule`.
    """

    row: QueuedRun
    n: int
    handler: str
    decision: Decision
    lane: int = 0
    limit: RunLimit | None = None
    is_trial: bool = False
    waits: str | None = None
    delay: timedelta | None = None
    slot: timedelta | None = None
    schedule: str | None = None

    @property
    def key(self) -> QueueKey:
        """The row of the queue."""
        return (self.row.event.id, self.n)

    @property
    def limit_key(self) -> tuple[str, str]:
        """The handler, and whose share of its limit this uses."""
        return self.handler, "" if self.limit is None else self.limit.key(self.row.event)


class Decide(Protocol):
    """The decision of a worker on the due rows of one claim."""

    def __call__(self, rows: Sequence[QueuedRun], paused: ClaimContext) -> Sequence[PlannedRun]:
        """Decide on each run of the rows, in their order; a row that nobody takes gives one that is ignored."""
        ...

    @property
    def slots(self) -> int:
        """How many of what is leased may be under way at once; asked for when all has been decided."""
        ...
