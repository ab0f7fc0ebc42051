"""Many runs at once in one process: one thread claims for all slots, each slot works on a connection of its own.

The main thread is RQ's alone: it hands notifications over and goes on, so that its heartbeats are in time. A slot that
ends a run starts the next that is leased in the same round trip; for slots that are free runs are started by the claim.
One slot is kept for handlers that are known to be quick, so that slow ones never have all of them.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence

import psycopg
from sqlalchemy.exc import DataError

from hookonce.jobs.attempts import failure_callbacks
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.claimer import AWAY, DRAIN_BUDGET, SUSPECTS_INTERVAL, Claimer
from hookonce.jobs.handlers import Registry
from hookonce.jobs.report import Report
from hookonce.jobs.slots.batch_slot import BatchSlot
from hookonce.jobs.slots.ending import Ending
from hookonce.jobs.slots.failure_calls import FailureCalls
from hookonce.jobs.slots.occupancy import Occupancy
from hookonce.jobs.slots.patience import USUAL, Patience
from hookonce.jobs.slots.shelf import Leased, Shelf
from hookonce.jobs.slots.slot import Slot
from hookonce.jobs.slots.slot_limit import SlotLimit
from hookonce.jobs.slots.suspects import Suspects
from hookonce.jobs.slots.watchdog import Watchdog, Watched
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.claims import Claim

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
"""Seconds between two notifications of what is due besides."""


class Pool(Claimer):
    """Claims for many slots of one process. `run_due` returns at once: others do the work."""

    def __init__(  # noqa: PLR0913  a process's parts, and its waits
        self,
        settings: Settings,
        registry: Registry,
        attempts_by: Callable[..., Executor] = BatchExecutor,
        *,
        slots: int,
        suspects: Suspects | None = None,
        patience: Patience = USUAL,
    ) -> None:
        super().__init__(settings, registry, attempts_by, connections=slots + 3)
        self._patience = patience
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._slots = [Slot(n + 1, self._new_executor(), registry, self) for n in range(slots)]
        self._batch_slot = self._new_batch_slot()
        self._is_told = False
        self._failure_calls = FailureCalls(self._new_executor())
        self._executor.tell_failure = self._failure_calls.put
        self._ending = Ending(self._slots, self._batch_slot, self._wake.set)
        places: list[Watched] = [*self._slots, self._failure_calls]
        if self._batch_slot is not None:
            places.append(self._batch_slot)
        self._watchdog = Watchdog(
            [(each, self._limited(each.executor)) for each in places], self._ending.lose
        )
        self._free = list(reversed(self._slots))
        self._shelf = Shelf()
        self._occupancy = Occupancy(registry, self._slots, self._shelf)
        self._calls_at = 0.0
        self._suspects = suspects
        if suspects is not None:
            suspects.handlers = registry
        self._count_suspects = suspects.count if suspects is not None else lambda: 0
        self._report = Report(
            self._slots,
            [self._batch_slot] if self._batch_slot is not None else [],
            self._count_suspects,
        )
        self._named: list[int] = []
        self._is_asked = False
        self._is_more = False
        self._is_ending = False
        self._claimer: threading.Thread | None = None

    def run_due(self, ids: Sequence[int] = ()) -> int:
        """Have what is due looked for, the events of `ids` first; return at once."""
        if self._claimer is None:
            self._claimer = threading.Thread(target=self._claim_on, name="claims", daemon=True)
            for slot in self._slots:
                slot.begin()
            if self._batch_slot is not None:
                self._batch_slot.begin()
            self._watchdog.begin()
            self._claimer.start()
        with self._lock:
            self._named += ids
            self._is_asked = True
        self._wake.set()
        return 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, leased or asked for."""
        with self._lock:
            is_asked = self._is_asked or bool(self._named) or self._is_more
            is_batch = self._batch_slot is not None and self._batch_slot.is_busy
            is_free = len(self._free) == len(self._slots)
            return not (is_asked or is_batch) and is_free and not len(self._shelf)

    def next_for(self, slot: Slot) -> ClaimedRun | None:
        """Return the run that a slot makes next, while it ends another."""
        if stopping.is_set() or self._is_ending or slot.is_lost:
            return None
        run = self._occupancy.take(self._may_start, ending=slot)
        if self._is_more and self._occupancy.wants_more:
            self._ask()
        return run

    def settle(self, slot: Slot, run: ClaimedRun) -> bool:
        """Give back a run that was cut off in a slot, if it was not ended; return False where the ledger is away."""
        self._train.doubt()
        if self._is_ending:  # its lease's end does it
            self._held.drop([run.token])
            return True
        try:
            self._settle(slot.executor, run)
        except AWAY:
            slot.executor.discard()
            return False
        return True

    def became_free(self, slot: Slot) -> None:
        """Hear that a slot has ended its last run."""
        self._ending.came_back(slot)
        with self._lock:
            self._free.append(slot)
        has_freed_place, slot.has_freed_place = slot.has_freed_place, False
        if self._is_more or has_freed_place or len(self._shelf):
            self._ask()

    def finish(self) -> int:
        """Claim no more, wait for what is under way, and give back what does not end in time; return the exit status.

        After that slots may go on that nothing has ended: the process is to exit without waiting for them.
        """
        self._is_ending = True
        self._wake.set()
        if self._batch_slot is not None:
            self._batch_slot.stop()
        if self._claimer is not None:
            grace = self._patience.broken if self._ending.is_broken else self._patience.stop
            until = time.monotonic() + grace.total_seconds()
            say_at = time.monotonic() + _SILENCE
            while time.monotonic() < until and not hurrying.is_set() and self._is_at_work():
                if time.monotonic() >= say_at:
                    say_at = until
                    self._ending.say_what_is_waited_for(grace, self._count_suspects())
                time.sleep(_AWAY_PAUSE / 10)
            self._claimer.join(_LAST_CLAIM)
            self._watchdog.end()
            last = self._new_executor()  # the claiming thread may still be at the other
            last.failure_rows, last.tell_failure = self._executor.failure_rows, self._failure_calls.put
            ours, self._executor = self._executor, last
            try:
                self._release(self._shelf.take_all(lambda _: True))
                self._ending.give_back(last)
                self._report.end(last.ledger)
            except AWAY as error:
                log.warning("what was leased was not given back: %s", type(error).__name__)
            super().finish()
            last.close()
            self._executor = ours
            if not hurrying.is_set():
                self._failure_calls.wait(failure_callbacks.TIMEOUT.total_seconds())
        return RESTART if self._ending.is_broken else 0

    def _is_at_work(self) -> bool:
        return bool(self._claimer and self._claimer.is_alive()) or self._ending.is_anything_under_way

    def close(self) -> None:
        """End, and close every connection; for tests."""
        self.finish()
        for slot in self._slots if self._claimer else ():
            slot.end(TICK)
        super().close()

    def _ask(self) -> None:
        with self._lock:
            self._is_asked = True
        self._wake.set()

    def _claim_on(self) -> None:
        while not self._is_ending:
            self._wake.wait(TICK)
            self._wake.clear()
            try:
                self._tend()
                self._log_availability(is_away=None)
            except (psycopg.DataError, DataError):  # no outage: it is there, and would say the same for ever
                log.exception("what the ledger holds, or what it was given, does not fit")
                self._rest()
            except AWAY as error:
                self._log_availability(is_away=type(error).__name__)
                self._rest()
            except Exception:
                log.exception("a claim failed")
                self._rest()
        if self._suspects is not None:
            self._suspects.stop(self._executor.ledger_for_once)

    def _rest(self) -> None:
        self._executor.discard()
        time.sleep(_AWAY_PAUSE)

    def _tend(self) -> None:
        """Do what is due besides, then claim as long as there is room and something may be due."""
        self._settle_doubtful()
        self._ending.end_lost(self._executor)
        self._let_go()
        self._look_around()
        self._report.tend(self._executor.idle_ledger)
        if self._suspects is not None and time.monotonic() > self._suspects_at:
            self._suspects_at = time.monotonic() + SUSPECTS_INTERVAL.total_seconds()
            self._suspects.tend(self._executor.idle_ledger, sorted({each.name for each in self._registry}))
        until = time.monotonic() + TICK
        while self._has_room() and not stopping.is_set() and not self._is_ending:
            if time.monotonic() > until:  # much that takes no room: the rest must be tended, too
                self._wake.set()
                break
            try:
                self._fill()
            finally:
                self._occupancy.end_claim()

    def _has_room(self) -> bool:
        with self._lock:
            is_asked, free = self._is_asked or bool(self._named), len(self._free)
        return is_asked and (free > 0 or self._occupancy.wants_more)

    def _fill(self) -> None:
        """Claim for the slots that are free, and some runs ahead."""
        with self._lock:
            ids, self._named = self._named, []
            self._is_asked = bool(ids)
            free = len(self._free)
        self._take_up()
        began = time.monotonic()
        claim = self._claim(ids or None, self._occupancy.room(free), at_once=max(free, 1))
        self._is_more = claim.is_more if claim.runs or not ids else self._is_more
        self._tell_of_batches(claim)
        if claim.runs or claim.waiting:
            reach("run.claimed")
            self._hand_out(claim, began + DRAIN_BUDGET.total_seconds())
        is_ahead = claim.runs or claim.met  # what is ignored or put off, too, hides what is behind it
        if claim.is_anything_lost or (claim.is_more and is_ahead) or claim.waiting:
            with self._lock:
                self._is_asked = True
            if not claim.is_anything_lost:
                self._call_for_help()

    def _call_for_help(self) -> None:
        """Notify for what is more than a batch; not each time, for our own main thread may be who takes it.

        What is left out is not made up for: while there is more, the next claim calls again.
        """
        if time.monotonic() >= self._calls_at:
            self._calls_at = time.monotonic() + _CALL_INTERVAL
            self._notify()

    def _new_batch_slot(self) -> BatchSlot | None:
        """Make the slot that takes batches, if any handler does."""
        executor = self._new_executor()
        slot = (
            BatchSlot(executor, self._registry, self._cursor, self._call_for_help)
            if isinstance(executor, BatchExecutor)
            else None
        )
        if slot is None or not slot.is_needed:
            return None
        return slot

    def _limited(self, executor: Executor) -> SlotLimit:
        """Have another thread's executor share what this process knows, and return the time limit that it is given."""
        limit = SlotLimit(executor, self._patience)
        executor.alarm = limit
        executor.failure_rows = self._executor.failure_rows
        return limit

    def _tell_of_batches(self, claim: Claim) -> None:
        """Hand over what is left to a batch, and look once for what is behind it."""
        if self._batch_slot is None or not claim.batchable:
            self._is_told = False
            return
        self._batch_slot.tell(claim.batchable)
        if not claim.runs:
            with self._lock:
                self._is_asked = self._is_asked or not self._is_told
            self._is_told = not self._is_told

    def _hand_out(self, claim: Claim, until: float) -> None:
        self._shelf.put(claim.runs, until)
        self._occupancy.end_claim()
        while self._free and (run := self._occupancy.take(self._may_start)):
            self._take_free().give(run)

    def _take_free(self) -> Slot:
        with self._lock:
            return self._free.pop()

    def _let_go(self) -> None:
        """Release what is leased and can't be started any more."""
        now = time.monotonic()

        def is_over(leased: Leased) -> bool:
            is_late = now >= leased.until
            return self._is_ending or stopping.is_set() or is_late or not self._may_start(leased.run)

        if over := self._shelf.take_all(is_over):
            try:
                self._release(over)
            except BaseException:
                self._shelf.put(over, now)  # still ours, to be let go of later
                raise
