"""One slot: a thread that makes one attempt at a time, on a connection of its own, and outlives every job."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.handlers import Registry
from hookonce.jobs.report import UnderWay
from hookonce.jobs.slots.shelf import Leased
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.runs import transitions
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

log = logging.getLogger(__name__)

AWAY = (psycopg.Error, SQLAlchemyError, LedgerUnavailable)
"""What the ledger's absence looks like: nothing was written, and the lease's end brings the run back."""


class Supplier(Protocol):
    """Gives a slot its runs."""

    def next_for(self, slot: "Slot") -> Leased | None:
        """Return the run that a slot starts next, while it ends another."""

    def put_back(self, leased: Leased) -> None:
        """Take back a run that was not started after all."""

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
        """The run that it has taken to start with the end of the one that is under way."""
        self.has_freed_place = False
        """Whether it has ended a run of a handler of which only so many may be at once: another may wait for that."""
        self._registry = registry
        self._supplier = supplier
        self._given: queue.SimpleQueue[tuple[ClaimedRun, bool] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work_on, name=f"slot {number}", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def give(self, run: ClaimedRun, *, is_started: bool) -> None:
        """Have it run this, and then whatever its supplier has next."""
        # At once, so that nobody takes the slot for a free one, or what it is at for something quick.
        if (handler := self._registry.named(run.handler)) is not None:
            self.under_way = UnderWay(run, handler, time.monotonic())
        self._given.put((run, is_started))

    def end(self, timeout: float) -> None:
        """Have the thread end, if it does within so many seconds."""
        self._given.put(None)
        self._thread.join(timeout)

    def _work_on(self) -> None:
        while (given := self._given.get()) is not None:
            try:
                self._work(*given)
            except AWAY as error:
                log.warning("a slot lost the ledger: %s", type(error).__name__)
                self.executor.discard()
            except BaseException:
                log.exception("a slot failed")
                self.executor.discard()
            finally:
                self.under_way = self.following = None
            self._supplier.became_free(self)
        self.executor.close()

    def _work(self, run: ClaimedRun, is_started: bool) -> None:  # noqa: FBT001
        following: Leased | None = None

        def take() -> ClaimedRun | None:
            nonlocal following
            following = self._supplier.next_for(self)
            return following.run if following else None

        is_started = is_started or transitions.start(self.executor.idle_ledger, run)
        while is_started:
            following = None
            try:
                is_started = self._attempt(run, take)
            except BaseException:
                if following is not None:  # whether it was started nobody knows; its lease tells
                    self._supplier.put_back(following)
                raise
            if following is None:
                return
            if not is_started:
                self._supplier.put_back(following)
                return
            run = following.run

    def _attempt(self, run: ClaimedRun, take: Callable[[], ClaimedRun | None]) -> bool:
        handler = self._registry.named(run.handler)
        if handler is None:  # cannot be: the claim asked the same registry
            raise LookupError(f"handler '{run.handler}' vanished from the registry")
        self.under_way = at = UnderWay(run, handler, time.monotonic())
        self.following = None
        with self.executor.alarm:
            started = self.executor.attempt(run, handler, take)
        self.has_freed_place |= handler.limit is not None and handler.limit.concurrency is not None
        self._registry.note(run.handler, timedelta(seconds=time.monotonic() - at.began))
        return started
