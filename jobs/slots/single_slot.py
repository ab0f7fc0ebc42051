"""One slot in the main thread: a worker that makes the attempts of what it claims, one at a time.

When it is notified it runs the events that were named, then whatever else is due, within a budget. The budget keeps one
job from holding a worker for ever and lets others help: a worker that stops on it, or finds more than one batch,
notifies again. What was claimed and cannot be started in time is given back.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.attempts.ports import Attempt
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.claimer import SUSPECTS_INTERVAL, Claimer
from hookonce.jobs.handlers import Registry
from hookonce.jobs.report import Reporter
from hookonce.jobs.slots.batches import Batches
from hookonce.jobs.slots.capacity import OneAtATime
from hookonce.jobs.slots.slot import Slot
from hookonce.jobs.stopping import stopping
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.claims import Claim

MAX_EVENTS = 1000


class SingleSlot(Claimer):
    """Claims due runs and makes their attempts, one at a time, in the thread that calls it."""

    def __init__(
        self, settings: Settings, registry: Registry, transactions: MakeTransactions = HandlerTransactions
    ) -> None:
        super().__init__(settings, registry, transactions)
        self.slot = Slot(self.executor, registry, self)
        self.all_slots = [self.slot]
        self._batches = Batches(self)
        self._room = OneAtATime(registry)

    @property
    def under_way(self) -> Attempt | None:
        """The attempt that goes on."""
        return self.slot.under_way

    def run_due(self, ids: Sequence[int] = ()) -> int:
        """Run what is due, the events of `ids` first, until nothing is or the budget is used; count the attempts.

        Raises nothing when a server is away: what is due stays due, and the sweep brings it back.
        """
        try:
            self._settle_left()
            self._look_around()
            return self._run_until(self._budget_ends(), ids or None)
        except BaseException as error:
            if not self.hear(error, self.executor):
                raise
        return 0

    def run_suspects(self, until: float = float("inf"), *, at_most: float = float("inf")) -> int:
        """Run what may have been under way when a process died, one by one; count the attempts.

        Ends by a time of our monotonic clock, when none is left, or after so many. Raises what is raised where the
        ledger is away.
        """
        attempts = 0
        while not stopping.is_set() and time.monotonic() < until and attempts < at_most:
            if (run := self._claim_suspect()) is None:
                break
            attempts += self.slot.work([run])
        return attempts

    def reporting(self) -> AbstractContextManager[object]:
        """Report for the desk what takes long, as long as a block lasts."""
        return Reporter(self.slot, self.lent)

    def longest_wait(self, longest: float) -> float:
        """Return how long (seconds) a worker may wait for a notification before it is to look again."""
        return self._batches.longest_wait(longest)

    def next_for(self, _slot: Slot) -> ClaimedRun | None:
        """Return the run that is to be started next, if one may be."""
        return None if stopping.is_set() else self.buffer.take(self.may_start)

    def _settle_left(self) -> None:
        """Settle what was claimed when the ledger went away: nothing else is begun before."""
        self._settle_doubtful()
        self.slot.settle()
        self._release(self.buffer.take_late())

    def _run_until(self, until: float, named: Sequence[int] | None) -> int:
        attempts = events = 0
        self._batches.left.update(self._batches.names)
        while not stopping.is_set():
            self._room.quick_first ^= True  # every other time what waits longest goes first
            claim = self._claim(named, self._room, until)
            if self._is_away:
                self._note_back()
            if claim.is_more:
                self._notify()
            self._batches.left.update(self._batches.names if claim.is_anything_lost else claim.batched)
            count = self._run_claimed(claim)
            if named is None:  # else what is due besides is yet to be met: it is of the same batches
                count += self._run_batches(until)
            suspects = self._run_suspects_beside(claim, until, max(count, 1))
            attempts += count + suspects
            has_done = count or suspects or claim.met or claim.waiting or claim.is_anything_lost
            if not (has_done or self._batches.left) and named is None:
                break
            named = None
            events += max(claim.met, count)
            if time.monotonic() > until or events >= MAX_EVENTS:
                self._notify()
                break
        return attempts

    def _run_claimed(self, claim: Claim) -> int:
        """Run what a claim has leased, its first run in any case; count the runs."""
        count = 0
        if claim.runs and (first := self.buffer.take_first()) is not None:
            count = self.slot.work([first])
        self._release(self.buffer.take_late())
        return count

    def _run_batches(self, until: float) -> int:
        """Run a batch, and more within the budget, as many as handlers may have one; count the runs."""
        count = 0
        for _ in range(len(self._batches.left)):
            if (count and time.monotonic() >= until) or (claimed := self._batches.take(until)) is None:
                break
            count += self.slot.work(claimed)
        return count

    def _run_suspects_beside(self, claim: Claim, until: float, at_most: int) -> int:
        """Run suspects after what else was claimed, one at least and as many as that, so that neither starves."""
        if not claim.has_suspects or time.monotonic() < self._suspects_at:
            return 0
        attempts = self.run_suspects(until, at_most=at_most)
        if not attempts:  # they are others' to run
            self._suspects_at = time.monotonic() + SUSPECTS_INTERVAL.total_seconds()
        return attempts
