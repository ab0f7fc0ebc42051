"""Batches, made in a slot one after the other: the next one of each handler that has some due.

In a process of many slots a thread beside them takes them. It looks for them by itself: they take up no other slot, and
what the claims of runs leave to them may lie behind much else.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.slots.slot import Slot
from hookonce.jobs.stopping import stopping

log = logging.getLogger(__name__)

LOOK_INTERVAL = 1.0
"""Seconds after which the thread looks for batches, if nobody has told it of any."""
_SHORTEST_WAIT = 0.005  # seconds


class Batches:
    """Claims and runs batches for one slot."""

    def __init__(self, slot: Slot, claimer: Claimer) -> None:
        self._slot = slot
        self._claimer = claimer
        self._ripe_at: float | None = None

    def run(self, due: Mapping[str, Sequence[int]], until: float = float("inf")) -> int:
        """Run one batch of each handler at most, of which events were met; return the number of runs.

        Raises what is raised where the ledger is away; what was under way is to be settled then.
        """
        count = 0
        self._ripe_at = None
        for name, ids in due.items():
            if stopping.is_set() or time.monotonic() >= until:
                break
            handler = self._claimer.registry.named(name)
            if handler is None:
                continue
            claim = self._claimer.claim_batch(self._slot.executor, handler, ids)
            if claim.unripe is not None:
                ripe_at = time.monotonic() + claim.unripe.total_seconds()
                self._ripe_at = ripe_at if self._ripe_at is None else min(self._ripe_at, ripe_at)
            if (claimed := claim.batch or claim.alone) is not None:
                count += self._slot.work(claimed)
        return count

    def longest_wait(self, longest: float) -> float:
        """Return how long (seconds) to wait at most before batches are looked for: until one has waited enough."""
        if self._ripe_at is None:
            return longest
        return min(longest, max(self._ripe_at - time.monotonic(), _SHORTEST_WAIT))


class BatchThread(Slot):
    """A slot that takes batches in a thread of its own; `tell` it of events that its handlers take."""

    def __init__(self, executor: Executor, claimer: Claimer) -> None:
        super().__init__(executor, claimer.registry)
        self._claimer = claimer
        self._names = sorted({handler.name for handler in claimer.registry if handler.batch})
        self._batches = Batches(self, claimer)
        self._lock = threading.Lock()
        self._told: dict[str, Sequence[int]] = {}
        self._wake = threading.Event()
        self._is_ending = False
        self._thread = threading.Thread(target=self._work_on, name="batches", daemon=True)

    @property
    def is_needed(self) -> bool:
        """Whether there is any handler of batches."""
        return bool(self._names)

    @property
    def is_busy(self) -> bool:
        """Whether something is under way, or it was told of events that it has not looked at."""
        return self.claimed is not None or bool(self._told)

    @property
    def is_at_work(self) -> bool:
        """Whether its thread has not ended, and will."""
        return self._thread.is_alive() and not self.is_lost

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def tell(self, due: Mapping[str, Sequence[int]]) -> None:
        """Hear of due events, by handler."""
        with self._lock:
            self._told |= due
        self._wake.set()

    def stop(self) -> None:
        """Take nothing more."""
        self._is_ending = True
        self._wake.set()

    def _work_on(self) -> None:
        while not self._is_ending and not stopping.is_set():
            self._wake.wait(self._batches.longest_wait(LOOK_INTERVAL))
            self._wake.clear()
            try:
                self.settle()
                while self._look() and not self._is_ending:
                    pass
            except BaseException as error:
                if not self._claimer.hear(error, self.executor):
                    log.exception("a batch failed")
                time.sleep(LOOK_INTERVAL / 4)
            self.is_lost = False
        self.executor.close()

    def _look(self) -> int:
        """Run one batch of each handler at most; return how many runs that were."""
        with self._lock:
            told, self._told = self._told, {}
        return self._batches.run({name: told.get(name, ()) for name in self._names})
