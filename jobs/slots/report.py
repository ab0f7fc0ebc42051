"""Writes down for the desk what a worker's slots are at, every few seconds."""

import os
import socket
import time
import uuid
from collections.abc import Sequence

import psycopg

from hookonce.jobs.slots.slot import Slot
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.worker_slots import LongAttempt, SlotReport


class Report:
    """The reports of one process."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._worker = uuid.uuid4()
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._due = 0.0

    def tend(self, connection: psycopg.Connection) -> None:
        """Report, if it is time to. Committed."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + worker_slots.REPORT_INTERVAL.total_seconds()
        worker_slots.report(connection, self._worker, self._name, self._count(), self._long(now))

    def end(self, connection: psycopg.Connection) -> None:
        """Report no more. Committed."""
        worker_slots.forget(connection, self._worker)

    def _count(self) -> SlotReport:
        lost = sum(slot.is_lost for slot in self._slots)
        busy = sum(slot.under_way is not None and not slot.is_lost for slot in self._slots)
        return SlotReport(len(self._slots), busy, lost)

    def _long(self, now: float) -> list[LongAttempt]:
        least = now - worker_slots.LONG_AFTER.total_seconds()
        found = [(slot, slot.under_way) for slot in self._slots]
        return [
            LongAttempt(under_way.run.handler, under_way.run.event.id, slot.executor.backend)
            for slot, under_way in found
            if under_way is not None and under_way.began < least
        ]
