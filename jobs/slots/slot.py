"""One slot: a thread that makes one attempt at a time, on a connection of its own, and outlives every job."""

import logging
import queue
import threading
import time
from datetime import timedelta
from typing import Protocol

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.claimer import AWAY
from hookonce.jobs.handlers import Registry
from hookonce.jobs.report import UnderWay
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

log = logging.getLogger(__name__)

_SETTLES_AGAIN = 0.25
"""Seconds between two tries to settle a run that was cut off."""


class Supplier(Protocol):
    """Gives a slot its runs."""

    def next_for(self, slot: "Slot") -> ClaimedRun | None:
        """Return the run that a slot makes next, while it ends another."""

    def settle(self, slot: "Slot", run: ClaimedRun) -> bool:
        """Give back a run that was cut off, if it was not ended; return False where that must be tried again."""

    def became_free(self, slot: "Slot") -> None:
        """Hear that a slot has ended its last run."""


class Slot:
    """A thread; `give` it a run when it is free."""

    def __init__(self, number: int, executor: Executor, registry: Registry, supplier: Supplier) -> None:
        self.number = number
        self.executor = executor
        self.under_way: UnderWay | None = None
        self.is_lost = False
        self.following: ClaimedRun | None = None
        """The run that it has taken to go on with after the one that is under way."""
        self.has_freed_place = False
        """Whether it has ended a run of a handler of which only so many may be at once: another may wait for that."""
        self._registry = registry
        self._supplier = supplier
        self._given: queue.SimpleQueue[ClaimedRun | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work_on, name=f"slot {number}", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def give(self, run: ClaimedRun) -> None:
        """Have it run this, and then whatever its supplier has next."""
        # At once, so that nobody takes the slot for a free one, or what it is at for something quick.
        if (handler := self._registry.named(run.handler)) is not None:
            self.under_way = UnderWay(run, handler, time.monotonic())
        self._given.put(run)

    def end(self, timeout: float) -> None:
        """Have the thread end, if it does within so many seconds."""
        self._given.put(None)
        self._thread.join(timeout)

    def _work_on(self) -> None:
        while (run := self._given.get()) is not None:
            while run is not None:
                run = self._done(run)
            self.under_way = self.following = None
            self._supplier.became_free(self)
        self.executor.close()

    def _done(self, run: ClaimedRun) -> ClaimedRun | None:
        """Make an attempt; return the next run. Whatever was cut off is settled before another is begun."""
        self.following = None
        try:
            self._attempt(run)
        except AWAY as error:
            log.warning("a slot lost the ledger: %s", type(error).__name__)
        except BaseException:
            log.exception("a slot failed")
        else:
            return self.following
        self.executor.discard()
        while not self._supplier.settle(self, run):
            time.sleep(_SETTLES_AGAIN)
        return self.following

    def _attempt(self, run: ClaimedRun) -> None:
        handler = self._registry.named(run.handler)
        if handler is None:  # cannot be: the claim asked the same registry
            raise LookupError(f"handler '{run.handler}' vanished from the registry")
        self.under_way = at = UnderWay(run, handler, time.monotonic())
        with self.executor.alarm:
            self.executor.attempt(run, handler, self._has_next)
        self.has_freed_place |= handler.limit is not None and handler.limit.concurrency is not None
        self._registry.note(run.handler, timedelta(seconds=time.monotonic() - at.began))
        if self.following is None:
            self.following = self._supplier.next_for(self)

    def _has_next(self) -> bool:
        """Take the next run, while this one ends; return whether there is one."""
        self.following = self._supplier.next_for(self)
        return self.following is not None
