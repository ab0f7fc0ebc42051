"""The objects that all attempts of one process share, whichever thread makes them."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hookonce.jobs.attempts.endings import Sealing
from hookonce.jobs.attempts.failure_streaks import FailureStreaks
from hookonce.jobs.attempts.heartbeat import Heartbeat
from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.jobs.attempts.ports import Listener
from hookonce.jobs.attempts.train import Train
from hookonce.jobs.handlers import Registry
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.idempotency.postgresql import Connections
from hookonce.receiver.ledger.states import RunStatus


class Tally:
    """How many runs have ended in one process, by how; for all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[RunStatus] = Counter()

    def add(self, status: RunStatus, runs: int = 1) -> None:
        """Count runs that have ended alike."""
        with self._lock:
            self.counts[status] += runs


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts of one process.

    `provider_of` gives what reads a source's bodies, also by the provider's name. `steps` lends the connections that
    steps are written on; without it there are none. Without `train` each commit waits for its own flush.
    """

    provider_of: Callable[[str, str], Provider | None]
    claims: OwnClaims
    heartbeat: Heartbeat
    handlers: Registry
    train: Train | None
    steps: Connections | None
    sealing: Sealing
    listener: Listener | None
    failure_streaks: FailureStreaks = field(default_factory=FailureStreaks)
    tally: Tally = field(default_factory=Tally)
    warned: set[str] = field(default_factory=set)
    """Handlers of which it was said already that their lists have another length than their batches."""


def listener_of(settings: Settings) -> Listener | None:
    """Return who hears of attempts; to trace them needs the extra `otel`."""
    if not settings.tracing:
        return None
    from hookonce.jobs.attempts.traces import Traces, hear_calls  # noqa: PLC0415  it imports OpenTelemetry

    hear_calls()
    return Traces()
