"""Runs that are leased and not started yet: slots that end a run take the next from here.

Each may be started for as long as its claim's budget lasts; then it is let go of, for others to take.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hookonce.receiver.ledger.runs.claimed import ClaimedRun


class Leased(NamedTuple):
    """A run, and until when it may be started, by the monotonic clock."""

    run: ClaimedRun
    until: float


class Shelf:
    """The leased runs of one process, for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: deque[Leased] = deque()

    def __len__(self) -> int:
        return len(self._runs)

    def put(self, runs: Sequence[ClaimedRun], until: float) -> None:
        """Add runs that were claimed."""
        with self._lock:
            self._runs.extend(Leased(run, until) for run in runs)

    def put_back(self, leased: Leased) -> None:
        """Put a run back that was not started after all."""
        with self._lock:
            self._runs.appendleft(leased)

    def take(self, may_start: Callable[[ClaimedRun], bool]) -> Leased | None:
        """Take the first run that may be started, if there is one."""
        now = time.monotonic()
        with self._lock:
            for number, leased in enumerate(self._runs):
                if now < leased.until and may_start(leased.run):
                    del self._runs[number]
                    return leased
        return None

    def take_all(self, is_over: Callable[[Leased], bool]) -> list[ClaimedRun]:
        """Take those that are not to be started any more, by the claim they are of."""
        with self._lock:
            over = [leased for leased in self._runs if is_over(leased)]
            if over:
                gone = set(map(id, over))
                self._runs = deque(each for each in self._runs if id(each) not in gone)
        return [leased.run for leased in over]
