"""The thread that renews the leases of a process's claims, and ends transactions that are open for too long."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg

from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.receiver.ledger.runs import leases

log = logging.getLogger(__name__)

_TICK = 1.0
"""Seconds."""
CutOverlong = Callable[[float], None]
"""Ends a transaction that has been open for too long, by the monotonic clock."""


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
