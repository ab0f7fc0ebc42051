"""Commit trains: quick runs that follow each other don't each wait for the disk (docs/decisions/0037).

Each keeps a transaction of its own, with its effects and its end in it, and commits without waiting for the flush. A
flush of the process, `FLUSH_WITHIN` after the first of them, makes all durable; only then is anything said of them. A
crash of the server loses effects and end together, or neither: such a run is found under its token afterwards, and
given back. The flush is a commit on a connection that was open before theirs: so a server that has crashed in between
is not taken for one that has kept them.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts.ports import Attempt
from hookonce.receiver.ledger.database import round_trip
from hookonce.receiver.ledger.database.connections import LedgerUnavailable

log = logging.getLogger(__name__)

FLUSH_WITHIN = timedelta(milliseconds=5)
MOST = 32
"""Commits of the process that may wait for a flush; the next one waits for it by itself."""
_TRIES_AGAIN = timedelta(seconds=5)
"""After which a flush is tried again that was not to be had: till then each commit waits for its own."""


class Train:
    """The unflushed commits of one process, for all its threads; `connect` lends a connection for good."""

    def __init__(self, connect: Callable[[], AbstractContextManager[psycopg.Connection]]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._aboard: list[Attempt] = []
        self._leaving: list[Attempt] = []
        self._doubtful: list[Attempt] = []
        self._wake = threading.Event()
        self._is_ending = False
        self._is_ready = False
        self._number = 0  # of the connection that flushes are made on
        self._opens_at = 0.0
        self._thread: threading.Thread | None = None

    def ticket(self) -> int | None:
        """Return what a run is to board with whose commit may go without waiting, to be asked for before; else None.

        It may while the connection of the flush is open, and few wait for it.
        """
        if self._thread is None and not self._is_ending and time.monotonic() >= self._opens_at:
            self._begin()
        return self._number if self._is_ready and len(self._aboard) < MOST else None

    def board(self, attempt: Attempt) -> None:
        """Take an attempt that was committed without waiting, and tell of it once it is flushed.

        If the connection of its ticket has ended meanwhile, nobody knows whether it will be.
        """
        with self._lock:
            of_ours = self._aboard if attempt.ticket == self._number else self._doubtful
            of_ours.append(attempt)
            is_first = len(self._aboard) == 1
        if is_first:
            self._wake.set()

    def take_doubtful(self) -> list[Attempt]:
        """Return what a crash of the server may have lost, once: each is to be looked for, and said or given back."""
        with self._lock:
            found, self._doubtful = self._doubtful, []
        return found

    def put_back(self, doubtful: list[Attempt]) -> None:
        """Take back what could not be looked for."""
        with self._lock:
            self._doubtful = doubtful + self._doubtful

    @property
    def is_in_doubt(self) -> bool:
        """Whether something is to be looked for before any other run is begun."""
        return bool(self._doubtful)

    def doubt(self) -> None:
        """Hear that a connection was lost: what was not flushed may be, too."""
        with self._lock:
            self._doubtful += self._leaving + self._aboard
            self._leaving, self._aboard = [], []

    def end(self) -> None:
        """Flush what is left, and have the thread end."""
        self._is_ending = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run_on, name="flush", daemon=True)
                self._thread.start()

    def _run_on(self) -> None:
        try:
            with self._connect() as connection:
                if not round_trip.can_flush(connection):
                    self._opens_at = float("inf")
                    return
                self._is_ready = True
                self._flush_on(connection)
        except (psycopg.Error, SQLAlchemyError, LedgerUnavailable) as error:
            log.info("commits are not flushed together for now: %s", type(error).__name__)
            self._opens_at = time.monotonic() + _TRIES_AGAIN.total_seconds()
        finally:
            self._is_ready = False
            with self._lock:
                self._number += 1
                self._thread = None
            self.doubt()

    def _flush_on(self, connection: psycopg.Connection) -> None:
        while not (self._is_ending and not self._aboard):
            self._wake.wait()
            self._wake.clear()
            if not self._is_ending:
                time.sleep(FLUSH_WITHIN.total_seconds())
            if self._take_aboard():
                round_trip.flush(connection)
                self._tell()
            if self._aboard:
                self._wake.set()

    def _take_aboard(self) -> bool:
        """Take those that the next flush is for; return whether there are any."""
        with self._lock:
            self._leaving, self._aboard = self._aboard, []
            return bool(self._leaving)

    def _tell(self) -> None:
        """Tell of those that are flushed."""
        with self._lock:
            flushed, self._leaving = self._leaving, []
        for attempt in flushed:
            tell(attempt)


def tell(attempt: Attempt) -> None:
    """Tell of an attempt that is flushed; what fails in that keeps nobody else waiting."""
    try:
        if attempt.tell_flushed is not None:
            attempt.tell_flushed(attempt)
    except Exception:
        log.exception("a run was not told of")
