"""How what is under way ends without its slot: a slot that nothing ended is lost, a process that stops gives back.

A run that a lost slot is at is ended as a failed attempt, a batch is halved. Runs under way when the process stops are
due again, and not charged.
"""

import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from hookonce.jobs.attempts import endings
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt
from hookonce.jobs.attempts.ports import Attempt, Claimed
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.slots.slot import Slot
from hookonce.jobs.stopping import stopping

log = logging.getLogger(__name__)

_MAX_NAMED = 5
"""Handlers that are named in one line."""
LOST_SHARE = 4
"""One slot in so many lost, and the process restarts."""


class LostSlots:
    """The lost slots of one process, and how all are left when it ends; for all its threads."""

    def __init__(self, slots: Sequence[Slot], lane: Slot | None, on_lost: Callable[[], None]) -> None:
        """`on_lost` is called when there is something to end by `end_lost`."""
        self.is_broken = False
        """Whether so much is lost that the process is to start anew."""
        self._slots = slots
        self._lane = lane
        self._all = [*slots, lane] if lane is not None else list(slots)
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._lost: list[tuple[Slot, Attempt]] = []

    def lose(self, slot: Slot) -> None:
        """Count a slot as lost; the watchdog's thread calls this, again and again."""
        with self._lock:
            at = slot.under_way
            if slot.is_lost or at is None:
                return
            slot.is_lost = True
            lost = sum(each.is_lost for each in self._slots)
            self._lost.append((slot, at))
        self._on_lost()
        if slot is self._lane:
            self._break(f"a batch of handler {at.handler.name} goes on in spite of its time limit")
            return
        log.error(
            "slot %d is lost: handler %s stays in spite of its time limit, with event %d",
            slot.number,
            at.handler.name,
            at.run.event.id,
            extra=endings.names_of(at.run),
        )
        if lost * LOST_SHARE >= len(self._slots):
            self._break(f"{lost} of {len(self._slots)} slots are lost")

    def came_back(self, slot: Slot) -> None:
        """Hear that a slot has ended what it was at, after all."""
        with self._lock:
            was_lost, slot.is_lost = slot.is_lost, False
        if was_lost:
            log.warning("slot %d has come back", slot.number)

    def end_lost(self, claimer: Claimer, executor: Executor) -> None:
        """End what lost slots are at, as failed; a slot that has ended it just now finds it ended, or we do.

        What could not be ended, since the ledger was away, is left for the next time.
        """
        with self._lock:
            lost, self._lost = self._lost, []
        for slot, at in lost:
            if slot.under_way is not at or (claimed := slot.claimed) is None:
                continue
            late = slot.executor.alarm.time_up()
            try:
                executor.end_for_lost(claimed, at.handler, late)
            except Exception as error:  # what is lost must not keep the others from theirs
                if not claimer.hear(error, executor):
                    log.exception("what a lost slot is at was not ended")
                with self._lock:
                    self._lost.append((slot, at))

    @property
    def is_anything_left(self) -> bool:
        """Whether anything is under way that may yet end by itself, or is yet to be settled."""
        return any(each.claimed is not None and not each.is_lost for each in self._all)

    def say_what_is_waited_for(self, grace: timedelta) -> None:
        """Log what the process, which was asked to stop, is still at."""
        under_way = [at for each in self._all if not each.is_lost and (at := each.under_way) is not None]
        if under_way:
            counts = Counter(at.handler.name for at in under_way).most_common()
            named = [f"{name} ({count})" for name, count in counts[:_MAX_NAMED]]
            named += ["…"] * (len(counts) > _MAX_NAMED)
            log.warning(
                "waiting up to %g s for %d to end before it stops: %s; what is left then, or at Ctrl-C again, is given "
                "back and not counted",
                grace.total_seconds(),
                len(under_way),
                ", ".join(named),
            )

    def give_back(self, claimer: Claimer, executor: Executor) -> None:
        """End what is lost, and let go of what is under way: due at once. Where that fails, its lease's end does it."""
        self.end_lost(claimer, executor)
        for slot in self._all:
            if not slot.is_lost and (claimed := slot.claimed) is not None:
                with claimer.tolerating("what was under way was not given back", executor):
                    _give_back(claimed, executor)

    def _break(self, why: str) -> None:
        if not self.is_broken:
            log.error("%s; the process restarts", why)
            self.is_broken = True
            stopping.set()


class FailureCalls:
    """Calls the callbacks of `on_failure` for what was ended for a lost slot, in a thread of its own.

    It is begun with the first failure: the thread that ended the run claims for all slots, or ends the process, and
    waits for nobody's callback. One that nothing ends keeps those behind it waiting, and no others.
    """

    def __init__(self, executor: Executor) -> None:
        """Call under the time limit of `executor`, whose connection is not used."""
        self.executor = executor
        self._queue: queue.Queue[FailedAttempt] = queue.Queue()
        self._thread: threading.Thread | None = None

    def put(self, failure: FailedAttempt) -> None:
        """Have the callbacks told of a failure; return at once."""
        self._queue.put(failure)
        if self._thread is None:
            self._thread = threading.Thread(target=self._call_on, name="callbacks", daemon=True)
            self._thread.start()

    def wait(self, timeout: float) -> None:
        """Wait until they have been told of all, for so many seconds at most."""
        with self._queue.all_tasks_done:
            self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, timeout)

    def _call_on(self) -> None:
        while True:
            failure = self._queue.get()
            try:
                with self.executor.alarm:
                    self.executor.call_back(failure)
            except BaseException:
                log.exception("callbacks were not told of a failure")
            finally:
                self._queue.task_done()


def _give_back(claimed: Claimed, executor: Executor) -> None:
    """Give up, on another connection, what a slot is at."""
    if executor.give_back(claimed):
        log.warning("given back, not counted: event %d (handler %s)", claimed[0].event.id, claimed[0].handler)
