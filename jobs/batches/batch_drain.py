"""The next batch of each handler that has some due, one after the other, within a worker's budget."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial

from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.handlers import Registry
from hookonce.jobs.plan import EVERYTHING, Plan
from hookonce.jobs.report import UnderWay
from hookonce.jobs.stopping import stopping
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import batch_claims
from hookonce.receiver.ledger.runs.batch_claims import BatchHandler
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.due_cursor import BatchCursor, DueCursor

RunAlone = Callable[[Sequence[ClaimedRun]], int]
"""Runs what was claimed by itself; returns the number of attempts."""

_SHORTEST_WAIT = 0.005  # seconds


class BatchDrain:
    """Claims and runs batches for one worker, on the connection of its executor."""

    def __init__(self, executor: BatchExecutor, registry: Registry, cursor: DueCursor) -> None:
        """Run on the connection of `executor`."""
        self._executor = executor
        self._registry = registry
        self._cursors: defaultdict[str, BatchCursor] = defaultdict(partial(BatchCursor, cursor))
        self._ripe_at: float | None = None
        self.claimed: ClaimedBatch | ClaimedRun | None = None
        self.under_way: UnderWay | None = None
        """Of a batch the first run."""

    def run(
        self, due: Mapping[str, Sequence[int]], until: float, run_alone: RunAlone, notify: Callable[[], None]
    ) -> int:
        """Run one batch of each handler at most; return the number of runs.

        `due`: events that were met, by handler. `notify` calls for help where there is more than a batch holds.
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
                Plan(self._registry, EVERYTHING),
                BatchHandler(name, handler.batch, self._registry.patterns(name)),
                ids=ids,
                cursor=self._cursors[name],
            )
            self.claimed = claim.batch or claim.alone
            runs = claim.batch.runs if claim.batch else [claim.alone] if claim.alone else []
            self._executor.claims.add(runs)
            self._executor.heartbeat.begin()
            if claim.unripe is not None:
                self._note_unripe(claim.unripe)
            if claim.alone is not None:
                count += run_alone([claim.alone])
            if claim.batch is not None:
                if claim.batch.is_full:
                    notify()
                reach("run.claimed")
                self._attempt(claim.batch)
                count += len(claim.batch.runs)
            self.claimed = None
        return count

    @property
    def executor(self) -> BatchExecutor:
        """What makes the attempts."""
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

    def _attempt(self, batch: ClaimedBatch) -> None:
        handler = self._registry.named(batch.handler)
        if handler is None:  # cannot be: the claim asked the same registry
            raise LookupError(f"handler '{batch.handler}' vanished from the registry")
        self.under_way = UnderWay(batch.runs[0], handler, time.monotonic())
        try:
            with self._executor.alarm:
                self._executor.attempt_batch(batch, handler)
            self._executor.claims.settled(batch.runs)
        except BaseException:
            self._executor.claims.drop([batch.token])  # its lease ends, and it is halved
            raise
        finally:
            self.under_way = None

    def _note_unripe(self, left: timedelta) -> None:
        at = time.monotonic() + left.total_seconds()
        self._ripe_at = at if self._ripe_at is None else min(self._ripe_at, at)
