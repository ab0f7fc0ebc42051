"""What a worker does when it is notified: run the events that were named, then whatever else is due, within a budget.

The budget keeps one job from holding a worker for ever and lets others help: whoever stops on it, or finds
more than one batch, notifies again. What was claimed and cannot be started in time is let go of.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cache, partial

import psycopg
from sqlalchemy.exc import DataError, SQLAlchemyError

from hookonce.jobs import commands
from hookonce.jobs.alerts import delivery
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.batches.batch_drain import BatchDrain
from hookonce.jobs.handlers import Registry
from hookonce.jobs.last_attempt import LastAttempt
from hookonce.jobs.provider_lookup import provider_lookup
from hookonce.jobs.registration import import_handlers
from hookonce.jobs.report import Reporter, UnderWay
from hookonce.jobs.stopping import stopping
from hookonce.providers.kit.registry import names
from hookonce.receiver.config.alerts import ALERTS_SOURCE as ALERTS
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.postgresql import Pool
from hookonce.receiver.ledger import handlers
from hookonce.receiver.ledger.database import connections, engines
from hookonce.receiver.ledger.runs import breakers, claims, clock, limit_gate, transitions
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.claims import Claim
from hookonce.receiver.ledger.runs.clock import ClockWatch
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.runs.rate_changes import RateChanges
from hookonce.receiver.logs import hash_ids
from hookonce.receiver.monitoring import tracing
from hookonce.receiver.privacy.masking import mask_secrets
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue

log = logging.getLogger(__name__)

CLAIM_BATCH = 50
DRAIN_BUDGET = timedelta(seconds=2)
MAX_EVENTS = 1000
_LOOKS = 2
"""What else is due is looked for, by two claims in a row (`DueCursor`), before a batch is waited for."""
ROLLING_DEPLOY = timedelta(minutes=15)
WORKER_ENDED = "the worker's process ended in the middle of it"
SUSPECTS_INTERVAL = timedelta(seconds=2)
"""How often a worker that runs one at a time looks for what others have lost."""
STEP_CONNECTIONS = 4
"""At most, in one process, for what steps write: a millisecond each."""
WAKE_INTERVAL = timedelta(seconds=30)
"""How often a worker looks for what others, without its handlers, have ignored."""
RATE_CHANGE_INTERVAL = timedelta(seconds=1)
"""How often it goes on with what another rate has put off, while anything is left of that."""
CLOCK_INTERVAL = timedelta(seconds=1)
"""How often it looks whether the database's clock was set back."""


_attempts_by: type[Executor] = BatchExecutor
_made_by: "Callable[[Settings, Registry], Drain] | None" = None


class Drain:
    """Claims and runs due events in one process, with connections of its own."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        attempts_by: type[Executor] = BatchExecutor,
        *,
        connections: int = 1,
    ) -> None:
        hash_ids(hashed=settings.log_ids == "hash")
        self._registry = registry
        self._settings = settings
        self._engine = engines.engine(
            settings.database_url,
            name="hookonce worker",
            pool_size=connections,
            max_overflow=-1,
            pool_use_lifo=True,  # what more were open for a while are those that end
            hide_parameters=True,  # of a failed statement: they come from bodies, and errors are kept in the clear
        )
        mask = mask_secrets(settings.secrets())
        self._steps = Pool(settings.database_url, STEP_CONNECTIONS)
        self._new_executor = partial(
            executor_class(settings, attempts_by),
            *(self._engine, provider_lookup(settings), settings.keyring, mask, self._steps),
        )
        self._executor = self._new_executor()
        self._client = connect(settings.redis_url)
        self._work_queue = WorkQueue(self._client)
        self._quick_first = False
        self._cursor = DueCursor()
        self._batches = (
            BatchDrain(self._executor, registry, self._cursor)
            if isinstance(self._executor, BatchExecutor)
            else None
        )
        self._failing: AbstractSet[str] = frozenset()
        self._is_away = False
        self._breaker = CircuitBreaker(limit=1)
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        self._suspects_at = time.monotonic()
        self._rates_at = time.monotonic()
        self._clock_at = time.monotonic()
        self._clock = ClockWatch()
        self._rate_changes = RateChanges()
        self._last_attempt: LastAttempt | None = None
        self.under_way: UnderWay | None = None

    def come_after(self, last: LastAttempt) -> None:
        """Say how the worker before us ended, if it was at an attempt; from now on write down what we are at."""
        self._last_attempt = last
        if (found := last.take()) is None:
            return
        attempt, how = found
        try:
            transitions.note_end_of_worker(self._executor.idle_ledger, attempt, f"{WORKER_ENDED}: {how}")
        except (psycopg.Error, SQLAlchemyError, connections.LedgerUnavailable) as error:
            log.warning("why the worker before ended was not noted: %s", type(error).__name__)
            self._executor.discard()

    def run_due(self, ids: Sequence[int] = ()) -> int:
        """Run what is due, the events of `ids` first, until nothing is or the budget is used; count the attempts.

        Raises nothing when a server is away: what is due stays due, and the sweep brings it back.
        """
        self._look_around()
        until = time.monotonic() + DRAIN_BUDGET.total_seconds()
        attempts = events = waits = 0
        try:
            named: Sequence[int] | None = ids or None
            if time.monotonic() > self._suspects_at:
                attempts += self.run_suspects(until)
            while not stopping.is_set():
                self._take_up()
                claim = self._claim(named)
                self._executor.failure_rows.take_from_claim(claim.failing)
                self._failing = claim.failing
                self._log_availability(is_away=None)
                if not (claim.events or claim.parked or claim.batchable) and named is None:
                    return attempts
                named = None
                count = self._run_claimed(claim, until)
                attempts += count
                events += max(claim.events, count)
                waits = 0 if count or claim.events or claim.parked else waits + 1
                if waits == _LOOKS:  # what is left waits to be more
                    return attempts
                if time.monotonic() > until or events >= MAX_EVENTS:
                    self._notify()
                    return attempts
        except (psycopg.DataError, DataError):  # no outage: it is there, and would say the same for ever
            log.exception("what the ledger holds, or what it was given, does not fit")
            self._executor.discard()
        except (psycopg.Error, SQLAlchemyError, connections.LedgerUnavailable) as error:
            self._log_availability(is_away=type(error).__name__)
            self._executor.discard()
        except BaseException:  # whatever a handler did to the connection, the next job must not meet it
            self._executor.discard()
            raise
        return attempts

    def run_suspects(self, until: float | None = None, *, at_most: int | None = None) -> int:
        """Run what was under way when a process died that ran many at once, one by one; count the attempts.

        Ends by a time of our monotonic clock, when none is left, or after an event that makes it so many. Raises what
        is raised where the ledger is away.
        """
        self._suspects_at = time.monotonic() + SUSPECTS_INTERVAL.total_seconds()
        attempts, names = 0, sorted({handler.name for handler in self._registry})
        while not stopping.is_set() and (until is None or time.monotonic() < until):
            if at_most is not None and attempts >= at_most:
                break
            claim = claims.claim(
                self._executor.idle_ledger, self._registry, budget=DRAIN_BUDGET, suspects_of=names
            )
            if not claim.events:
                break
            attempts += self._run(claim.runs, until or float("inf"))
        return attempts

    @property
    def executor(self) -> Executor:
        """What makes the attempts."""
        return self._executor

    @property
    def is_lost(self) -> bool:
        """Never: a time limit that does not end a handler ends the process."""
        return False

    def reporting(self) -> AbstractContextManager[object]:
        """Report for the desk what takes long, as long as a block lasts."""
        besides = [self._batches] if self._batches is not None else []
        return Reporter(self, self._executor.ledger_for_once, besides)

    def finish(self) -> int:
        """End the work that is still under way; return the exit status."""
        return 0

    def _take_up(self) -> None:
        """Make due what waited for a place that is free now, or is to be tried."""
        if places := self._registry.places():
            limit_gate.take_up(self._executor.idle_ledger, places)
        if names := self._failing & self._registry.with_breakers():
            breakers.try_one(self._executor.idle_ledger, names)

    def _log_availability(self, *, is_away: str | None) -> None:
        """Log that the ledger went away, or came back; not at every look."""
        if is_away and not self._is_away:
            log.warning("the ledger is away, looking for it again and again: %s", is_away)
        elif self._is_away and not is_away:
            log.warning("the ledger is back")
        self._is_away = bool(is_away)

    def _claim(self, ids: Sequence[int] | None) -> Claim:
        """Claim a batch; every other time what waits longest goes first, even if it is slow."""
        self._quick_first = not self._quick_first
        return claims.claim(
            self._executor.idle_ledger,
            self._registry,
            budget=DRAIN_BUDGET,
            ids=ids,
            limit=CLAIM_BATCH,
            quick_first=self._quick_first,
            cursor=self._cursor,
        )

    def requeue_ignored(self) -> None:
        """Register the handlers that are here; take up recent events that other workers, without them, have ignored."""
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        try:
            self._tend_clock()
            rows, said = self._registry.rows(), self._registry.declarations()
            handlers.register_handlers(self._executor.idle_ledger, rows, said)
            woken = transitions.requeue_ignored(self._executor.idle_ledger, self._registry, ROLLING_DEPLOY)
            # What was parked for a limit that has been taken away since.
            unlimited = dict.fromkeys(self._registry.without_places(), limit_gate.MAX_WAITING)
            limit_gate.take_up(self._executor.idle_ledger, unlimited)
        except (psycopg.Error, SQLAlchemyError) as error:
            log.warning("recent ignored events were not looked at: %s", type(error).__name__)
            self._executor.discard()
            return
        if woken:  # at once: a worker without these handlers would ignore them again
            self.run_due(woken)

    def tend_rates(self) -> None:
        """Have what another rate has put off come by the one that its handler has here."""
        self._rates_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        try:
            is_over = self._rate_changes.tend(self._executor.idle_ledger, self._registry.schedules())
        except (psycopg.Error, SQLAlchemyError) as error:
            log.warning("what other rates have put off was not looked at: %s", type(error).__name__)
            self._executor.discard()
            return
        if not is_over:
            self._rates_at = time.monotonic() + RATE_CHANGE_INTERVAL.total_seconds()

    def _look_at_clock(self) -> None:
        try:
            self._tend_clock()
        except (psycopg.Error, SQLAlchemyError, connections.LedgerUnavailable) as error:
            log.debug("the database's clock was not looked at: %s", type(error).__name__)
            self._executor.discard()

    def _tend_clock(self) -> None:
        """Begin anew what waits for a time that the database's clock was set back from."""
        self._clock_at = time.monotonic() + CLOCK_INTERVAL.total_seconds()
        if self._clock.look(self._executor.idle_ledger):
            clock.begin_anew(self._executor.idle_ledger)
            self._cursor.start_over()
            self._rates_at = time.monotonic()

    def _look_around(self) -> None:
        """Look for what others have left behind, each at its time."""
        if time.monotonic() > self._clock_at:
            self._look_at_clock()
        if time.monotonic() > self._rates_at:
            self.tend_rates()
        if time.monotonic() > self._wake_at:
            self.requeue_ignored()

    def _run(self, claimed: Sequence[ClaimedRun], until: float) -> int:
        """Attempt the claimed runs in order, each starting the next; let go of what can't be started in time."""
        attempts = 0
        with self._executor.alarm:
            is_started = bool(claimed)
            while is_started:
                is_started = self._attempt(claimed, attempts, until)
                attempts += 1
        if transitions.release(self._executor.idle_ledger, claimed[attempts:]):
            reach("run.released")
            self._notify()
        return attempts

    def _run_claimed(self, claim: Claim, until: float) -> int:
        """Run what a claim has leased, and the batches that it left; count the attempts."""
        if claim.is_more:
            self._notify()
        reach("run.claimed")
        return self._run(claim.runs, until) + self._run_batches(claim.batchable, until)

    def _run_batches(self, due: Mapping[str, Sequence[int]], until: float) -> int:
        if self._batches is None or not due:
            return 0
        return self._batches.run(due, until, partial(self._run, until=until), self._notify)

    def patience(self, longest: float) -> float:
        """Return how long (seconds) a worker may wait for a notification before it is to look again."""
        return longest if self._batches is None else self._batches.patience(longest)

    def _attempt(self, claimed: Sequence[ClaimedRun], number: int, until: float) -> bool:
        """Attempt one of the claimed runs; return whether the next was started."""
        run = claimed[number]
        handler = self._registry.named(run.handler)
        if handler is None:  # cannot be: the claim asked the same registry
            raise LookupError(f"handler '{run.handler}' vanished from the registry")
        if self._last_attempt:
            self._last_attempt.begin(run)
        self.under_way = at = UnderWay(run, handler, time.monotonic())
        try:
            started = self._executor.attempt(
                run, handler, partial(self._startable, claimed, number + 1, until)
            )
        finally:
            self.under_way = None
        self._registry.note(run.handler, timedelta(seconds=time.monotonic() - at.began))
        return started

    def _startable(self, claimed: Sequence[ClaimedRun], number: int, until: float) -> ClaimedRun | None:
        """Return the run of this number, unless there is none, no time for it, or its handler's breaker has opened."""
        if number >= len(claimed) or stopping.is_set() or time.monotonic() >= until:
            return None
        run = claimed[number]
        handler = self._registry.named(run.handler)
        has_tripped = handler is not None and self._executor.failure_rows.has_tripped(handler)
        return None if has_tripped and not run.is_trial else run

    def flush(self) -> None:
        """Send what has been traced."""
        tracing.flush(self._settings)

    def close(self) -> None:
        """Close every connection; for tests, a worker keeps them until it ends."""
        self._executor.close()
        self._steps.close()
        self._engine.dispose()
        self._client.close()

    def _notify(self) -> None:
        """Call for help, or for ourselves later; a lost notification costs the sweep's interval."""
        if self._breaker.is_open:
            return
        try:
            if self._work_queue.notify_if_idle():
                reach("drain.rung")
        except RedisUnavailable as error:
            self._breaker.failed()
            log.info("workers can't be notified: %s", error)


def executor_class(settings: Settings, base: type[Executor] = Executor) -> type[Executor]:
    """Return the class that makes attempts as `base` does; to trace them needs the extra `otel`."""
    if settings.tracing:
        from hookonce.jobs.attempts.traced import TracedExecutor

        if issubclass(base, BatchExecutor):
            from hookonce.jobs.batches.traced import TracedBatches

            return type("TracedExecutor", (TracedBatches, TracedExecutor, base), {})
        return TracedExecutor if base is Executor else type("TracedExecutor", (TracedExecutor, base), {})
    return base


@cache
def process_drain() -> Drain:
    """Make this process's drain from its configuration, once; the user's handlers are imported here.

    Raises `ConfigError` and `HandlerError`.
    """
    settings = load_settings(need_secrets=False)
    require_servers(settings)
    registry = handlers_of(settings)
    return _made_by(settings, registry) if _made_by else Drain(settings, registry, _attempts_by)


def make_drain_by(make: Callable[[Settings, Registry], Drain]) -> None:
    """Have the process's drain, which is yet to be made, be made by something else: many slots, for one."""
    global _made_by  # noqa: PLW0603  the process has one drain
    _made_by = make


def make_attempts_by(kind: type[Executor]) -> None:
    """Have the process's drain, which is yet to be made, make its attempts by another class."""
    global _attempts_by  # noqa: PLW0603  the process has one drain
    _attempts_by = kind


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
    """Do the RQ job in a worker that forks for each: what was traced is sent before the work-horse ends."""
    try:
        return on_notification(ids)
    finally:
        process_drain().flush()


def on_notification(ids: Sequence[int]) -> int:
    """Run the events that a notification names and what else is due; return the number of attempts made."""
    reach("job.begun")
    attempts = process_drain().run_due(ids)
    reach("job.ended")
    return attempts
