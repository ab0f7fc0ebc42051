"""Batches, made in a slot one after the other: the next one of each handler of batches in turn.

In a process of many slots a thread beside them takes them: they take up no other slot.
"""

import logging
import threading
import time
from collections.abc import Iterable

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.slots.slot import Slot
from hookonce.jobs.stopping import stopping
from hookonce.receiver.ledger.runs import batches

log = logging.getLogger(__name__)

LOOK_INTERVAL = 1.0
"""Seconds after which the thread looks for batches, if it is not told of any."""
_SHORTEST_WAIT = 0.005  # seconds


class Batches:
    """Claims and runs batches for one slot; another thread may say which handlers have some."""

    def __init__(self, slot: Slot, claimer: Claimer) -> None:
        self.names = frozenset(handler.name for handler in claimer.registry if handler.batch)
        self.left: set[str] = set()
        """The handlers that may have a batch."""
        self._slot = slot
        self._claimer = claimer
        self._ripe_at: dict[str, float] = {}
        self._last = ""

    def run(self, until: float = float("inf")) -> int:
        """Run one batch at most of each handler that may have one, and one in any case; return the number of runs.

        Handlers have their turns from call to call. Raises what is raised where the ledger is away; what was under way
        is to be settled then.
        """
        count = 0
        for name in sorted(self.left, key=lambda name: (name <= self._last, name)):  # in turn
            if stopping.is_set() or (count and time.monotonic() >= until):
                break
            self.left.discard(name)
            self._last = name
            claim = self._claimer.claim_batch(self._slot.executor, name)
            self._ripe_at.pop(name, None)
            if claim.unripe is not None:
                self._ripe_at[name] = time.monotonic() + claim.unripe.total_seconds()
            if claim.runs:
                count += self._slot.work(batches.attempted(claim.runs))
            if claim.met:
                self.left.add(name)
        return count

    def longest_wait(self, longest: float) -> float:
        """Return how long (seconds) to wait at most before batches are looked for: until one has waited enough."""
        left = min(self._ripe_at.values(), default=float("inf")) - time.monotonic()
        return min(longest, max(left, _SHORTEST_WAIT))


class BatchThread(Slot):
    """A slot that takes batches in a thread of its own; `tell` it of handlers that have some."""

    def __init__(self, executor: Executor, claimer: Claimer) -> None:
        super().__init__(executor, claimer.registry)
        self._claimer = claimer
        self._batches = Batches(self, claimer)
        self._wake = threading.Event()
        self._is_ending = False
        self._thread = threading.Thread(target=self._work_on, name="batches", daemon=True)

    @property
    def names(self) -> frozenset[str]:
        """The handlers of batches."""
        return self._batches.names

    @property
    def is_busy(self) -> bool:
        """Whether something is under way, or is to be looked for."""
        return self.claimed is not None or bool(self._batches.left)

    @property
    def is_at_work(self) -> bool:
        """Whether its thread has not ended, and will."""
        return self._thread.is_alive() and not self.is_lost

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def tell(self, names: Iterable[str]) -> None:
        """Hear of handlers that may have a batch."""
        self._batches.left.update(names)
        self._wake.set()

    def stop(self) -> None:
        """Take nothing more."""
        self._is_ending = True
        self._wake.set()

    def _work_on(self) -> None:
        while not self._is_ending and not stopping.is_set():
            self._wake.wait(self._batches.longest_wait(LOOK_INTERVAL))
            self._wake.clear()
            self._batches.left.update(self.names)
            try:
                self.settle()
                self._claimer.batch_head(self.executor)
                while self._batches.left and not self._is_ending and not stopping.is_set():
                    self._batches.run()
            except BaseException as error:
                if not self._claimer.hear(error, self.executor):
                    log.exception("a batch failed")
                time.sleep(LOOK_INTERVAL / 4)
            self.is_lost = False
        self.executor.close()
