"""A buffer of refused deliveries on their way to quarantine: bounded, off the hot path, never in the answer's way.

The background writer's thread writes them. What does not fit is only counted, by the background writer; so is
what the ledger could not be given before the process ended.
"""

import logging
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from hookonce.providers import Delivery
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.decryption import pack
from hookonce.receiver.ledger.quarantine import Arrival
from hookonce.receiver.source import Quarantine, Source

log = logging.getLogger(__name__)

MAX_DELIVERIES = 50
"""Deliveries of one source that wait at a time."""
MAX_BYTES = 4 * 1024 * 1024
"""Their bytes; a larger delivery is not kept."""
MAX_TOTAL_BYTES = 16 * 1024 * 1024
_WARNING_INTERVAL = timedelta(minutes=1)
"""Between two words on one source's full quarantine."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    reason: str
    at: float
    packed: bytes = field(repr=False)


class QuarantineBuffer:
    """Collects refused deliveries of the sources that have a quarantine."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._lock = threading.Lock()
        self._bounds: dict[str, Quarantine] = {}
        self._waiting: defaultdict[str, list[_Waiting]] = defaultdict(list)
        self._bytes: defaultdict[str, int] = defaultdict(int)
        self._warned_at: dict[str, float] = {}

    def offer(self, source: Source, reason: str, delivery: Delivery) -> None:
        """Keep a delivery if its source wants it and there is room. Raises nothing."""
        bounds = source.quarantine
        if bounds is None or reason not in bounds.reasons or len(delivery.body) > MAX_BYTES:
            return
        with self._lock:
            if len(self._waiting[source.name]) >= MAX_DELIVERIES:
                return
        packed = pack(delivery)
        with self._lock:
            is_room = self._bytes[source.name] + len(packed) <= MAX_BYTES
            if is_room and sum(self._bytes.values()) + len(packed) <= MAX_TOTAL_BYTES:
                self._bounds[source.name] = bounds
                self._waiting[source.name].append(_Waiting(reason, time.monotonic(), packed))
                self._bytes[source.name] += len(packed)

    def write(self, connection: psycopg.Connection) -> None:
        """Put what waits in quarantine; what could not be written waits on. Raises: psycopg.Error."""
        with self._lock:
            held = {source: list(waiting) for source, waiting in self._waiting.items() if waiting}
        for source, waiting in held.items():
            now = time.monotonic()
            arrivals = [Arrival(w.reason, timedelta(seconds=now - w.at), w.packed) for w in waiting]
            refused = quarantine.keep(connection, source, self._bounds[source], self._keyring, arrivals)
            with self._lock:
                del self._waiting[source][: len(waiting)]
                self._bytes[source] -= sum(len(each.packed) for each in waiting)
            if refused:
                self._warn_full(source, now)

    def _warn_full(self, source: str, now: float) -> None:
        if now - self._warned_at.get(source, float("-inf")) > _WARNING_INTERVAL.total_seconds():
            self._warned_at[source] = now
            log.warning(
                "the quarantine is full, or took what an hour may bring; refused deliveries are not kept",
                extra={"source": source},
            )
