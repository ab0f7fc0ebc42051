"""How what is under way ends without its slot: a slot that nothing ended is lost, a process that stops gives back.

A run that a lost slot is at is ended as a failed attempt. Runs under way when the process stops are due again, and
not charged.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from hookonce.jobs.attempts import endings
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.claimer import AWAY
from hookonce.jobs.report import UnderWay
from hookonce.jobs.slots.batch_slot import BatchSlot
from hookonce.jobs.slots.slot import Slot
from hookonce.jobs.slots.watchdog import Watched
from hookonce.jobs.stopping import stopping
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

log = logging.getLogger(__name__)

_MAX_NAMED = 5
"""Handlers that are named in one line."""
LOST_SHARE = 4
"""One slot in so many lost, and the process starts anew."""


class Ending:
    """The lost slots of one process; for all its threads."""

    def __init__(
        self, slots: Sequence[Slot], batch_slot: BatchSlot | None, on_lost: Callable[[], None]
    ) -> None:
        """`on_lost` is called when there is something to end by `end_lost`."""
        self.is_broken = False
        """Whether so much is lost that the process is to start anew."""
        self._slots = slots
        self._batch_slot = batch_slot
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._lost: list[tuple[Slot, UnderWay]] = []

    def lose(self, slot: Watched) -> None:
        """Count a slot as lost; the watchdog's thread calls this, again and again."""
        if isinstance(slot, Slot):
            self._lose_slot(slot)
        elif isinstance(slot, BatchSlot):
            self._lose_batches(slot)

    def came_back(self, slot: Slot) -> None:
        """Hear that a slot has ended what it was at, after all."""
        with self._lock:
            was_lost, slot.is_lost = slot.is_lost, False
        if was_lost:
            log.warning("slot %d has come back", slot.number)

    def end_lost(self, executor: Executor) -> None:
        """End what lost slots are at, as failed; a slot that has ended it just now finds it ended, or we do.

        What could not be ended, since the ledger was away, is left for the next time.
        """
        with self._lock:
            lost, self._lost = self._lost, []
        for slot, at in lost:
            if slot.under_way is not at:
                continue
            try:
                executor.end_for_lost(at.run, at.handler, slot.executor.alarm.time_up())
            except Exception as error:  # noqa: BLE001  what is lost must not keep the others from theirs
                log.warning("what a lost slot is at was not ended: %s", type(error).__name__)
                executor.discard()
                with self._lock:
                    self._lost.append((slot, at))

    @property
    def is_anything_under_way(self) -> bool:
        """Whether anything is under way that may yet end by itself."""
        is_batch = self._batch_slot is not None and self._batch_slot.is_at_work
        return is_batch or bool(self._under_way())

    def say_what_is_waited_for(self, grace: timedelta, suspects: int = 0) -> None:
        """Tell whoever has asked the process to stop what it, and so many children with suspects, are still at."""
        under_way = self._under_way()
        if under_way or suspects:
            counts = Counter(at.handler.name for at in under_way).most_common()
            named = [f"{name} ({count})" for name, count in counts[:_MAX_NAMED]]
            named += ["…"] * (len(counts) > _MAX_NAMED) + [f"run alone ({suspects})"] * bool(suspects)
            log.warning(
                "waiting up to %g s for %d to end before it stops: %s; what is left then, or at Ctrl-C again, is given "
                "back and not counted",
                grace.total_seconds(),
                len(under_way) + suspects,
                ", ".join(named),
            )

    def _under_way(self) -> list[UnderWay]:
        places = [each for each in self._slots if not each.is_lost]
        found = [at for each in places if (at := each.under_way) is not None]
        if (
            (slot := self._batch_slot) is not None
            and not slot.is_given_up
            and (at := slot.under_way) is not None
        ):
            found.append(at)
        return found

    def give_back(self, executor: Executor) -> None:
        """End what is lost, and let go of what is under way: due at once. Where that fails, its lease's end does it."""
        self.end_lost(executor)
        under_way = [at.run for each in self._slots if (at := each.under_way) and not each.is_lost]
        steps: list[Callable[[], None]] = [partial(_hand_back, executor, run) for run in under_way]
        if self._batch_slot is not None and isinstance(executor, BatchExecutor):
            steps.append(partial(self._batch_slot.give_back, executor))
        for step in steps:
            try:
                step()
            except AWAY as error:
                log.warning("what was under way was not given back: %s", type(error).__name__)
                executor.discard()

    def _lose_slot(self, slot: Slot) -> None:
        with self._lock:
            at = slot.under_way
            if slot.is_lost or at is None:
                return
            slot.is_lost = True
            self._lost.append((slot, at))
            lost = sum(each.is_lost for each in self._slots)
        log.error(
            "slot %d is lost: handler %s stays in spite of its time limit, with event %d",
            slot.number,
            at.handler.name,
            at.run.event.id,
            extra=endings.names_of(at.run),
        )
        self._on_lost()
        if lost * LOST_SHARE >= len(self._slots):
            self._break(f"{lost} of {len(self._slots)} slots are lost")

    def _lose_batches(self, slot: BatchSlot) -> None:
        if not self.is_broken and (at := slot.lose()) is not None:
            self._break(f"a batch of handler {at.handler.name} goes on in spite of its time limit")

    def _break(self, why: str) -> None:
        if not self.is_broken:
            log.error("%s; the process starts anew", why)
            self.is_broken = True
            stopping.set()


def _hand_back(executor: Executor, run: ClaimedRun) -> None:
    is_given_back = executor.hand_back(run)
    executor.claims.settled([run])
    if is_given_back:
        log.warning("given back, not counted: event %d (handler %s)", run.event.id, run.handler)
