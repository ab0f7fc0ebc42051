"""Renews the leases of the long runs that a process has under way, in a thread of its own while there are any.

It counts no attempt and takes nothing over: a lease that is lost stays lost, and the run's next transaction says so.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.runs import renewal
from hookonce.receiver.ledger.runs.claimed import Attempt

log = logging.getLogger(__name__)


class Renewed(Protocol):
    """A long run that is under way."""

    @property
    def attempt(self) -> Attempt: ...  # noqa: D102

    def cut_overlong(self, now: float) -> None:
        """End a transaction of its that has been open for too long, by the monotonic clock."""


class Heartbeat:
    """The heartbeat of one process; `connect` gives a connection for one renewal."""

    def __init__(self, connect: Callable[[], AbstractContextManager[psycopg.Connection]]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._runs: set[Renewed] = set()
        self._thread: threading.Thread | None = None

    @contextmanager
    def renewing(self, run: Renewed) -> Iterator[None]:
        """Renew the lease of a run as long as the block lasts."""
        with self._lock:
            self._runs.add(run)
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat_on, name="heartbeat", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._runs.discard(run)

    def _beat_on(self) -> None:
        due = time.monotonic() + renewal.RENEW_INTERVAL.total_seconds()
        while True:
            time.sleep(min(max(due - time.monotonic(), 0), 1))
            with self._lock:
                runs = list(self._runs)
            for run in runs:
                run.cut_overlong(time.monotonic())
            if time.monotonic() < due:
                continue
            due = time.monotonic() + renewal.RENEW_INTERVAL.total_seconds()
            with self._lock:
                if not self._runs:
                    self._thread = None
                    return
            if runs:
                self.beat([run.attempt for run in runs])

    def beat(self, attempts: list[Attempt]) -> None:
        """Renew once. Raises nothing: where it fails, the next beat comes before the lease is over."""
        try:
            with self._connect() as connection:
                renewal.renew(connection, attempts)
        except (psycopg.Error, SQLAlchemyError, LedgerUnavailable) as error:
            log.warning("leases of %d long runs were not renewed: %s", len(attempts), type(error).__name__)
