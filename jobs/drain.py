"""What a worker does when the bell rings: run the events that rang, then whatever else is due, within a budget.

The budget keeps one job from holding a worker for ever and lets others help: whoever stops on it, or finds
more than one batch, rings again. What was claimed and cannot be started in time is let go of.
"""

import logging
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import cache, partial

import psycopg
import redis
from sqlalchemy.exc import SQLAlchemyError

from jobs import alert_delivery
from jobs.execution import Executor
from jobs.handlers import Registry, import_handlers
from providers.kit.registry import names
from receiver import database, engines, tracing
from receiver.breaker import Breaker
from receiver.failpoints import reach
from receiver.handoff import Bell
from receiver.ledger import announced, claims, runs
from receiver.ledger.claims import Claim
from receiver.ledger.runs import ClaimedRun
from receiver.settings import Settings, load_settings, require_servers
from receiver.settings_alerts import SOURCE as ALERTS
from receiver.window import connect

log = logging.getLogger(__name__)

BATCH = 50
BUDGET = timedelta(seconds=2)
MOST_EVENTS = 1000
ROLLING_DEPLOY = timedelta(minutes=15)
WAKE_INTERVAL = timedelta(seconds=30)
"""How often a worker looks for what others, without its handlers, have ignored."""

stopping = threading.Event()
"""Set when this process was asked to stop: the attempt under way is finished, the rest is let go of."""


class Drain:
    """Claims and runs due events in one process, with connections of its own."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self._registry = registry
        self._settings = settings
        self._engine = engines.engine(
            settings.database_url,
            name="hookonce worker",
            pool_size=1,
            hide_parameters=True,  # of a failed statement: they come from bodies, and errors are kept in the clear
        )
        providers = {name: source.provider for name, source in settings.sources.items()}
        executor = tracing.traced(Executor, "jobs.traced.TracedExecutor", settings)
        self._executor = executor(self._engine, providers.get, settings.keyring)
        self._client = connect(settings.redis_url)
        self._bell = Bell(self._client)
        self._quick_first = False
        self._is_away = False
        self._breaker = Breaker(limit=1)
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()

    def work(self, ids: Sequence[int] = ()) -> int:
        """Run what is due, the events of `ids` first, until nothing is or the budget is used; count the attempts.

        Raises nothing when a server is away: what is due stays due, and the sweep brings it back.
        """
        if time.monotonic() > self._wake_at:
            self.wake_ignored()
        until = time.monotonic() + BUDGET.total_seconds()
        attempts = events = 0
        try:
            named: Sequence[int] | None = ids or None
            while not stopping.is_set():
                claim = self._claim(named)
                self._tell(is_away=None)
                if claim.events == 0 and named is None:
                    return attempts
                named = None
                events += claim.events
                if claim.is_more:
                    self._ring()
                reach("run.claimed")
                attempts += self._run(claim.runs, until)
                if time.monotonic() > until or events >= MOST_EVENTS:
                    self._ring()
                    return attempts
        except (psycopg.Error, SQLAlchemyError, database.LedgerUnavailable) as error:
            self._tell(is_away=type(error).__name__)
            self._executor.discard()
        except BaseException:  # whatever a handler did to the connection, the next job must not meet it
            self._executor.discard()
            raise
        return attempts

    def _tell(self, *, is_away: str | None) -> None:
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
            self._executor.ledger,
            self._registry,
            budget=BUDGET,
            ids=ids,
            limit=BATCH,
            quick_first=self._quick_first,
        )

    def wake_ignored(self) -> None:
        """Say which handlers are here; take up recent events that other workers, without them, have ignored."""
        self._wake_at = time.monotonic() + WAKE_INTERVAL.total_seconds()
        try:
            announced.announce(self._executor.ledger, self._registry.rows())
            woken = runs.wake_ignored(self._executor.ledger, self._registry, ROLLING_DEPLOY)
        except (psycopg.Error, SQLAlchemyError) as error:
            log.warning("recent ignored events were not looked at: %s", type(error).__name__)
            self._executor.discard()
            return
        if woken:  # at once: a worker without these handlers would ignore them again
            self.work(woken)

    def _run(self, claimed: Sequence[ClaimedRun], until: float) -> int:
        """Attempt the claimed runs in order, each starting the next; let go of what can't be started in time."""
        attempts = 0
        with self._executor.alarm:
            is_started = bool(claimed)
            while is_started:
                is_started = self._attempt(claimed, attempts, until)
                attempts += 1
        if runs.release(self._executor.ledger, claimed[attempts:]):
            reach("run.released")
            self._ring()
        return attempts

    def _attempt(self, claimed: Sequence[ClaimedRun], number: int, until: float) -> bool:
        """Attempt one of the claimed runs; tell whether the next was started."""
        run = claimed[number]
        handler = self._registry.named(run.handler)
        if handler is None:  # cannot be: the claim asked the same registry
            raise LookupError(f"handler '{run.handler}' vanished from the registry")
        began = time.monotonic()
        started = self._executor.attempt(run, handler, partial(_startable, claimed, number + 1, until))
        self._registry.note(run.handler, timedelta(seconds=time.monotonic() - began))
        return started

    def flush(self) -> None:
        """Send what has been traced."""
        tracing.flush(self._settings)

    def close(self) -> None:
        """Close every connection; for tests, a worker keeps them until it ends."""
        self._executor.discard()
        self._engine.dispose()
        self._client.close()

    def _ring(self) -> None:
        """Call for help, or for ourselves later; a lost ring costs the sweep's interval."""
        if self._breaker.is_open:
            return
        try:
            if self._bell.ring_if_quiet():
                reach("drain.rung")
        except (redis.RedisError, OSError) as error:
            self._breaker.failed()
            log.info("the bell can't be rung: %s", type(error).__name__)


def _startable(claimed: Sequence[ClaimedRun], number: int, until: float) -> ClaimedRun | None:
    """Give the run of this number, unless there is none, or no time for it."""
    is_time = not stopping.is_set() and time.monotonic() < until
    return claimed[number] if number < len(claimed) and is_time else None


@cache
def process_drain() -> Drain:
    """Make this process's drain from its configuration, once; the user's handlers are imported here.

    Raises `ConfigError` and `HandlerError`.
    """
    settings = load_settings(need_secrets=False)
    require_servers(settings)
    return Drain(settings, handlers_of(settings))


def handlers_of(settings: Settings) -> Registry:
    """Import the user's handlers, each for a source or provider there is, and add those that send alerts.

    Raises `ConfigError` and `HandlerError`.
    """
    registry = import_handlers(settings.handlers)
    registry.require_places([*settings.sources, ALERTS], names(settings.provider_places))
    alert_delivery.register(registry, settings.alerts)
    return registry


def perform(ids: Sequence[int]) -> int:
    """Do the RQ job in a worker that forks for each: what was traced is sent before the work-horse ends."""
    try:
        return answer(ids)
    finally:
        process_drain().flush()


def answer(ids: Sequence[int]) -> int:
    """Answer the bell: run the events that rang and what else is due; give the number of attempts made."""
    reach("job.begun")
    attempts = process_drain().work(ids)
    reach("job.ended")
    return attempts
