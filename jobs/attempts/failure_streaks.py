"""Streaks of failures by one error, as this process saw them.

The ledger counts for all processes (`receiver.ledger.runs.breakers`). What is known here saves a write at each success,
and stops a batch that was claimed before the breaker opened.
"""

import logging
import threading
from collections.abc import Set as AbstractSet
from functools import partial

import psycopg

from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.handlers import Handler
from hookonce.receiver.ledger.runs import breakers
from hookonce.receiver.ledger.runs.ends import Also

log = logging.getLogger(__name__)


class FailureStreaks:
    """The streaks of one worker's handlers, for all its threads; a claim names those that the ledger counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: AbstractSet[str] = frozenset()
        self._streaks: dict[str, tuple[str, int]] = {}  # by which error a handler failed here, and how often

    def take_from_claim(self, counted: AbstractSet[str]) -> None:
        """Note which handlers the ledger counts failures of; a streak that it does not know is over."""
        with self._lock:
            self._counted = counted
            self._streaks = {name: streak for name, streak in self._streaks.items() if name in counted}

    def has_tripped(self, handler: Handler | None) -> bool:
        """Whether a handler has just failed so often that its breaker is open; what is leased of it can wait."""
        if not self._streaks or handler is None:
            return False
        return handler.breaker is not None and self._streaks.get(handler.name, ("", 0))[1] >= handler.breaker

    def after_success(self, handler: str) -> Also | None:
        """Return what ends a handler's streak, if it has one."""
        if not (self._streaks or self._counted):
            return None
        with self._lock:
            has_streak = self._streaks.pop(handler, None) is not None or handler in self._counted
        return partial(breakers.close, handler=handler) if has_streak else None

    def after_failure(self, handler: Handler, error: BaseException) -> Also | None:
        """Return what counts a failure, if the handler has a breaker."""
        if handler.breaker is None:
            return None
        failure = breakers.Failure(whereabouts(error), handler.breaker)
        with self._lock:
            before, count = self._streaks.get(handler.name, (failure.error, 0))
            count = count + 1 if before == failure.error else 1
            self._streaks[handler.name] = (failure.error, count)
        return CountedFailure(handler.name, failure)

    def say_if_opened(self, also: Also | None) -> None:
        """Log it, once in all processes, if a failure that was counted and committed has opened the breaker."""
        if not isinstance(also, CountedFailure) or not also.has_opened:
            return
        failure = also.failure
        with self._lock:
            self._streaks[also.handler] = (failure.error, failure.limit)
        log.warning(
            "stopped by its circuit breaker after %s in a row: %s (%s); one event is tried in %s s",
            "1 failure" if failure.limit == 1 else f"{failure.limit} failures",
            also.handler,
            failure.error,
            f"{breakers.FIRST_TRY.total_seconds():g}",
        )


class CountedFailure:
    """Counts a failure in the transaction that ends its attempt; the ledger knows then whether it was the last."""

    def __init__(self, handler: str, failure: breakers.Failure) -> None:
        self.handler, self.failure = handler, failure
        self._opening: psycopg.Cursor | None = None

    def __call__(self, connection: psycopg.Connection) -> None:
        """Count it."""
        self._opening = breakers.failed(connection, self.handler, self.failure)

    @property
    def has_opened(self) -> bool:
        """Whether this failure has paused the handler."""
        return self._opening is not None and self._opening.rowcount > 0
