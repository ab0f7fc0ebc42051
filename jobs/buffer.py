"""Runs that were claimed and not started: a slot that ends a run takes the next one from here.

The runs of a claim are started in its order, so that those which may have been started are known if the process dies: a
run that may not be started yet keeps the others of its claim waiting. A run may be started until its claim's budget
ends; then it is given back, for others to take.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from hookonce.receiver.ledger.runs.claimed import ClaimedRun

MayStart = Callable[[ClaimedRun], bool]


class _Leased(NamedTuple):
    """The runs of one claim, and until when they may be started, by the monotonic clock."""

    until: float
    runs: deque[ClaimedRun]


class Buffer:
    """The runs of one process, by claim; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[UUID, _Leased] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, runs: Sequence[ClaimedRun], until: float) -> None:
        """Add runs that were claimed."""
        with self._lock:
            for run in runs:
                self._of(run, until).runs.append(run)
            self._count += len(runs)

    def put_back(self, run: ClaimedRun) -> None:
        """Add a run that was taken and not started: it is the first of its claim again.

        Where that claim has no other run here, it is given back.
        """
        with self._lock:
            self._of(run, 0.0).runs.appendleft(run)
            self._count += 1

    def take_first(self) -> ClaimedRun | None:
        """Take the first run of the oldest claim, even if it is late: so that each claim starts one."""
        return self.take(lambda _: True, now=0.0)

    def take(self, may_start: MayStart, now: float | None = None) -> ClaimedRun | None:
        """Take the first run of a claim: of the oldest claim whose first run may be started."""
        if not self._count:
            return None
        now = time.monotonic() if now is None else now
        with self._lock:
            for token, claim in self._claims.items():
                if now < claim.until and may_start(claim.runs[0]):
                    self._count -= 1
                    run = claim.runs.popleft()
                    if not claim.runs:
                        del self._claims[token]
                    return run
        return None

    def take_late(self, may_start: MayStart | None = None) -> list[ClaimedRun]:
        """Take the runs that are not to be started any more: too late, or not `may_start`; without it all."""
        late: list[ClaimedRun] = []
        now = time.monotonic()
        with self._lock:
            for token, claim in list(self._claims.items()):
                left: deque[ClaimedRun] = deque()
                is_in_time = may_start is not None and now < claim.until
                for run in claim.runs:
                    (left if is_in_time and may_start is not None and may_start(run) else late).append(run)
                if left:
                    self._claims[token] = claim._replace(runs=left)
                else:
                    del self._claims[token]
            self._count -= len(late)
        return late

    def _of(self, run: ClaimedRun, until: float) -> _Leased:
        if (claim := self._claims.get(run.token)) is None:
            claim = self._claims[run.token] = _Leased(until, deque())
        return claim
