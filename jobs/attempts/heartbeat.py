"""The claims of a process, and the thread that renews their leases and ends transactions that are open for too long.

It counts no attempt and takes nothing over: a claim that is lost stays lost, and the end of its runs says so.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from uuid import UUID

import psycopg

from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

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
