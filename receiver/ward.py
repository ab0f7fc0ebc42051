"""Where refused deliveries wait to be put in quarantine: bounded, off the hot path, and never in the answer's way.

The tally's thread writes them. What does not fit is only counted, in the tally; so is what the ledger
could not be given before the process ended.
"""

import json
import logging
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from providers import Delivery
from receiver.ledger import quarantine
from receiver.ledger.quarantine import Arrival
from receiver.sealing import Keyring
from receiver.settings_quarantine import Quarantine
from receiver.sources import Source

log = logging.getLogger(__name__)

MOST = 50
"""Deliveries of one source that wait at a time."""
MOST_BYTES = 4 * 1024 * 1024
"""Their bytes; a larger delivery is not kept."""
MOST_BYTES_IN_ALL = 16 * 1024 * 1024
_QUIET = timedelta(minutes=1)
"""Between two words on one source's full quarantine."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    reason: str
    at: float
    packed: bytes = field(repr=False)


class Ward:
    """Collects refused deliveries of the sources that have a quarantine."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._lock = threading.Lock()
        self._bounds: dict[str, Quarantine] = {}
        self._waiting: defaultdict[str, list[_Waiting]] = defaultdict(list)
        self._bytes: defaultdict[str, int] = defaultdict(int)
        self._said: dict[str, float] = {}

    def note(self, source: Source, reason: str, delivery: Delivery) -> None:
        """Have a delivery kept if its source wants it and there is room. Raises nothing."""
        bounds = source.quarantine
        if bounds is None or reason not in bounds.reasons or len(delivery.body) > MOST_BYTES:
            return
        with self._lock:
            if len(self._waiting[source.name]) >= MOST:
                return
        packed = pack(delivery)
        with self._lock:
            is_room = self._bytes[source.name] + len(packed) <= MOST_BYTES
            if is_room and sum(self._bytes.values()) + len(packed) <= MOST_BYTES_IN_ALL:
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
                self._say_full(source, now)

    def _say_full(self, source: str, now: float) -> None:
        if now - self._said.get(source, float("-inf")) > _QUIET.total_seconds():
            self._said[source] = now
            log.warning(
                "the quarantine is full, or took what an hour may bring; refused deliveries are not kept",
                extra={"source": source},
            )


def pack(delivery: Delivery) -> bytes:
    """Write a delivery as bytes: a line of JSON, then the body."""
    head = [delivery.method, delivery.url, dict(delivery.headers), delivery.path_secret]
    return json.dumps(head).encode("ascii") + b"\n" + delivery.body


def unpack(packed: bytes) -> Delivery:
    """Read what `pack` wrote."""
    head, _, body = packed.partition(b"\n")
    method, url, headers, path_secret = json.loads(head)
    return Delivery(method, url, headers, body, path_secret)
