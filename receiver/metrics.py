"""What `/metrics` says: read from PostgreSQL and Redis at scrape time, so every process gives the same answer.

No counters in memory: they would be per process here and lost in workers. Event types never become labels.
"""

import logging
from collections.abc import Iterator

import psycopg
import redis
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from receiver import database
from receiver.handoff import Bell
from receiver.intake import Intake
from receiver.ledger import figures
from receiver.settings import Settings
from receiver.window import connect

log = logging.getLogger(__name__)


def page(settings: Settings, intake: Intake) -> tuple[bytes, int, dict[str, str]]:
    """Give body, status and headers of `/metrics` (Prometheus text format)."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(settings, intake))
    return generate_latest(registry), 200, {"Content-Type": CONTENT_TYPE_LATEST}


class _Figures(Collector):
    def __init__(self, settings: Settings, intake: Intake) -> None:
        self._settings = settings
        self._intake = intake

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("hookonce_up", "Whether a server answers", labels=["server"])
        answers = False
        try:
            with database.connect(self._settings.database_url) as connection:
                answers = True
                yield from _ledger(connection)
        except (psycopg.Error, database.LedgerUnavailable) as error:
            log.warning("some figures are missing: %s", type(error).__name__)
        up.add_metric(["postgresql"], float(answers))
        try:
            with connect(self._settings.redis_url) as client:
                waiting = Bell(client).waiting()
            yield GaugeMetricFamily("hookonce_rings_waiting", "Jobs in the RQ queue", value=waiting)
            up.add_metric(["redis"], 1)
        except (redis.RedisError, OSError):
            up.add_metric(["redis"], 0)
        yield up
        yield GaugeMetricFamily(
            "hookonce_window_breaker_open",
            "Whether this process leaves Redis alone because it failed",
            value=float(self._intake.breaker.is_open),
        )


def _ledger(connection: psycopg.Connection) -> Iterator[Metric]:
    """Give what costs least first: counting the events of a large ledger may take longer than a statement may."""
    yield GaugeMetricFamily(
        "hookonce_oldest_due_seconds", "Age of the oldest due event", value=figures.oldest_due(connection)
    )
    rejections = CounterMetricFamily("hookonce_rejections", "Deliveries refused", labels=["source", "reason"])
    for source, reason, count in figures.rejections(connection):
        rejections.add_metric([source, reason], count)
    yield rejections
    secrets = CounterMetricFamily(
        "hookonce_secret_used", "Deliveries by the secret that verified them", labels=["source", "slot"]
    )
    for source, slot, count, _ in figures.secrets(connection):
        secrets.add_metric([source, str(slot)], count)
    yield secrets
    yield GaugeMetricFamily(
        "hookonce_conflicts", "Events that came with two bodies", value=figures.conflicts(connection)
    )
    events = GaugeMetricFamily("hookonce_events", "Events in the ledger", labels=["source", "status"])
    for source, status, count in figures.events_by_status(connection):
        events.add_metric([source, status], count)
    yield events
