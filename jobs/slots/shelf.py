"""Runs that are leased and not started yet: slots that end a run take the next from here.

Each claim's runs are started in their order, so that those which may have been started are known if the process dies.
What keeps the first of them waiting keeps the others of its claim waiting, too. Each may be started for as long as its
claim's budget lasts; then it is let go of, for others to take.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from hookonce.receiver.ledger.runs.claimed import ClaimedRun


class Leased(NamedTuple):
    """A run, and until when it may be started, by the monotonic clock."""

    run: ClaimedRun
    until: float


class Shelf:
    """The leased runs of one process, by claim; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[UUID, deque[Leased]] = {}

    def __len__(self) -> int:
        return sum(map(len, list(self._claims.values())))

    def put(self, runs: Sequence[ClaimedRun], until: float) -> None:
        """Add runs that were claimed."""
        with self._lock:
            for run in runs:
                self._claims.setdefault(run.token, deque()).append(Leased(run, until))

    def take(self, may_start: Callable[[ClaimedRun], bool]) -> ClaimedRun | None:
        """Take the first run of a claim, the oldest claim that has one which may be started."""
        now = time.monotonic()
        with self._lock:
            for token, runs in self._claims.items():
                if now < runs[0].until and may_start(runs[0].run):
                    run = runs.popleft().run
                    if not runs:
                        del self._claims[token]
                    return run
        return None

    def take_all(self, is_over: Callable[[Leased], bool]) -> list[ClaimedRun]:
        """Take those that are not to be started any more."""
        with self._lock:
            over = [leased.run for runs in self._claims.values() for leased in runs if is_over(leased)]
            if over:
                gone = {id(run) for run in over}
                left = {
                    token: deque(each for each in runs if id(each.run) not in gone)
                    for token, runs in self._claims.items()
                }
                self._claims = {token: runs for token, runs in left.items() if runs}
        return over
