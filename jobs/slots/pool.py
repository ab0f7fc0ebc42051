"""Many slots in one process: one thread claims for all of them, each slot works on a connection of its own.

The main thread is RQ's alone: it hands notifications over and goes on, so that its heartbeats are in time. A slot that
ends a run takes the next one from the buffer by itself; the thread that claims is woken where the buffer runs low, and
hands runs to slots that are free.
"""

import logging
import threading
import time
from collections.abc import Sequence
from datetime import timedelta

from hookonce.jobs.attempts import failure_callbacks
from hookonce.jobs.attempts.attempt import Executor, MakeTransactions
from hookonce.jobs.attempts.ports import Claimed
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.handlers import Registry
from hookonce.jobs.report import Report
from hookonce.jobs.slots.batches import Batches
from hookonce.jobs.slots.capacity import Capacity
from hookonce.jobs.slots.lost_slots import FailureCalls, LostSlots
from hookonce.jobs.slots.slot import Slot, SlotThread
from hookonce.jobs.slots.slot_limit import USUAL, SlotLimit, Timeouts, Watchdog
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

log = logging.getLogger(__name__)

RESTART = 75
"""The exit status where too many slots are lost: EX_TEMPFAIL of sysexits.h."""
TICK = 1.0
_AWAY_PAUSE = 0.25
_SILENCE = 0.5
"""Seconds after which it is said what is waited for: nobody asks for what ends at once."""
_LAST_CLAIM = 1.0
"""Seconds that a claim has to come to its end when nothing else is waited for."""
_CALL_INTERVAL = 0.1
"""Seconds between two notifications of what is due besides, and between two looks for runs that are late."""


class Pool(Claimer):
    """Claims for many slots of one process. `run_due` returns at once: others do the work."""

    def __init__(  # noqa: PLR0913  a process's parts, and its waits
        self,
        settings: Settings,
        registry: Registry,
        transactions: MakeTransactions = HandlerTransactions,
        *,
        slots: int,
        suspects_overdue: timedelta | None = None,
        timeouts: Timeouts = USUAL,
    ) -> None:
        """With `suspects_overdue` nothing is claimed but suspects that were due for so long."""
        super().__init__(settings, registry, transactions, connections=slots + 3)
        self._timeouts = timeouts
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._slots = [
            SlotThread(self._new_executor(), registry, self, n + 1, self._work_on) for n in range(slots)
        ]
        self._free = list(reversed(self._slots))
        self._capacity = Capacity(registry, self._slots, self.buffer)
        self._suspects_overdue = suspects_overdue
        self._suspect_at = time.monotonic()
        self._batches = Batches(self)
        has_batches = bool(self._batches.names) and suspects_overdue is None
        self._lane = (
            SlotThread(self._new_executor(), registry, None, 0, self._work_on) if has_batches else None
        )
        self._failure_calls = FailureCalls(self._new_executor())
        self.executor.tell_failure = self._failure_calls.put
        self._lost = LostSlots(self._slots, self._lane, self._wake.set)
        self._is_lane_free = has_batches
        self._all = [*self._slots, *([self._lane] if self._lane else [])]
        self.all_slots = self._all
        limits = [(each, self._limited(each.executor)) for each in self._all]
        self._watchdog = Watchdog(
            [*limits, (None, self._limited(self._failure_calls.executor))], self._lost.lose
        )
        self._report = Report(self._slots, self._all[slots:])
        self._named: list[int] = []
        self._is_asked = False
        self._is_more = False
        self._is_ending = False
        self._calls_at = self._late_at = self._lane_at = 0.0
        self._thread: threading.Thread | None = None

    def run_due(self, ids: Sequence[int] = ()) -> int:
        """Have what is due looked for, the events of `ids` first; return at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._claim_on, name="claims", daemon=True)
            for each in self._all:
                each.start()
            self._watchdog.start()
            self._thread.start()
        with self._lock:
            self._named += ids
        self._ask()
        return 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, leased or asked for."""
        with self._lock:
            is_asked = self._is_asked or bool(self._named) or self._is_more
            is_batch = self._lane is not None and not (self._is_lane_free and not self._batches.left)
            is_free = len(self._free) == len(self._slots)
            return not (is_asked or is_batch) and is_free and not len(self.buffer)

    def has_had_no_suspect_for(self, span: timedelta) -> bool:
        """Return whether no suspect was met or under way for so long."""
        is_free = len(self._free) == len(self._slots)
        return is_free and time.monotonic() > self._suspect_at + span.total_seconds()

    @property
    def _is_batch_under_way(self) -> bool:
        return not self._is_lane_free

    # What slots ask of it, in their threads

    def next_for(self, slot: Slot) -> ClaimedRun | None:
        """Return the run that a slot makes next, while it ends another."""
        if stopping.is_set() or self._is_ending or slot.is_lost:
            return None
        run = self._capacity.take(self.may_start, ending=slot)
        if self._is_more and not self._is_asked and self._capacity.wants_more:
            self._ask()
        return run

    def _work_on(self, slot: SlotThread, claimed: Claimed) -> None:
        """Have a slot make an attempt, and those of the runs that follow; then it is free."""
        try:
            slot.work(claimed)
        except BaseException as error:
            if not self.hear(error, slot.executor):
                log.exception("a slot failed")
            while not self._is_settled(slot):
                time.sleep(_AWAY_PAUSE)
        self._lost.came_back(slot)
        if slot is self._lane:
            self._is_lane_free = True
            self._wake.set()
            return
        with self._lock:
            self._free.append(slot)
        has_freed_limit, slot.has_freed_limit = slot.has_freed_limit, False
        if self._is_more or has_freed_limit or len(self.buffer):
            self._ask()

    def _is_settled(self, slot: Slot) -> bool:
        """Settle what was cut off in a slot; return False where the ledger is away."""
        if self._is_ending and slot.claimed is not None:  # its lease's end does it
            self._held.drop([slot.claimed[0].token])
            slot.claimed = None
        try:
            slot.settle()
        except BaseException as error:
            if not self.hear(error, slot.executor):
                log.exception("what was cut off in a slot was not settled")
            return False
        return True

    def _ask(self) -> None:
        self._is_asked = True
        self._wake.set()

    # What the thread that claims does

    def _claim_on(self) -> None:
        while not self._is_ending:
            self._wake.wait(self._batches.longest_wait(TICK) if self._is_lane_free else TICK)
            self._wake.clear()
            try:
                self._tend()
                if self._is_away:
                    self._note_back()
            except BaseException as error:
                if not self.hear(error, self.executor):
                    log.exception("a claim failed")
                time.sleep(_AWAY_PAUSE)

    def _tend(self) -> None:
        """Do what is due besides, then claim as long as there is capacity and something may be due."""
        self._settle_doubtful()
        self._lost.end_lost(self, self.executor)
        self._give_back_late()
        self._look_around()
        if self._suspects_overdue is not None:
            self._start_suspect(self._suspects_overdue)
            return
        self._report.tend(self.executor.idle_ledger)
        self._tend_lane(TICK)
        until = time.monotonic() + TICK
        while self._has_capacity() and not stopping.is_set() and not self._is_ending:
            if time.monotonic() > until:  # much that takes no slot: the rest must be tended, too
                self._wake.set()
                break
            try:
                self._fill()
            finally:
                self._capacity.end_claim()
            self._tend_lane()

    def _tend_lane(self, look_after: float = float("inf")) -> None:
        """Give the lane the next batch; look for some of all handlers so many seconds after that was done."""
        if self._lane is None or not self._is_lane_free or stopping.is_set() or self._is_ending:
            return
        if time.monotonic() > self._lane_at + look_after:
            self._lane_at = time.monotonic()
            self._batches.left.update(self._batches.names)
            self._park_head()
        if (claimed := self._batches.take()) is not None:
            self._is_lane_free = False
            self._lane.give(claimed)
        elif self._batches.left:  # the slots' turn comes before the next claim
            self._wake.set()

    def _start_suspect(self, overdue: timedelta) -> None:
        """Have the slot run a suspect, if it is free and one is due."""
        with self._lock:
            self._is_asked, self._named = False, []
        if self._free and not stopping.is_set():
            if (run := self._claim_suspect(overdue)) is None:
                return
            self._is_more = True
            self._give(run)
        self._suspect_at = time.monotonic()

    def _has_capacity(self) -> bool:
        return (self._is_asked or bool(self._named)) and (bool(self._free) or self._capacity.wants_more)

    def _fill(self) -> None:
        """Claim for the slots that are free, and some runs ahead; hand those runs out."""
        with self._lock:
            ids, self._named = self._named, []
            self._is_asked = bool(ids)
            free = len(self._free)
        claim = self._claim(
            ids or None, self._capacity.of_claim(free), self._budget_ends(), at_once=max(free, 1)
        )
        self._is_more = claim.is_more if claim.runs or not ids else self._is_more
        self._batches.left.update(self._batches.names if claim.is_anything_lost else claim.batched)
        self._capacity.end_claim()
        while self._free and (run := self._capacity.take(self.may_start)) is not None:
            self._give(run)
        is_ahead = claim.runs or claim.met  # what is ignored or put off, too, hides what is behind it
        if claim.is_anything_lost or (claim.is_more and is_ahead) or claim.waiting:
            self._is_asked = True
            if not claim.is_anything_lost:
                self.call_for_help()

    def _give(self, run: ClaimedRun) -> None:
        with self._lock:
            slot = self._free.pop()
        slot.give([run])

    def _give_back_late(self) -> None:
        """Give back what is leased and can't be started any more."""
        is_over = self._is_ending or stopping.is_set()
        if not is_over and time.monotonic() < self._late_at:
            return
        self._late_at = time.monotonic() + _CALL_INTERVAL
        self._release(self.buffer.take_late(None if is_over else self.may_start))

    def call_for_help(self) -> None:
        """Notify for what is more than a batch; not each time, for our own main thread may be who takes it.

        What is left out is not made up for: while there is more, the next claim calls again.
        """
        if time.monotonic() >= self._calls_at:
            self._calls_at = time.monotonic() + _CALL_INTERVAL
            self._notify()

    def _limited(self, executor: Executor) -> SlotLimit:
        """Have another thread's executor share what this process knows, and return the time limit that it is given."""
        limit = SlotLimit(executor.connection, self._timeouts)
        executor.alarm = limit
        return limit

    # The end

    def finish(self) -> int:
        """Claim no more, wait for what is under way, and give back what does not end in time; return the exit status.

        After that slots may go on that nothing has ended: the process is to exit without waiting for them.
        """
        self._is_ending = True
        self._wake.set()
        if self._thread is not None:
            self._wait_for_the_end(self._thread)
            self._watchdog.end()
            last = self._new_executor()  # the claiming thread may still be at the other
            last.tell_failure = self._failure_calls.put
            ours, self.executor = self.executor, last
            with self.tolerating("what was leased was not given back"):
                self._release(self.buffer.take_late())
            self._lost.give_back(self, last)
            with self.tolerating("the end was not reported"):
                self._report.end(last.connection.ledger)
            super().finish()
            last.close()
            self.executor = ours
            if not hurrying.is_set():
                self._failure_calls.wait(failure_callbacks.TIMEOUT.total_seconds())
        return RESTART if self._lost.is_broken else 0

    def _wait_for_the_end(self, thread: threading.Thread) -> None:
        grace = self._timeouts.broken if self._lost.is_broken else self._timeouts.stop
        until = time.monotonic() + grace.total_seconds()
        say_at = time.monotonic() + _SILENCE
        while time.monotonic() < until and not hurrying.is_set() and self._is_at_work(thread):
            if time.monotonic() >= say_at:
                say_at = until
                self._lost.say_what_is_waited_for(grace)
            time.sleep(_AWAY_PAUSE / 10)
        thread.join(_LAST_CLAIM)

    def _is_at_work(self, thread: threading.Thread) -> bool:
        return thread.is_alive() or self._lost.is_anything_left

    def close(self) -> None:
        """End, and close every connection; for tests."""
        self.finish()
        for slot in self._all if self._thread else ():
            slot.end(TICK)
        super().close()
