"""The claims of one process, whichever thread makes their attempts: each until the last of its runs is over.

No claim is taken over here, so one that is lost stays lost, and the ends of its runs say so.
"""

import threading
from collections.abc import Iterable, Sequence
from uuid import UUID

from hookonce.receiver.ledger.runs.claimed import ClaimedRun


class OwnClaims:
    """The claims of a process whose runs are not over; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[UUID, set[tuple[int, int]]] = {}  # events and places
        self._finished: list[UUID] = []
        self._kept: set[UUID] = set()

    def add(self, runs: Iterable[ClaimedRun]) -> None:
        """Hold what was claimed."""
        with self._lock:
            for run in runs:
                self._left.setdefault(run.token, set()).add((run.event.id, run.n))

    def over(self, runs: Iterable[ClaimedRun]) -> None:
        """Hear of runs that are over; twice is once, and of claims that were dropped is never."""
        with self._lock:
            for run in runs:
                left = self._left.get(run.token)
                if left is None:
                    continue
                left.discard((run.event.id, run.n))
                if not left:
                    del self._left[run.token]
                    if run.token not in self._kept:
                        self._finished.append(run.token)
                    self._kept.discard(run.token)

    def leave(self, runs: Iterable[ClaimedRun]) -> None:
        """Hear of runs that stay in their claims, for whoever takes those over once nothing else of them is ours."""
        with self._lock:
            self._kept.update(run.token for run in runs)

    @property
    def tokens(self) -> Sequence[UUID]:
        """The claims with runs that are not over."""
        with self._lock:
            return list(self._left)

    def drop(self, tokens: Iterable[UUID]) -> None:
        """Forget claims that somebody else has taken over, or that are left to whoever will."""
        with self._lock:
            for token in tokens:
                self._left.pop(token, None)
                self._kept.discard(token)

    def holds(self, run: ClaimedRun) -> bool:
        """Return whether a run's claim is still ours, as far as is known."""
        return run.token in self._left

    def take_finished(self) -> Sequence[UUID]:
        """Return the claims that are over, once; `give_back_finished` them where they could not be forgotten."""
        with self._lock:
            finished, self._finished = self._finished, []
        return finished

    def give_back_finished(self, tokens: Iterable[UUID]) -> None:
        """Take back claims that were not forgotten."""
        with self._lock:
            self._finished.extend(tokens)
