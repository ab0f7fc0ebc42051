"""Writes down for the desk, every few seconds, what a worker is at: its slots, and the attempts that take long."""

import logging
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.ports import Attempt
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.worker_slots import LongAttempt, SlotReport

log = logging.getLogger(__name__)

_CHANGE_INTERVAL = 1.0
"""Seconds between two reports of a worker whose slots in use are never the same for long."""
_END_PATIENCE = timedelta(seconds=1)
"""How long the end of a worker waits for a report that is under way; the server may hang."""


class AnySlot(Protocol):
    """A slot as it is reported; `is_lost`: by a handler that no time limit could end."""

    under_way: Attempt | None
    worked: float
    is_lost: bool
    executor: Executor


class Report:
    """The reports of one process: its slots, and what is no slot `besides`, whose long attempts are told as well."""

    def __init__(self, slots: Sequence[AnySlot], besides: Sequence[AnySlot] = ()) -> None:
        self._slots = slots
        self._besides = besides
        self._said: SlotReport | None = None
        self._said_at = 0.0
        self._worker = uuid.uuid4()
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._due = 0.0

    def tend(self, connection: psycopg.Connection) -> None:
        """Report, if it is time to: what has changed within a second. Committed."""
        now, count = time.monotonic(), self._count()
        has_changed = count != self._said and now >= self._said_at + _CHANGE_INTERVAL
        if now < self._due and not has_changed:
            return
        self._due = now + worker_slots.REPORT_INTERVAL.total_seconds()
        worker_slots.report(connection, self._worker, self._name, count, self.long_attempts())
        self._said, self._said_at = count, now

    def end(self, connection: psycopg.Connection) -> None:
        """Report no more. Committed."""
        worker_slots.forget(connection, self._worker)

    def long_attempts(self) -> list[LongAttempt]:
        """Return the attempts that take long, with the backends that they are with."""
        least = time.monotonic() - worker_slots.LONG_AFTER.total_seconds()
        found = [(slot.executor, slot.under_way) for slot in (*self._slots, *self._besides)]
        return [
            LongAttempt(under_way.run.handler, under_way.run.event.id, executor.backend)
            for executor, under_way in found
            if under_way is not None and under_way.began < least
        ]

    def _count(self) -> SlotReport:
        lost = sum(slot.is_lost for slot in self._slots)
        busy = sum(slot.under_way is not None and not slot.is_lost for slot in self._slots)
        return SlotReport(len(self._slots), busy, lost)


class Reporter:
    """Reports for a worker that runs one at a time, as long as the block lasts, and only while an attempt takes long.

    In a thread, since the main thread is the handler's. `connect` gives a connection for one report.
    """

    def __init__(
        self,
        slot: AnySlot,
        connect: Callable[[], AbstractContextManager[psycopg.Connection]],
    ) -> None:
        self._report = Report([slot])
        self._connect = connect
        self._has_reported = False
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._report_on, name="report", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended.set()
        self._thread.join(_END_PATIENCE.total_seconds())

    def _report_on(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are to wake the main thread
        while not self._has_ended.wait(worker_slots.REPORT_INTERVAL.total_seconds()):
            try:
                self.look()
            except (psycopg.Error, SQLAlchemyError, LedgerUnavailable) as error:
                log.info("what takes long was not reported: %s", type(error).__name__)
            except Exception:
                log.exception("what takes long was not reported")

    def look(self) -> None:
        """Report what takes long, or that nothing does any more. Raises what is raised where the ledger is away."""
        takes_long = bool(self._report.long_attempts())
        if takes_long or self._has_reported:
            with self._connect() as connection:
                (self._report.tend if takes_long else self._report.end)(connection)
            self._has_reported = takes_long
