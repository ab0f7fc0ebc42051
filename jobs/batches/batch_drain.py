"""The next batch of each handler that has some due, one after the other, within a worker's budget."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial

from hookonce.jobs.attempts import endings
from hookonce.jobs.attempts.last_attempt import LastAttempt
from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.plan import EVERYTHING, Plan
from hookonce.jobs.report import UnderWay
from hookonce.jobs.stopping import stopping
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import batch_claims
from hookonce.receiver.ledger.runs.batch_claims import BatchClaim, BatchHandler
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.due_cursor import BatchCursor, DueCursor
from hookonce.receiver.ledger.runs.takeover import WorkerEnd

_SHORTEST_WAIT = 0.005  # seconds


class BatchDrain:
    """Claims and runs batches for one worker, on the connection of its executor."""

    def __init__(self, executor: BatchExecutor, registry: Registry, cursor: DueCursor) -> None:
        """Run on the connection of `executor`."""
        self._executor = executor
        self._registry = registry
        self._plan = Plan(registry, EVERYTHING)
        self._cursors: defaultdict[str, BatchCursor] = defaultdict(partial(BatchCursor, cursor))
        self._ripe_at: float | None = None
        self.last_attempt: LastAttempt | None = None
        """Where it is written down what is begun."""
        self.claimed: ClaimedBatch | ClaimedRun | None = None
        """The batch, or the run alone, that was claimed and is not settled yet."""
        self.under_way: UnderWay | None = None
        """Of a batch the first run."""

    def run(self, due: Mapping[str, Sequence[int]], until: float, notify: Callable[[], None]) -> int:
        """Run one batch of each handler at most; return the number of runs.

        `due`: events that were met, by handler. `notify` calls for help where there is more than a batch holds.
        Raises what is raised where the ledger is away; what was under way is to be settled then (`settle_left`).
        """
        count = 0
        self._ripe_at = None
        for name, ids in due.items():
            if stopping.is_set() or time.monotonic() >= until:
                return count
            handler = self._registry.named(name)
            if handler is None or handler.batch is None:
                continue
            claim = batch_claims.claim(
                self._executor.idle_ledger,
                self._plan,
                BatchHandler(name, handler.batch, self._registry.patterns(name)),
                ids=ids,
                cursor=self._cursors[name],
            )
            if claim.unripe is not None:
                self._note_unripe(claim.unripe)
            if claim.batch is not None and claim.batch.is_full:
                notify()
            count += self._run_claimed(claim, handler)
        return count

    def settle_left(self) -> None:
        """Give back what was cut off when the ledger went away, unless it was ended: nothing else is begun before."""
        if self.claimed is not None:
            if isinstance(self.claimed, ClaimedRun):
                self._executor.give_back_cut_off(self.claimed, WorkerEnd(endings.LEDGER_LEFT, self._registry))
            else:
                self._executor.give_back_batch_cut_off(self.claimed)
            self.claimed = None

    @property
    def executor(self) -> BatchExecutor:
        """The executor of the attempts."""
        return self._executor

    @property
    def is_lost(self) -> bool:
        """Never: a time limit that does not end a batch ends the process."""
        return False

    def patience(self, longest: float) -> float:
        """Return how long (seconds) to wait for a notification: no longer than until a batch has waited enough."""
        if self._ripe_at is None:
            return longest
        return min(longest, max(self._ripe_at - time.monotonic(), _SHORTEST_WAIT))

    def _run_claimed(self, claim: BatchClaim, handler: Handler) -> int:
        """Make the attempt of what was claimed, and settle it; return the number of runs."""
        if (claimed := claim.batch or claim.alone) is None:
            return 0
        runs = claimed.runs if isinstance(claimed, ClaimedBatch) else [claimed]
        self.claimed = claimed
        self._executor.claims.add(runs)
        self._executor.heartbeat.begin()
        reach("run.claimed")
        if self.last_attempt is not None:
            self.last_attempt.begin(runs[0])
        self.under_way = UnderWay(runs[0], handler, time.monotonic())
        try:
            with self._executor.alarm:
                if isinstance(claimed, ClaimedBatch):
                    self._executor.attempt_batch(claimed, handler)
                else:
                    self._executor.attempt(claimed, handler, lambda: False)
        finally:
            self.under_way = None
        self.claimed = None
        return len(runs)

    def _note_unripe(self, left: timedelta) -> None:
        at = time.monotonic() + left.total_seconds()
        self._ripe_at = at if self._ripe_at is None else min(self._ripe_at, at)
