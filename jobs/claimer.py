"""Claims for one process, and looks after what others have left; what makes the attempts is `drain`, or `slots`."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from functools import cached_property, partial

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts import endings
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.heartbeat import Heartbeat
from hookonce.jobs.attempts.held_claims import HeldClaims
from hookonce.jobs.attempts.last_attempt import LastAttempt
from hookonce.jobs.attempts.listener import Listener
from hookonce.jobs.attempts.train import Train, tell
from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.handlers import Registry
from hookonce.jobs.plan import Plan
from hookonce.jobs.plan import Room as Lanes
from hookonce.jobs.provider_lookup import provider_lookup
from hookonce.jobs.report import UnderWay
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.postgresql import Pool
from hookonce.receiver.ledger import handlers
from hookonce.receiver.ledger.database import connections, engines, flushing
from hookonce.receiver.ledger.runs import (
    breakers,
    claims,
    clock,
    ignored,
    leases,
    limit_gate,
    takeover,
)
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.claims import Claim
from hookonce.receiver.ledger.runs.clock import ClockWatch
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.runs.rate_changes import RateChanges
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.logs import hash_ids
from hookonce.receiver.monitoring import tracing
from hookonce.receiver.privacy.masking import mask_secrets
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue

log = logging.getLogger(__name__)

AWAY = (psycopg.Error, SQLAlchemyError, connections.LedgerUnavailable)
"""Errors that an absent ledger raises: runs under way are settled when it is back."""

CLAIM_BATCH = 50
DRAIN_BUDGET = timedelta(seconds=2)
ROLLING_DEPLOY = timedelta(minutes=15)
WORKER_ENDED = "the worker's process ended in the middle of it"
SUSPECTS_INTERVAL = timedelta(seconds=2)
"""How often a worker looks for what others have lost, where it found none that it may run."""
STEP_CONNECTIONS = 4
"""At most, in one process, for what steps write: a millisecond each."""
WAKE_INTERVAL = timedelta(seconds=30)
"""How often a worker looks for what others, without its handlers, have ignored."""
RATE_CHANGE_INTERVAL = timedelta(seconds=1)
"""How often it goes on with what another rate has put off, while anything is left of that."""
CLOCK_INTERVAL = timedelta(seconds=1)
"""How often it looks whether the database's clock was set back."""


class Claimer:
    """Claims due runs for the slots of one process, with connections of its own; for one thread."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        attempts_by: Callable[..., Executor] = BatchExecutor,
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
        self._steps = Pool(settings.database_url, STEP_CONNECTIONS)
        self._make_executor = partial(
            attempts_by,
            self._engine,
            provider_lookup(settings),
            settings.keyring,
            mask_secrets(settings.secrets()),
            self._steps,
        )
        self._held = HeldClaims()
        self._heartbeat = Heartbeat(self._held, self._lent)
        self._train = Train(self._lent)
        self._listener = listener_of(settings)
        self._executor = self._new_executor()
        self._client = connect(settings.redis_url)
        self._work_queue = WorkQueue(self._client)
        self._cursor = DueCursor()
        self._failing: AbstractSet[str] = frozenset()
        self._is_away = False
        self._breaker = CircuitBreaker(limit=1)
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        self._suspects_at = time.monotonic()
        self._rates_at = time.monotonic()
        self._clock_at = time.monotonic()
        self._clock = ClockWatch()
        self._rate_changes = RateChanges()

    @property
    def executor(self) -> Executor:
        """The executor of the attempts."""
        return self._executor

    def _new_executor(self) -> Executor:
        """Make an executor that shares what this process has one of."""
        executor = self._make_executor()
        executor.claims, executor.heartbeat, executor.listener = self._held, self._heartbeat, self._listener
        if self._settings.shared_flushes:
            executor.train, executor.is_quick = self._train, self._registry.is_quick
        return executor

    @contextmanager
    def _lent(self) -> Iterator[psycopg.Connection]:
        """Lend a connection to another thread."""
        with self._engine.connect() as connection:
            yield engines.raw(connection)

    @cached_property
    def _names(self) -> list[str]:
        return sorted({handler.name for handler in self._registry})

    def come_after(self, last: LastAttempt) -> None:
        """Take over what the worker before us was at, if it was at anything, and say how it ended."""
        if (found := last.take()) is None:
            return
        attempt, how = found
        try:
            end = WorkerEnd(f"{WORKER_ENDED}: {how}", self._registry)
            takeover.take_over_of(self._executor.idle_ledger, [attempt.token], end)
        except AWAY as error:
            log.warning("why the worker before ended was not noted: %s", type(error).__name__)
            self._executor.discard()

    def _claim(self, ids: Collection[int] | None, room: Lanes, *, at_once: int = 1) -> Claim:
        """Claim due runs, those of events `ids` or any, and what was lost; note what else the ledger says."""
        finished = self._held.take_finished()
        try:
            claim = claims.claim(
                self._executor.idle_ledger,
                Plan(self._registry, room),
                self._registry.matching,
                room=room,
                ids=None if ids is None else list(ids),
                limit=CLAIM_BATCH,
                cursor=self._cursor,
                at_once=at_once,
                finished=finished,
            )
        except BaseException:
            self._held.give_back_finished(finished)
            raise
        self._hold(claim.runs)
        self._executor.failure_rows.take_from_claim(claim.failing)
        self._failing = claim.failing
        if claim.is_anything_lost:
            self._take_over_lost()
        return claim

    def _take_over_lost(self) -> None:
        """Take over what others have lost; where that fails, what was claimed is run all the same."""
        try:
            takeover.take_over(self._executor.idle_ledger, WorkerEnd(handlers=self._registry))
        except AWAY as error:
            log.warning("what others have lost was not taken over: %s", type(error).__name__)
            self._executor.discard()

    def _claim_suspect(self) -> ClaimedRun | None:
        """Claim a suspect, to be run with nothing beside it."""
        run = claims.claim_suspect(
            self._executor.idle_ledger, Plan(self._registry), self._registry.matching, self._names
        )
        self._hold([run] if run else [])
        return run

    def _hold(self, runs: Sequence[ClaimedRun]) -> None:
        if runs:
            self._held.add(runs)
            self._heartbeat.begin()

    def _release(self, runs: Iterable[ClaimedRun]) -> None:
        """Let go of runs that were not started; others may have them."""
        runs = list(runs)
        if leases.release(self._executor.idle_ledger, runs):
            reach("run.released")
            self._notify()
        self._held.settled(runs)

    def _settle(self, executor: Executor, run: ClaimedRun) -> None:
        """Give back a run whose attempt was cut off, unless it was ended; one that is cut off again is a suspect."""
        executor.give_back_cut_off(run, WorkerEnd(endings.LEDGER_LEFT, self._registry))

    def _settle_doubtful(self) -> None:
        """Look for the ends of runs that a crash of the server may have lost, and give back those that it has."""
        doubtful = self._train.take_doubtful()
        try:
            while doubtful:
                passenger = doubtful[0]
                if takeover.settle(self._executor.idle_ledger, passenger.run):
                    self._held.settled([passenger.run])
                else:
                    flushing.flush(self._executor.idle_ledger)
                    tell(passenger)
                del doubtful[0]
        finally:
            if doubtful:
                self._train.put_back(doubtful)

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

    def requeue_ignored(self) -> None:
        """Register the handlers that are here; take up recent events that other workers, without them, have ignored."""
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        try:
            self._tend_clock()
            rows, said = self._registry.rows(), self._registry.declarations()
            handlers.register_handlers(self._executor.idle_ledger, rows, said)
            woken = ignored.requeue(self._executor.idle_ledger, self._registry.matching, ROLLING_DEPLOY)
            # What was parked for a limit that has been taken away since.
            unlimited = dict.fromkeys(self._registry.without_places(), limit_gate.MAX_WAITING)
            limit_gate.take_up(self._executor.idle_ledger, unlimited)
        except (psycopg.Error, SQLAlchemyError) as error:
            log.warning("recent ignored events were not looked at: %s", type(error).__name__)
            self._executor.discard()
            return
        if woken:  # at once: a worker without these handlers would ignore them again
            self.run_due(woken)

    def run_due(self, ids: Sequence[int] = ()) -> int:
        """Run what is due, the events of `ids` first; return the number of attempts, if they were made by then."""
        raise NotImplementedError

    def reporting(self) -> AbstractContextManager[object]:
        """Report for the desk what takes long, as long as a block lasts."""
        return nullcontext()

    def patience(self, longest: float) -> float:
        """Return how long (seconds) a worker may wait for a notification before it is to look again."""
        return longest

    @property
    def under_way(self) -> UnderWay | None:
        """The attempt that goes on in the main thread, if one does."""
        return None

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
        except AWAY as error:
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

    def _may_start(self, run: ClaimedRun) -> bool:
        """Return whether a claimed run may be started: it is still ours, and its handler's breaker has not opened."""
        handler = self._registry.named(run.handler)
        has_tripped = handler is not None and self._executor.failure_rows.has_tripped(handler)
        return self._held.holds(run) and not self._train.is_in_doubt and (run.is_trial or not has_tripped)

    def _forget_finished(self) -> None:
        """Delete the claims that are over: no claim follows that would do so."""
        if finished := self._held.take_finished():
            with self._executor.idle_ledger.transaction():
                leases.forget(self._executor.ledger, finished)

    def finish(self) -> int:
        """End the work that is still under way, and tell of it; return the exit status."""
        self._train.end()
        try:
            self._forget_finished()
        except AWAY as error:  # their leases end
            log.debug("claims that are over were not forgotten: %s", type(error).__name__)
        return 0

    def flush(self) -> None:
        """Send what has been traced."""
        tracing.flush(self._settings)

    def close(self) -> None:
        """Close every connection; for tests, a worker keeps them until it ends."""
        self._heartbeat.end()
        self._train.end()
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


def listener_of(settings: Settings) -> Listener:
    """Return who hears of attempts; to trace them needs the extra `otel`."""
    if not settings.tracing:
        return Listener()
    from hookonce.jobs.attempts.traces import Traces  # noqa: PLC0415  it imports OpenTelemetry

    return Traces()
