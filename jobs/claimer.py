"""Claims for one process, and looks after what others have left; what makes the attempts is in `jobs.slots`."""

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

import psycopg
from sqlalchemy import NullPool
from sqlalchemy.event import listen
from sqlalchemy.exc import DataError

from hookonce.jobs.attempts.attempt import Executor, MakeTransactions
from hookonce.jobs.attempts.endings import Sealing
from hookonce.jobs.attempts.heartbeat import Heartbeat
from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.jobs.attempts.ports import Attempt
from hookonce.jobs.attempts.shared import Shared, listener_of
from hookonce.jobs.attempts.train import Train, tell
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.buffer import Buffer
from hookonce.jobs.handlers import Registry
from hookonce.jobs.plan import Plan, Room
from hookonce.jobs.provider_lookup import provider_lookup
from hookonce.jobs.report import AnySlot
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.postgresql import Pool as Connections
from hookonce.receiver.ledger import handlers
from hookonce.receiver.ledger.database import engines, round_trip
from hookonce.receiver.ledger.database.engines import AWAY
from hookonce.receiver.ledger.runs import (
    breakers,
    claims,
    due_cursor,
    ignored,
    leases,
    limit_gate,
    parking,
    takeover,
)
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.claims import Claim
from hookonce.receiver.ledger.runs.due_cursor import DueCursor, Kind, Paced
from hookonce.receiver.ledger.runs.due_rows import Waiting
from hookonce.receiver.ledger.runs.queue_pages import RateChanges
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.states import Waits
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.logs import hash_ids
from hookonce.receiver.monitoring import tracing
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue

log = logging.getLogger(__name__)

CLAIM_BATCH = 50
DRAIN_BUDGET = timedelta(seconds=2)
"""How long after a claim its runs may be started: then they are given back, for other workers to take."""
ROLLING_DEPLOY = timedelta(minutes=15)
WORKER_ENDED = "the worker's process ended in the middle of it"
_CLAIMS_WITHIN = 0.5
"""Seconds after a claim in which another is likely to follow."""
_PAGES = 10
"""Pages of what is due that are looked through for batches, where no claim does so."""
SUSPECTS_INTERVAL = timedelta(seconds=2)
"""How often a worker looks for suspects, where it found none that it may run."""
STEP_CONNECTIONS = 4
"""At most, in one process, for what steps write: a millisecond each."""
WAKE_INTERVAL = timedelta(seconds=30)
"""How often a worker looks for what others, without its handlers, have ignored."""
RATE_CHANGE_INTERVAL = timedelta(seconds=1)
"""How often it goes on with what another rate has put off, while anything is left of that."""


class Claimer:
    """Claims due runs for the slots of one process, with connections of its own; for one thread.

    The runs that it has claimed wait in its `buffer` until a slot takes them.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        transactions: MakeTransactions = HandlerTransactions,
        *,
        connections: int = 1,
    ) -> None:
        hash_ids(hashed=settings.log_ids == "hash")
        self.registry = registry
        self.buffer = Buffer()
        self.settings = settings
        self._engine = engines.engine(
            settings.database_url,
            name="hookonce worker",
            pool_size=connections,
            max_overflow=-1,
            pool_use_lifo=True,  # what more were open for a while are those that end
            hide_parameters=True,  # of a failed statement: they come from bodies, and errors are kept in the clear
        )
        self._engine_of_handlers = engines.engine(
            settings.database_url, name="hookonce handler", poolclass=NullPool, hide_parameters=True
        )
        self._steps = Connections(settings.database_url, STEP_CONNECTIONS)
        self._held = OwnClaims()
        self._last: LastClaims | None = None
        self._heartbeat = Heartbeat(self._held, self.lent)
        self._train = Train(self.lent)
        self._shared = Shared(
            provider_lookup(settings),
            self._held,
            self._heartbeat,
            registry,
            self._train if settings.shared_flushes else None,
            self._steps,
            Sealing(settings),
            listener_of(settings),
        )
        self.tally = self._shared.tally
        self.all_slots: Sequence[AnySlot] = ()
        """Where its attempts are made."""
        self._transactions = transactions
        self.executor = self._new_executor()
        """On whose connection it claims."""
        self._client = connect(settings.redis_url)
        self._work_queue = WorkQueue(self._client)
        self._cursor = DueCursor()
        self._failing: AbstractSet[str] = frozenset()
        self._crowd: Mapping[str, Sequence[Kind]] = {}
        self._is_away = False
        self._breaker = CircuitBreaker(limit=1)
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        self._claimed_at = 0.0
        self._full_looks = Paced(due_cursor.FULL_LOOK_INTERVAL, time.monotonic)
        self._suspects_at = self._rates_at = time.monotonic()
        self._rate_changes = RateChanges()

    def _new_executor(self) -> Executor:
        """Make an executor that shares what this process has one of."""
        return Executor(self._engine, self._engine_of_handlers, self._shared, self._transactions)

    @contextmanager
    def lent(self) -> Iterator[psycopg.Connection]:
        """Lend a connection to another thread."""
        with self._engine.connect() as connection:
            yield engines.raw(connection)

    # Where the ledger goes away

    def hear(self, error: BaseException, executor: Executor) -> bool:
        """Hear how work on a connection was cut off; return whether it may just be tried again later.

        The connection is thrown away, and runs whose commits were not flushed yet are looked for before others start.
        """
        self._train.doubt()
        executor.discard()
        if isinstance(error, psycopg.DataError | DataError):  # no outage: it would be said again for ever
            log.error("what the ledger holds, or what it was given, does not fit", exc_info=error)
            return True
        if not isinstance(error, AWAY):
            return False
        if not self._is_away:
            self._is_away = True
            log.warning("the ledger is away, looking for it again and again: %s", type(error).__name__)
        return True

    def _note_back(self) -> None:
        self._is_away = False
        log.warning("the ledger is back")

    @contextmanager
    def tolerating(
        self, what_failed: str, executor: Executor | None = None, level: int = logging.WARNING
    ) -> Iterator[None]:
        """Go on after a block in which the ledger went away: what it was to do is done another time."""
        try:
            yield
        except AWAY as error:
            log.log(level, "%s: %s", what_failed, type(error).__name__)
            self._train.doubt()
            (executor or self.executor).discard()

    def _settle_doubtful(self) -> None:
        """Look for the ends of runs that a crash of the server may have lost, and give back those that it has."""
        doubtful = self._train.take_doubtful()
        try:
            while doubtful:
                attempt = doubtful[0]
                if takeover.settle(self.executor.idle_ledger, attempt.run) is not None:
                    self._held.over([attempt.run])
                else:
                    round_trip.flush(self.executor.idle_ledger)
                    tell(attempt)
                del doubtful[0]
        finally:
            if doubtful:
                self._train.put_back(doubtful)

    # Claims

    def _claim(self, ids: Collection[int] | None, room: Room, until: float, *, at_once: int = 1) -> Claim:
        """Claim due runs into the buffer, those of events `ids` or any; note what else the ledger says.

        The runs may be started until then, by the monotonic clock.
        """
        if places := self.registry.most_at_once:  # of limits: what waits for one that is free now is due
            limit_gate.take_up(self.executor.idle_ledger, places)
        apart = self.registry.with_breakers
        if failing := {name: apart[name] for name in self._failing & apart.keys()}:
            breakers.try_one(self.executor.idle_ledger, failing)
        self._claimed_at = time.monotonic()
        finished = self._held.take_finished()
        try:
            claim = claims.claim(
                self.executor.idle_ledger,
                Plan(self.registry, room),
                ids=None if ids is None else list(ids),
                limit=CLAIM_BATCH,
                cursor=self._cursor,
                at_once=at_once,
                finished=finished,
                parks_batches=self._is_batch_under_way,
            )
        except BaseException:
            self._held.give_back_finished(finished)
            raise
        if claim.runs:
            self._hold(claim.runs)
            self.buffer.put(claim.runs, until)
        if apart or claim.failing or self._failing:
            self._shared.failure_streaks.take_from_claim(claim.failing)
        self._failing, self._crowd = claim.failing, claim.crowd
        if claim.is_anything_lost:  # where that fails, what was claimed is run all the same
            with self.tolerating("what others have lost was not taken over"):
                takeover.take_over(self.executor.idle_ledger, WorkerEnd(handlers=self.registry))
        return claim

    def _claim_suspect(self, overdue: timedelta = timedelta(0)) -> ClaimedRun | None:
        """Claim a suspect that was due for so long, to be run with nothing beside it."""
        wanted = Waiting(Waits.SUSPECT, sorted({each.name for each in self.registry}), wait=overdue)
        claim = self._claim_waiting(wanted, Plan(self.registry))
        return claim.runs[0] if claim.runs else None

    def claim_batch(self, name: str) -> Claim:
        """Claim what a handler of batches is to take next.

        Where there is more than the batch holds, other workers are notified.
        """
        handler = self.registry.named(name)
        if handler is None or handler.batch is None:
            return Claim()
        size, kinds = handler.batch, self._crowd.get(name, ())
        wanted = Waiting(Waits.BATCH, [name], size.most, size.wait, kinds, self._cursor.since)
        claim = self._claim_waiting(wanted, Plan(self.registry, batch=name))
        if claim.is_more and claim.runs:
            self.call_for_help()
        return claim

    def _park_head(self) -> None:
        """Have what is due wait for its batch, where no claim meets it: all slots are busy."""
        if time.monotonic() > self._claimed_at + _CLAIMS_WITHIN:
            since = None if self._full_looks.begin() else self._cursor.since
            claims.park_head(self.executor.idle_ledger, Plan(self.registry), since, _PAGES)
            self._full_looks.end()

    def _claim_waiting(self, wanted: Waiting, plan: Plan) -> Claim:
        claim = claims.claim(self.executor.idle_ledger, plan, wanted=wanted, at_once=wanted.most)
        self._hold(claim.runs)
        return claim

    def _hold(self, runs: Sequence[ClaimedRun]) -> None:
        if runs:
            self._held.add(runs)
            if self._last is not None:
                self._last.hold(self._held)
            self._heartbeat.begin()
            reach("run.claimed")

    @staticmethod
    def _budget_ends() -> float:
        """Return until when what is claimed now may be started, by the monotonic clock."""
        return time.monotonic() + DRAIN_BUDGET.total_seconds()

    def may_start(self, run: ClaimedRun) -> bool:
        """Return whether a claimed run may be started: it is still ours, and its handler's breaker has not opened."""
        if not self._held.holds(run) or self._train.is_in_doubt:
            return False
        return run.is_trial or not self._shared.failure_streaks.has_tripped(self.registry.named(run.handler))

    def _release(self, runs: Iterable[ClaimedRun]) -> None:
        """Give back runs that were not started; others may have them. Where that fails they wait to be given back."""
        if not (runs := list(runs)):
            return
        try:
            released = leases.release(self.executor.idle_ledger, runs)
        except BaseException:
            self.buffer.put(runs, 0.0)
            raise
        if released:
            reach("run.released")
            self._notify()
        self._held.over(runs)

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

    def call_for_help(self) -> None:
        """Notify other workers: more is due than was claimed."""
        self._notify()

    # What others have left

    def come_after(self, last: LastClaims) -> None:
        """Take over what the worker before us held, and say how it ended; from now on write down what we hold."""
        self._last = last
        self._take_over_last()

    def _take_over_last(self) -> None:
        """Take over what the worker before us held; it is left for another time where the ledger is away."""
        if self._last is not None and (lost := self._last.left()) is not None:
            with self.tolerating("what the worker before held was not taken over"):
                end = WorkerEnd(f"{WORKER_ENDED}: {lost.how}", self.registry)
                takeover.take_over_of(self.executor.idle_ledger, lost.tokens, end)
                self._last.forget()

    def _look_around(self) -> None:
        """Look for what others have left behind, each at its time."""
        if self._last is not None and self._last.is_left:
            self._take_over_last()
        if time.monotonic() > self._rates_at:
            self.tend_rates()
        if time.monotonic() > self._wake_at:
            self.requeue_ignored()

    def requeue_ignored(self) -> None:
        """Register the handlers that are here; take up recent events that other workers, without them, have ignored."""
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        requeued: Sequence[int] = ()
        with self.tolerating("recent ignored events were not looked at"):
            rows, said = self.registry.rows(), self.registry.declarations()
            handlers.register_handlers(self.executor.idle_ledger, rows, said)
            issues.register_release(self.executor.idle_ledger, self._shared.sealing.release)
            requeued = ignored.requeue(self.executor.idle_ledger, self.registry.matching, ROLLING_DEPLOY)
            # What was parked for a limit that has been taken away since.
            unlimited = dict.fromkeys(self.registry.without_limit(), limit_gate.MAX_WAITING)
            limit_gate.take_up(self.executor.idle_ledger, unlimited)
            single = [handler.name for handler in self.registry if handler.batch is None]
            parking.unbatch(self.executor.idle_ledger, single)
        if requeued:  # at once: a worker without these handlers would ignore them again
            self.run_due(requeued)

    def tend_rates(self) -> None:
        """Have what another rate has put off come by the one that its handler has here."""
        pause, is_over = WAKE_INTERVAL, True
        with self.tolerating("what other rates have put off was not looked at"):
            is_over = self._rate_changes.tend(self.executor.idle_ledger, self.registry.schedules())
        if not is_over:
            pause = RATE_CHANGE_INTERVAL
        self._rates_at = time.monotonic() + pause.total_seconds()

    # What a worker asks of it

    def run_due(self, ids: Sequence[int] = ()) -> int:
        """Run what is due, the events of `ids` first; return the number of attempts, if they were made by then."""
        raise NotImplementedError

    def reporting(self) -> AbstractContextManager[object]:
        """Report for the desk what takes long, as long as a block lasts."""
        return nullcontext()

    def longest_wait(self, longest: float) -> float:
        """Return how long (seconds) a worker may wait for a notification before it is to look again."""
        return longest

    @property
    def _is_batch_under_way(self) -> bool:
        """Whether runs of batches must not wait for a batch to take them from where they are due."""
        return False

    @property
    def under_way(self) -> Attempt | None:
        """The attempt that goes on in the main thread, if one does."""
        return None

    def finish(self) -> int:
        """End the work that is still under way, and tell of it; return the exit status."""
        self._train.end()
        with self.tolerating("claims that are over were not forgotten", level=logging.DEBUG):
            if finished := self._held.take_finished():  # no claim follows that would forget them
                with self.executor.idle_ledger.transaction():
                    leases.forget(self.executor.connection.ledger, finished)
        return 0

    def flush(self) -> None:
        """Send what has been traced."""
        tracing.flush(self.settings)

    def close(self) -> None:
        """Close every connection; for tests, a worker keeps them until it ends."""
        self._heartbeat.end()
        self._train.end()
        self.executor.close()
        self._steps.close()
        listen(
            self._engine, "checkin", lambda _, entry: entry.close()
        )  # a thread that outlives us may have some
        self._engine.dispose()
        self._client.close()
