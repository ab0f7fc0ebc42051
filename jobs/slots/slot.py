"""One slot: makes one attempt at a time, of a run or of a batch, on a connection of its own.

Whatever was cut off in it is settled before it makes another. A process with one slot works in its main thread; each of
many has a thread, which outlives every job.
"""

import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from hookonce.jobs.attempts import endings
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.ports import Attempt, Claimed
from hookonce.jobs.buffer import Buffer
from hookonce.jobs.handlers import Registry
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.takeover import ConnectionLoss, WorkerEnd


class Supplier(Protocol):
    """Gives a slot its runs; its buffer takes back what a slot has not started."""

    buffer: Buffer

    def next_for(self, slot: "Slot") -> ClaimedRun | None:
        """Return the run that a slot makes next, while it ends another."""


class Slot:
    """Makes attempts in the thread that calls `work`; without a supplier each by itself."""

    def __init__(
        self, executor: Executor, registry: Registry, supplier: Supplier | None = None, number: int = 1
    ) -> None:
        self.executor = executor
        self.number = number
        self.claimed: Claimed | None = None
        """The run, or the batch, that it has begun and that is not settled yet."""
        self.under_way: Attempt | None = None
        """The attempt that goes on."""
        self.following: ClaimedRun | None = None
        """The run that it has taken to go on with after the one that is under way."""
        self.worked = 0.0
        """Seconds of the attempts that it has made."""
        self.is_lost = False
        """Whether its handler has gone on in spite of its time limit."""
        self.has_freed_limit = False
        """Whether it has ended a run of a handler of which only so many may be at once: another may wait for that."""
        self._registry = registry
        self._supplier = supplier

    def work(self, claimed: Claimed) -> int:
        """Make an attempt, and those of the runs that follow; return how many runs were ended.

        Raises what ends an attempt without settling it, the ledger's absence above all: then `settle` is to be called.
        """
        count, following = 0, None
        try:
            with self.executor.alarm:
                while True:
                    self._attempt(claimed)
                    count += len(claimed)
                    if (following := self.following or self._take_next()) is None:
                        return count
                    claimed = [following]
        finally:
            self.under_way = None
            if self.following is not None and self._supplier is not None:
                self._supplier.buffer.put_back(self.following)
            self.following = None

    def settle(self) -> None:
        """Give back what was cut off, unless it was ended. Raises what `work` raises."""
        if self.claimed is not None:
            how = WorkerEnd(endings.LEDGER_LEFT, self._registry)
            self.executor.give_back(self.claimed, ConnectionLoss(how))
        self.claimed = None

    def begin(self, claimed: Claimed) -> Attempt:
        """Note what is to be begun, so that nobody takes the slot for a free one."""
        handler = self._registry.named(claimed[0].handler)
        if handler is None:  # cannot be: the claim asked the same registry
            raise LookupError(f"handler '{claimed[0].handler}' vanished from the registry")
        self.under_way = attempt = Attempt(claimed, handler)
        self.claimed, self.following = claimed, None
        return attempt

    def _attempt(self, claimed: Claimed) -> None:
        attempt = self.begin(claimed)
        handler = attempt.handler
        self.executor.attempt(attempt, self._take_next)
        self.worked += (took := time.monotonic() - attempt.began)
        if not attempt.is_batch:
            self._registry.note(handler.name, timedelta(seconds=took))
        self.claimed = None
        self.has_freed_limit |= handler.limit is not None and handler.limit.concurrency is not None

    def _take_next(self) -> ClaimedRun | None:
        """Take the next run, while this one ends."""
        self.following = None if self._supplier is None else self._supplier.next_for(self)
        return self.following


class SlotThread(Slot):
    """A slot with a thread of its own: `give` it a run when it is free."""

    def __init__(
        self,
        executor: Executor,
        registry: Registry,
        supplier: Supplier | None,
        number: int,
        work_on: Callable[["SlotThread", Claimed], None],
    ) -> None:
        """`work_on` is called in its thread for what it is given; it raises nothing. Number 0: the lane of batches."""
        super().__init__(executor, registry, supplier, number)
        self._given: queue.SimpleQueue[Claimed | None] = queue.SimpleQueue()
        self._work_on = work_on
        self._thread = threading.Thread(
            target=self._run, name=f"slot {number}" if number else "batches", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def give(self, claimed: Claimed) -> None:
        """Have it make an attempt, and then those of whatever its supplier has next."""
        self.begin(claimed)
        self._given.put(claimed)

    def end(self, timeout: float) -> None:
        """Have the thread end, if it does within so many seconds."""
        self._given.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (claimed := self._given.get()) is not None:
            self._work_on(self, claimed)
        self.executor.close()
