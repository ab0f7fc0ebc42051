"""Writes down for the desk, every few seconds, what a worker is at: its slots, and the attempts that take long."""

import os
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import psycopg

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.ports import Attempt
from hookonce.receiver.ledger.database.engines import AWAY
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.worker_slots import LongAttempt, SlotReport
from hookonce.receiver.processes.repeating import Repeating

_CHANGE_INTERVAL = 1.0
"""Seconds between two reports of a worker whose slots in use are never the same for long."""


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


class Reporter(Repeating):
    """Reports for a worker that runs one at a time, and only while an attempt takes long.

    `connect` gives a connection for one report.
    """

    expected = AWAY

    def __init__(
        self, slot: AnySlot, connect: Callable[[], AbstractContextManager[psycopg.Connection]]
    ) -> None:
        super().__init__(
            "report", worker_slots.REPORT_INTERVAL, "an attempt that takes long was not reported"
        )
        self._report = Report([slot])
        self._connect = connect
        self._has_reported = False

    def look(self) -> None:
        """Report what takes long, or that nothing does any more. Raises what is raised where the ledger is away."""
        takes_long = bool(self._report.long_attempts())
        if takes_long or self._has_reported:
            with self._connect() as connection:
                (self._report.tend if takes_long else self._report.end)(connection)
            self._has_reported = takes_long
