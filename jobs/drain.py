"""What a worker does when it is notified: run the events that were named, then whatever else is due, within a budget.

The budget keeps one job from holding a worker for ever and lets others help: whoever stops on it, or finds
more than one batch, notifies again. What was claimed and cannot be started in time is let go of.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cache, partial

import psycopg
from sqlalchemy.exc import DataError

from hookonce.jobs import commands
from hookonce.jobs.alerts import delivery
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.last_attempt import LastAttempt
from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.batches.batch_drain import BatchDrain
from hookonce.jobs.claimer import AWAY, DRAIN_BUDGET, SUSPECTS_INTERVAL, Claimer
from hookonce.jobs.handlers import SLOW_AFTER, Registry
from hookonce.jobs.registration import import_handlers
from hookonce.jobs.report import Reporter, UnderWay
from hookonce.jobs.stopping import stopping
from hookonce.providers.kit.registry import names
from hookonce.receiver.config.alerts import ALERTS_SOURCE as ALERTS
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.claims import Claim

log = logging.getLogger(__name__)

MAX_EVENTS = 1000
_LOOKS = 2
"""What else is due is looked for, by two claims in a row (`DueCursor`), before a batch is waited for."""


class OneSlot:
    """The room of a worker that runs one at a time: nobody waits behind a handler that takes long.

    Such a run is claimed alone; with `quick_first` only if nothing else is due.
    """

    slots = 1

    def __init__(self, registry: Registry, *, quick_first: bool) -> None:
        self._registry = registry
        self._quick_first = quick_first

    def lanes(self, handlers: Sequence[str]) -> Sequence[int | None]:
        """Return which of these runs are claimed together."""
        slow = [self._is_slow(name) for name in handlers]
        if all(slow) or (slow[0] and not self._quick_first):
            return [None if number else 0 for number in range(len(slow))]
        return [None if is_slow else 0 for is_slow in slow]

    def _is_slow(self, name: str) -> bool:
        took = self._registry.took(name)
        return took is not None and took > SLOW_AFTER


class Drain(Claimer):
    """Claims due runs and makes their attempts, one at a time, in the thread that calls it."""

    def __init__(
        self, settings: Settings, registry: Registry, attempts_by: Callable[..., Executor] = BatchExecutor
    ) -> None:
        super().__init__(settings, registry, attempts_by)
        self._quick_first = False
        self._batches = (
            BatchDrain(self._executor, registry, self._cursor)
            if isinstance(self._executor, BatchExecutor)
            else None
        )
        self._last_attempt: LastAttempt | None = None
        self._unstarted: list[ClaimedRun] = []
        self._cut_off: ClaimedRun | None = None
        self._under_way: UnderWay | None = None

    @property
    def under_way(self) -> UnderWay | None:
        """The attempt that goes on."""
        return self._under_way

    def come_after(self, last: LastAttempt) -> None:
        """Take over what the worker before us was at; from now on write down what we are at."""
        self._last_attempt = last
        if self._batches is not None:
            self._batches.last_attempt = last
        super().come_after(last)

    def run_due(self, ids: Sequence[int] = ()) -> int:
        """Run what is due, the events of `ids` first, until nothing is or the budget is used; count the attempts.

        Raises nothing when a server is away: what is due stays due, and the sweep brings it back.
        """
        until = time.monotonic() + DRAIN_BUDGET.total_seconds()
        try:
            self._settle_left()
            self._look_around()
            return self._run_until(until, ids or None)
        except (psycopg.DataError, DataError):  # no outage: it is there, and would say the same for ever
            log.exception("what the ledger holds, or what it was given, does not fit")
            self._executor.discard()
        except AWAY as error:
            self._log_availability(is_away=type(error).__name__)
            self._train.doubt()
            self._executor.discard()
        except BaseException:  # whatever a handler did to the connection, the next job must not meet it
            self._executor.discard()
            raise
        return 0

    def _run_until(self, until: float, named: Sequence[int] | None) -> int:
        attempts = events = waits = 0
        while not stopping.is_set():
            self._take_up()
            self._quick_first = not self._quick_first  # every other time what waits longest goes first
            claim = self._claim(named, OneSlot(self._registry, quick_first=self._quick_first))
            self._log_availability(is_away=None)
            count = self._run_claimed(claim, until)
            attempts += count
            suspects = self._run_suspects_beside(claim, until, max(count, 1))
            attempts += suspects
            has_done = count or suspects or claim.met or claim.waiting or claim.is_anything_lost
            if not (has_done or claim.batchable) and named is None:
                break
            named = None
            events += max(claim.met, count)
            waits = 0 if has_done else waits + 1
            if waits == _LOOKS:  # what is left waits to be more
                break
            if time.monotonic() > until or events >= MAX_EVENTS:
                self._notify()
                break
        return attempts

    def _run_suspects_beside(self, claim: Claim, until: float, at_most: int) -> int:
        """Run suspects after what else was claimed, one at least and as many as that, so that neither starves."""
        if not claim.has_suspects or time.monotonic() < self._suspects_at:
            return 0
        attempts = self.run_suspects(until, at_most=at_most)
        if not attempts:  # they are others' to run
            self._suspects_at = time.monotonic() + SUSPECTS_INTERVAL.total_seconds()
        return attempts

    def run_suspects(self, until: float | None = None, *, at_most: int | None = None) -> int:
        """Run what may have been under way when a process died, one by one; count the attempts.

        Ends by a time of our monotonic clock, when none is left, or after so many. Raises what is raised where the
        ledger is away.
        """
        attempts = 0
        while not stopping.is_set() and (until is None or time.monotonic() < until):
            if at_most is not None and attempts >= at_most:
                break
            if (run := self._claim_suspect()) is None:
                break
            attempts += self._run([run], until or float("inf"))
        return attempts

    @property
    def is_lost(self) -> bool:
        """Never: a time limit that does not end a handler ends the process."""
        return False

    def reporting(self) -> AbstractContextManager[object]:
        """Report for the desk what takes long, as long as a block lasts."""
        besides = [self._batches] if self._batches is not None else []
        return Reporter(self, self._executor.ledger_for_once, besides)

    def patience(self, longest: float) -> float:
        """Return how long (seconds) a worker may wait for a notification before it is to look again."""
        return longest if self._batches is None else self._batches.patience(longest)

    def _settle_left(self) -> None:
        """Settle what was claimed when the ledger went away: nothing else is begun before."""
        self._settle_doubtful()
        if self._batches is not None:
            self._batches.settle_left()
        if self._cut_off is not None:
            self._settle(self._executor, self._cut_off)
            self._cut_off = None
        if self._unstarted:
            self._release(self._unstarted)
            self._unstarted = []

    def _run_claimed(self, claim: Claim, until: float) -> int:
        """Run what a claim has leased, and the batches that it left; count the attempts."""
        if claim.is_more:
            self._notify()
        if not (claim.runs or claim.batchable):
            return 0
        reach("run.claimed")
        return self._run(claim.runs, until) + self._run_batches(claim.batchable, until)

    def _run(self, claimed: Sequence[ClaimedRun], until: float) -> int:
        """Attempt claimed runs in their order; let go of what can't be started in time."""
        attempts = 0
        self._unstarted = list(claimed)
        with self._executor.alarm:
            while self._unstarted and (not attempts or self._is_next(until)):
                self._attempt(self._unstarted.pop(0), until)
                attempts += 1
        if self._unstarted:
            self._release(self._unstarted)
            self._unstarted = []
        return attempts

    def _run_batches(self, due: Mapping[str, Sequence[int]], until: float) -> int:
        if self._batches is None or not due:
            return 0
        return self._batches.run(due, until, self._notify)

    def _attempt(self, run: ClaimedRun, until: float) -> None:
        """Attempt a claimed run, and settle it."""
        handler = self._registry.named(run.handler)
        if handler is None:  # cannot be: the claim asked the same registry
            raise LookupError(f"handler '{run.handler}' vanished from the registry")
        if self._last_attempt:
            self._last_attempt.begin(run)
        self._under_way = at = UnderWay(run, handler, time.monotonic())
        self._cut_off = run
        try:
            self._executor.attempt(run, handler, partial(self._is_next, until))
        finally:
            self._under_way = None
        self._cut_off = None
        self._registry.note(run.handler, timedelta(seconds=time.monotonic() - at.began))

    def _is_next(self, until: float) -> bool:
        """Return whether another run is to be started, in time."""
        is_time = not stopping.is_set() and time.monotonic() < until
        return is_time and bool(self._unstarted) and self._may_start(self._unstarted[0])


def configured() -> tuple[Settings, Registry]:
    """Read this process's configuration, and import the user's handlers. Raises `ConfigError` and `HandlerError`."""
    settings = load_settings(need_secrets=False)
    require_servers(settings)
    return settings, handlers_of(settings)


@cache
def process_drain() -> Drain:
    """Make the drain of a process that RQ has begun, from its configuration, once. Raises as `configured` does."""
    return Drain(*configured())


def handlers_of(settings: Settings) -> Registry:
    """Import the user's handlers, each for a source or provider there is, and add those that send alerts.

    Raises `ConfigError` and `HandlerError`.
    """
    registry = import_handlers(settings.handlers)
    ours = [ALERTS, *(command.source for command in settings.commands.values())]
    registry.require_places([*settings.sources, *ours], names(settings.provider_places))
    commands.register(registry, settings.commands)
    delivery.register(registry, settings.alerts)
    return registry


def perform(ids: Sequence[int]) -> int:
    """Do the RQ job in a worker of RQ's own that forks for each: all that is said of it is said before that ends."""
    drain = process_drain()
    try:
        return on_notification(drain, ids)
    finally:
        drain.finish()
        drain.flush()


def on_notification(drain: Claimer, ids: Sequence[int]) -> int:
    """Run the events that a notification names and what else is due; return the number of attempts made."""
    reach("job.begun")
    attempts = drain.run_due(ids)
    reach("job.ended")
    return attempts
