"""The lane of batches: one batch after the other, the next one of each handler of batches in turn.

They take up no slot of many: they are made in one of their own.
"""

import time

from hookonce.jobs.attempts.ports import Claimed
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.stopping import stopping

_SHORTEST_WAIT = 0.005  # seconds


class Batches:
    """Claims batches for one slot, in the thread that claims."""

    def __init__(self, claimer: Claimer) -> None:
        self.names = frozenset(handler.name for handler in claimer.registry if handler.batch)
        self.left: set[str] = set()
        """The handlers that may have a batch."""
        self._claimer = claimer
        self._ripe_at: dict[str, float] = {}
        self._last = ""

    def take(self, until: float = float("inf")) -> Claimed | None:
        """Claim the next batch, of the handler whose turn it is of those that may have one; None if no claim has one.

        Each handler has one claim at most, and none but the first begins after a time of our monotonic clock: a claim
        may do nothing but have runs wait, for a pause or a rate, and then `left` has its handler still.
        """
        now = time.monotonic()
        self.left.update(name for name, at in self._ripe_at.items() if at <= now)
        for number in range(len(self.left)):
            if stopping.is_set() or (number and time.monotonic() >= until):
                break
            self._last = name = min(self.left, key=lambda name: (name <= self._last, name))
            self.left.discard(name)
            claim = self._claimer.claim_batch(name)
            self._ripe_at.pop(name, None)
            if claim.unripe is not None:
                self._ripe_at[name] = time.monotonic() + claim.unripe.total_seconds()
            if claim.met:
                self.left.add(name)
            if claim.runs:
                return claim.runs
        return None

    def longest_wait(self, longest: float) -> float:
        """Return how long (seconds) to wait at most before batches are looked for: until one has waited enough."""
        left = min(self._ripe_at.values(), default=float("inf")) - time.monotonic()
        return min(longest, max(left, _SHORTEST_WAIT))
