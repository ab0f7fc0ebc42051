"""Best-effort bookkeeping off the hot path: rejected deliveries, redeliveries, secrets used, and whatever is counted.

Nothing here decides anything, so it may be lost with the process. What a process notes is bounded. One
background thread writes it in one transaction: at once after a quiet spell, then at most every `WRITE_INTERVAL`.
A flood of forged deliveries is counted in full; `MAX_SAMPLES` of them are written each time.
"""

import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import psycopg

from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.rejected import Sample, add_rejections, add_secret_uses
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Tally
from hookonce.receiver.ledger.stats.redeliveries import add_redeliveries
from hookonce.receiver.logs import limited

log = limited(__name__)

WRITE_INTERVAL = timedelta(seconds=0.5)
MAX_SAMPLES = 50
"""Rejected deliveries written per turn at most; the rest is only counted."""
MAX_BODY_PREFIX = 1024
MAX_HEADER_LENGTH = 8 * 1024
"""Characters of a refused delivery's headers that are kept; anyone may send 128 KB of them, again and again."""


class BackgroundWriter:
    """Collects what requests note and writes it in the background; `on_flush` is called at every turn."""

    def __init__(
        self,
        database_url: str,
        keyring: Keyring = OFF,
        on_flush: Callable[[psycopg.Connection], None] | None = None,
    ) -> None:
        self._on_flush = on_flush
        self._url = database_url
        self._keyring = keyring
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self._rejections: Counter[tuple[str, str]] = Counter()
        self._redeliveries: Counter[tuple[str, str]] = Counter()
        self._secrets: Counter[tuple[str, int]] = Counter()
        self._counts: Counter[Tally] = Counter()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def record_rejection(
        self, source: str, reason: str, detail: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Note a refused delivery; an unknown source's name is the sender's text and is not kept as a label."""
        with self._lock:
            self._rejections[source, reason] += 1
            if len(self._samples) < MAX_SAMPLES:
                kept = json.dumps(_first(headers))
                detail = detail.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
                self._samples.append(
                    Sample(datetime.now(UTC), source, reason, detail, kept, body[:MAX_BODY_PREFIX])
                )
        self._wake()

    def record_redelivery(self, source: str, event_id: str) -> None:
        """Note that an event the ledger holds came again."""
        with self._lock:
            self._redeliveries[source, event_id] += 1
        self._wake()

    def record_secret_use(self, source: str, slot: int) -> None:
        """Note which secret of a source, counted from 1, verified a delivery."""
        with self._lock:
            self._secrets[source, slot] += 1
        self._wake()

    def count(self, tally: Tally) -> None:
        """Count something; there are as many kinds as code and configuration have."""
        with self._lock:
            self._counts[tally] += 1
        self._wake()

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._closing.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def _wake(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, daemon=True, name="hookonce-background-writer"
                    )
                    self._thread.start()
        if not self._due.is_set():
            self._due.set()

    def _run(self) -> None:
        connection: psycopg.Connection | None = None
        while not self._closing.is_set() or self._due.is_set():
            self._due.wait()
            self._due.clear()
            try:
                connection = connection or connections.connect(self._url)
                self._write(connection)
                reach("tally.written")
            except (psycopg.Error, connections.LedgerUnavailable) as error:
                log.warning(
                    "some rejections, redeliveries, uses of secrets and other counts are lost: %s",
                    type(error).__name__,
                )
                if connection is not None:
                    connection.close()
                connection = None
            except Exception as error:  # or nothing would be written from then on
                log.exception("what was noted could not be written: %s", type(error).__name__)
            self._closing.wait(WRITE_INTERVAL.total_seconds())
        if connection is not None:
            connection.close()

    def _write(self, connection: psycopg.Connection) -> None:
        with self._lock:
            samples, self._samples = list(self._samples), deque(maxlen=MAX_SAMPLES)
            rejections, self._rejections = self._rejections, Counter()
            redeliveries, self._redeliveries = self._redeliveries, Counter()
            secrets, self._secrets = self._secrets, Counter()
            counts, self._counts = self._counts, Counter()
        if samples or rejections:
            add_rejections(connection, samples, rejections, self._keyring)
        if redeliveries:
            add_redeliveries(connection, redeliveries)
        if secrets:
            add_secret_uses(connection, secrets)
        if counts:
            counters.add(connection, counts)
        if self._on_flush is not None:
            self._on_flush(connection)


def _first(headers: Mapping[str, str]) -> dict[str, str]:
    """Return as many whole headers as fit into `MAX_HEADER_LENGTH`, in the order they were sent."""
    kept, left = {}, MAX_HEADER_LENGTH
    for name, value in headers.items():
        left -= len(name) + len(value)
        if left >= 0:
            kept[name] = value
    return kept
