"""The machine of `operation`, with what becomes of each request counted and, where traces are wanted, in a span.

Operations are counted where the ledger is known: in the process, and written down now and then by a thread, so that a
request waits for nothing. `/metrics` shows them (`hookonce_idempotency_total`). What a process has counted in its
last seconds is lost if it is killed; nothing is decided by it.
"""

import atexit
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

import psycopg

from hookonce.receiver.config import servers
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.idempotency import operation as machine
from hookonce.receiver.idempotency.operation import Stored
from hookonce.receiver.idempotency.records import (
    Claim,
    InProgress,
    Key,
    KeyReused,
    LeaseLost,
    Result,
    State,
    Store,
    StoreUnavailable,
    Terms,
)
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)

WRITE_INTERVAL = timedelta(seconds=2)


class Outcome(StrEnum):
    """The outcome of a request under a key, or of its claim."""

    CLAIMED = "claimed"
    TAKEN_OVER = "taken_over"
    RETRIED = "retried"
    REPLAYED = "replayed"
    CONFLICT = "conflict"
    IN_PROGRESS = "in_progress"
    UNAVAILABLE = "unavailable"
    COMPLETED = "completed"
    FAILED_FINAL = "failed_final"
    FAILED_RETRYABLE = "failed_retryable"
    ABANDONED = "abandoned"
    REFUSED = "refused"


class Span(Protocol):
    """The attributes that a span is told."""

    def set_attribute(self, key: str, value: str) -> object:
        """Set an attribute."""
        ...


class _NoSpan:
    def set_attribute(self, key: str, value: str) -> None:
        """Do nothing."""


_NO_SPAN = _NoSpan()


class Operations:
    """Counts what becomes of the requests of one process, and writes that down at `url`."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._counts: Counter[Tally] = Counter()
        self._writer: tuple[int, threading.Thread] | None = None
        self._closing = threading.Event()

    def count(self, tally: Tally) -> None:
        """Count one; costs a microsecond or two."""
        with self._lock:
            self._counts[tally] += 1
            if self._writer is None or self._writer[0] != os.getpid():
                self._start()

    def flush(self) -> None:
        """Write down what was counted. What can't be written is kept for the next time, and raises nothing."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            with connections.connect(self._url()) as connection:
                counters.add(connection, counts)
        except (psycopg.Error, LedgerUnavailable, ConfigError) as error:
            log.debug("requests under keys were not counted yet: %s", type(error).__name__)
            with self._lock:
                self._counts += counts

    def close(self) -> None:
        """Write down what is left, and end the thread."""
        self._closing.set()
        if self._writer is not None and self._writer[0] == os.getpid():
            self._writer[1].join()
        self.flush()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, daemon=True, name="hookonce-operations")
        self._writer = os.getpid(), thread
        thread.start()

    def _run(self) -> None:
        while not self._closing.wait(WRITE_INTERVAL.total_seconds()):
            self.flush()


operations = Operations(servers.ledger_url)
"""Those of this process, in the ledger that its environment names."""
atexit.register(operations.close)


class Counted:
    """An operation whose requests are counted by `count`, under its name."""

    def __init__(self, name: str, count: Callable[[Tally], None] = operations.count) -> None:
        self._name = name
        self._count = count

    def begin(
        self, store: Store, key: Key, fingerprint: bytes, terms: Terms, *, again: bool = False
    ) -> Claim | Stored:
        """Claim a key, or give its answer, as `operation.begin`; `again`: this request has looked before."""
        with self._span("claim") as span:
            with self._told(span, expected=again):
                begun = machine.begin(store, key, fingerprint, terms)
            if isinstance(begun, Stored):
                outcome, state = Outcome.REPLAYED, begun.state
            else:
                outcome, state = _claimed(begun), State.IN_PROGRESS
            span.set_attribute("hookonce.outcome", outcome)
            span.set_attribute("hookonce.state", state)
        self.count(outcome)
        return begun

    def complete(self, store: Store, claim: Claim, result: Result, state: State = State.COMPLETED) -> None:
        """Store the result of a claim; as `operation.complete`."""
        with self.ended(state):
            machine.complete(store, claim, result, state)

    def fail_for_now(self, store: Store, claim: Claim) -> None:
        """Let the same request be tried again; as `operation.fail_for_now`."""
        with self.ended(State.FAILED_RETRYABLE):
            machine.fail_for_now(store, claim)

    def abandon(self, store: Store, claim: Claim) -> None:
        """Give a key back; as `operation.abandon`."""
        with self._told(_NO_SPAN):
            machine.abandon(store, claim)
        self.count(Outcome.ABANDONED)

    @contextmanager
    def ended(self, state: State) -> Iterator[None]:
        """Count, and trace, the block that ends a claim with this state."""
        with self._span("settle") as span:
            span.set_attribute("hookonce.state", state)
            with self._told(span):
                yield
        self.count(Outcome(state))

    def count(self, outcome: Outcome) -> None:
        """Count one."""
        self._count(Tally(Kind.KEY, self._name, outcome))

    @contextmanager
    def _told(self, span: Span, *, expected: bool = False) -> Iterator[None]:
        """Tell of what raises; of an operation that is in progress only if that is not `expected`."""
        try:
            yield
        except (KeyReused, InProgress, LeaseLost, StoreUnavailable) as error:
            outcome = _OUTCOMES[type(error)]
            span.set_attribute("hookonce.outcome", outcome)
            if not (expected and outcome is Outcome.IN_PROGRESS):
                self.count(outcome)
            raise

    def _span(self, name: str) -> AbstractContextManager[Span]:
        """Begin a span where this process has OpenTelemetry in use; whether it is kept is that one's to say."""
        if "opentelemetry.trace" not in sys.modules:
            return nullcontext(_NO_SPAN)
        from hookonce.receiver.idempotency import traced

        return traced.span(name, self._name)


_OUTCOMES = {
    KeyReused: Outcome.CONFLICT,
    InProgress: Outcome.IN_PROGRESS,
    LeaseLost: Outcome.REFUSED,
    StoreUnavailable: Outcome.UNAVAILABLE,
}


def _claimed(claim: Claim) -> Outcome:
    if claim.attempt == 1:
        return Outcome.CLAIMED
    return Outcome.TAKEN_OVER if claim.is_uncertain else Outcome.RETRIED
