"""The objects that all attempts of one process share, whichever thread makes them.

Its claims, and the thread that renews their leases and ends transactions that are open for too long: it counts no
attempt and takes nothing over, so a claim that is lost stays lost, and the end of its runs says so. Failures in a row
by one error, as this process saw them: the ledger counts for all processes (`receiver.ledger.runs.breakers`), and what
is known here saves a write at each success, and stops a batch that was claimed before the breaker opened.

Runs that were claimed and not started wait in a buffer, where a slot that ends a run takes the next one. The runs of a
claim are started in its order, so that those which may have been started are known if the process dies: a run that may
not be started yet keeps the others of its claim waiting. A run may be started until its claim's budget ends; then it
is given back, for others to take.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import psycopg

from hookonce.jobs.attempts.endings import Sealing
from hookonce.jobs.attempts.ports import Listener
from hookonce.jobs.attempts.train import Train
from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.handlers import Handler, Registry
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.idempotency.postgresql import Connections
from hookonce.receiver.ledger.runs import breakers, leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Also
from hookonce.receiver.ledger.states import RunStatus

log = logging.getLogger(__name__)


_TICK = 1.0
"""Seconds."""
CutOverlong = Callable[[float], None]
"""Ends a transaction that has been open for too long, by the monotonic clock."""


class OwnClaims:
    """The claims of a process whose runs are not over; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[UUID, set[tuple[int, int]]] = {}  # events and places
        self._finished: list[UUID] = []
        self._kept: set[UUID] = set()

    def add(self, runs: Iterable[ClaimedRun]) -> None:
        """Hold what was claimed."""
        with self._lock:
            for run in runs:
                self._left.setdefault(run.token, set()).add((run.event.id, run.n))

    def over(self, runs: Iterable[ClaimedRun]) -> None:
        """Hear of runs that are over; twice is once, and of claims that were dropped is never."""
        with self._lock:
            for run in runs:
                left = self._left.get(run.token)
                if left is None:
                    continue
                left.discard((run.event.id, run.n))
                if not left:
                    del self._left[run.token]
                    if run.token not in self._kept:
                        self._finished.append(run.token)
                    self._kept.discard(run.token)

    def leave(self, runs: Iterable[ClaimedRun]) -> None:
        """Hear of runs that stay in their claims, for whoever takes those over once nothing else of them is ours."""
        with self._lock:
            self._kept.update(run.token for run in runs)

    @property
    def tokens(self) -> Sequence[UUID]:
        """The claims with runs that are not over."""
        with self._lock:
            return list(self._left)

    def drop(self, tokens: Iterable[UUID]) -> None:
        """Forget claims that somebody else has taken over, or that are left to whoever will."""
        with self._lock:
            for token in tokens:
                self._left.pop(token, None)
                self._kept.discard(token)

    def holds(self, run: ClaimedRun) -> bool:
        """Return whether a run's claim is still ours, as far as is known."""
        return run.token in self._left

    def take_finished(self) -> Sequence[UUID]:
        """Return the claims that are over, once; `give_back_finished` them where they could not be forgotten."""
        with self._lock:
            finished, self._finished = self._finished, []
        return finished

    def give_back_finished(self, tokens: Iterable[UUID]) -> None:
        """Take back claims that were not forgotten."""
        with self._lock:
            self._finished.extend(tokens)


MayStart = Callable[[ClaimedRun], bool]


class _Leased:
    """The runs of one claim, and until when they may be started, by the monotonic clock."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.runs: deque[ClaimedRun] = deque()


class Buffer:
    """The runs of one process, by claim; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[UUID, _Leased] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, runs: Sequence[ClaimedRun], until: float) -> None:
        """Add runs that were claimed."""
        with self._lock:
            for run in runs:
                self._of(run, until).runs.append(run)
            self._count += len(runs)

    def put_back(self, run: ClaimedRun) -> None:
        """Add a run that was taken and not started: it is the first of its claim again.

        Where that claim has no other run here, it is given back.
        """
        with self._lock:
            self._of(run, 0.0).runs.appendleft(run)
            self._count += 1

    def take_first(self) -> ClaimedRun | None:
        """Take the first run of the oldest claim, even if it is late: so that each claim starts one."""
        return self.take(lambda _: True, now=0.0)

    def take(self, may_start: MayStart, now: float | None = None) -> ClaimedRun | None:
        """Take the first run of a claim: of the oldest claim whose first run may be started."""
        if not self._count:
            return None
        now = time.monotonic() if now is None else now
        with self._lock:
            for token, claim in self._claims.items():
                if now < claim.until and may_start(claim.runs[0]):
                    self._count -= 1
                    run = claim.runs.popleft()
                    if not claim.runs:
                        del self._claims[token]
                    return run
        return None

    def take_late(self, may_start: MayStart | None = None) -> list[ClaimedRun]:
        """Take the runs that are not to be started any more: too late, or not `may_start`; without it all."""
        late: list[ClaimedRun] = []
        now = time.monotonic()
        with self._lock:
            for token, claim in list(self._claims.items()):
                left: deque[ClaimedRun] = deque()
                is_in_time = may_start is not None and now < claim.until
                for run in claim.runs:
                    (left if is_in_time and may_start is not None and may_start(run) else late).append(run)
                claim.runs = left
                if not left:
                    del self._claims[token]
            self._count -= len(late)
        return late

    def _of(self, run: ClaimedRun, until: float) -> _Leased:
        if (claim := self._claims.get(run.token)) is None:
            claim = self._claims[run.token] = _Leased(until)
        return claim


class Heartbeat:
    """The heartbeat of one process; `connect` gives a connection for one renewal."""

    def __init__(
        self, claims: OwnClaims, connect: Callable[[], AbstractContextManager[psycopg.Connection]]
    ) -> None:
        self._claims = claims
        self._connect = connect
        self._lock = threading.Lock()
        self._cuts: set[CutOverlong] = set()
        self._has_begun = False
        self._end = threading.Event()

    def begin(self) -> None:
        """Start the thread, unless it was."""
        with self._lock:
            if self._has_begun:
                return
            self._has_begun = True
        threading.Thread(target=self._beat_on, name="heartbeat", daemon=True).start()

    def end(self) -> None:
        """Have the thread end."""
        self._end.set()

    @contextmanager
    def cutting(self, cut: CutOverlong) -> Iterator[None]:
        """Have a run's transactions watched over as long as the block lasts."""
        self.begin()
        with self._lock:
            self._cuts.add(cut)
        try:
            yield
        finally:
            with self._lock:
                self._cuts.discard(cut)

    def _beat_on(self) -> None:
        due = time.monotonic() + leases.RENEW_INTERVAL.total_seconds()
        while not self._end.wait(min(max(due - time.monotonic(), 0), _TICK)):
            with self._lock:
                cuts = list(self._cuts)
            for cut in cuts:
                cut(time.monotonic())
            if time.monotonic() >= due:
                due = time.monotonic() + leases.RENEW_INTERVAL.total_seconds()
                self.beat()

    def beat(self) -> None:
        """Renew once. Raises nothing: where it fails, the next beat comes before the leases are over."""
        if not (tokens := self._claims.tokens):
            return
        try:
            with self._connect() as connection:
                renewed = leases.renew(connection, tokens)
        except Exception as error:  # noqa: BLE001  a listener of the user's to all pools may raise anything
            log.warning("the leases of %d claims were not renewed: %s", len(tokens), type(error).__name__)
            return
        if lost := set(tokens) & set(self._claims.tokens) - renewed:
            log.warning("%d claims are somebody else's by now; nothing more of them is started", len(lost))
            self._claims.drop(lost)


class FailureRows:
    """The rows of one worker's handlers, for all its threads; a claim says which the ledger counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: AbstractSet[str] = frozenset()
        self._rows: dict[str, tuple[str, int]] = {}  # by which error a handler failed here, and how often

    def take_from_claim(self, counted: AbstractSet[str]) -> None:
        """Note which handlers the ledger counts failures of; a row that it does not know is over."""
        with self._lock:
            self._counted = counted
            self._rows = {name: row for name, row in self._rows.items() if name in counted}

    def has_tripped(self, handler: Handler | None) -> bool:
        """Whether a handler has just failed so often that its breaker is open; what is leased of it can wait."""
        if not self._rows or handler is None:
            return False
        return handler.breaker is not None and self._rows.get(handler.name, ("", 0))[1] >= handler.breaker

    def after_success(self, handler: str) -> Also | None:
        """Return what ends a handler's row, if it has one."""
        if not (self._rows or self._counted):
            return None
        with self._lock:
            has_row = self._rows.pop(handler, None) is not None or handler in self._counted
        return partial(breakers.close, handler=handler) if has_row else None

    def after_failure(self, handler: Handler, error: BaseException) -> Also | None:
        """Return what counts a failure, if the handler has a breaker."""
        if handler.breaker is None:
            return None
        failure = breakers.Failure(whereabouts(error), handler.breaker)
        with self._lock:
            before, count = self._rows.get(handler.name, (failure.error, 0))
            count = count + 1 if before == failure.error else 1
            self._rows[handler.name] = (failure.error, count)
        return CountedFailure(handler.name, failure)

    def say_if_opened(self, also: Also | None) -> None:
        """Log it, once in all processes, if a failure that was counted and committed has opened the breaker."""
        if not isinstance(also, CountedFailure) or not also.has_opened:
            return
        failure = also.failure
        with self._lock:
            self._rows[also.handler] = (failure.error, failure.limit)
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


class Tally:
    """How many runs have ended in one process, by how; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[RunStatus] = Counter()

    def add(self, status: RunStatus, runs: int = 1) -> None:
        """Count runs that have ended alike."""
        with self._lock:
            self.counts[status] += runs


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts of one process.

    `provider_of` gives what reads a source's bodies, also by the provider's name. `steps` lends the connections that
    steps are written on; without it there are none. Without `train` each commit waits for its own flush.
    """

    provider_of: Callable[[str, str], Provider | None]
    claims: OwnClaims
    heartbeat: Heartbeat
    handlers: Registry
    train: Train | None
    steps: Connections | None
    sealing: Sealing
    listener: Listener | None
    failure_rows: FailureRows = field(default_factory=FailureRows)
    tally: Tally = field(default_factory=Tally)
    warned: set[str] = field(default_factory=set)
    """Handlers of which it was said already that their lists have another length than their batches."""


def listener_of(settings: Settings) -> Listener | None:
    """Return who hears of attempts; to trace them needs the extra `otel`."""
    if not settings.tracing:
        return None
    from hookonce.jobs.attempts.traces import Traces, hear_calls  # noqa: PLC0415  it imports OpenTelemetry

    hear_calls()
    return Traces()
