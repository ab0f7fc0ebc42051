"""The thread of a process that takes batches, beside its slots: one after the other, on a connection of its own.

It looks for them by itself: they need no room, and what the claims of others leave to them may lie behind much else.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.batches.batch_drain import BatchDrain
from hookonce.jobs.claimer import AWAY
from hookonce.jobs.handlers import Registry
from hookonce.jobs.report import UnderWay
from hookonce.jobs.stopping import stopping
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.due_cursor import DueCursor

log = logging.getLogger(__name__)

LOOK_INTERVAL = 1.0
"""Seconds after which it looks, if nobody has told it of any."""


class BatchSlot:
    """One thread; `tell` it of events that its handlers take."""

    def __init__(
        self, executor: BatchExecutor, registry: Registry, cursor: DueCursor, notify: Callable[[], None]
    ) -> None:
        """Take batches of the handlers of `registry` from where `cursor` is, which whoever claims for others moves."""
        self.executor = executor
        self.is_lost = False
        self._lost: ClaimedBatch | ClaimedRun | None = None
        self._notify = notify
        self._names = sorted({handler.name for handler in registry if handler.batch})
        self._drain = BatchDrain(executor, registry, cursor)
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
        return self._drain.claimed is not None or bool(self._told)

    @property
    def under_way(self) -> UnderWay | None:
        """What it is at; of a batch the first run."""
        return self._drain.under_way

    def begin(self) -> None:
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

    @property
    def is_at_work(self) -> bool:
        """Whether its thread has not ended, and will."""
        return self._thread.is_alive() and not self.is_given_up

    @property
    def is_given_up(self) -> bool:
        """Whether nothing ends what it is at."""
        return self._lost is not None and self._lost is self._drain.claimed

    def lose(self) -> UnderWay | None:
        """Note that nothing ends what it is at; return that."""
        self._lost = self._drain.claimed
        return self.under_way

    def give_back(self, executor: BatchExecutor) -> None:
        """Let go of what is under way, on another connection: due at once, and charged with nothing.

        What nothing has ended has failed: a batch is halved, and a run by itself has used an attempt up.
        """
        at, under_way = self._drain.claimed, self.under_way
        if self.is_given_up and under_way is not None and at is not None:
            executor.end_for_lost(at, under_way.handler, self.executor.alarm.time_up())
        elif isinstance(at, ClaimedBatch):
            executor.hand_back_batch(at)
        elif at is not None:
            executor.hand_back(at)

    def _work_on(self) -> None:
        while not self._is_ending and not stopping.is_set():
            self._wake.wait(self._drain.patience(LOOK_INTERVAL))
            self._wake.clear()
            try:
                self._drain.settle_left()
                while self._look() and not self._is_ending:
                    pass
            except AWAY as error:
                log.warning("batches lost the ledger: %s", type(error).__name__)
                self._rest()
            except BaseException:
                log.exception("a batch failed")
                self._rest()
        self.executor.close()

    def _look(self) -> int:
        """Run one batch of each handler at most; return how many runs that were."""
        with self._lock:
            told, self._told = self._told, {}
        due = {name: told.get(name, ()) for name in self._names}
        return self._drain.run(due, float("inf"), self._notify)

    def _rest(self) -> None:
        self.executor.discard()
        time.sleep(LOOK_INTERVAL / 4)
