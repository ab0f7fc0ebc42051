"""What `/metrics` says: read from PostgreSQL and Redis at scrape time, so every process gives the same answer.

No counters in memory: they would be per process here and lost in workers. Counters of events are the sums that
the sweep keeps (`receiver.ledger.activity`), a minute or two behind. Event types never become labels.
`hookonce_window_breaker_open` alone is this process's own.
"""

import logging
from collections.abc import Iterator
from importlib.metadata import version

import psycopg
import redis
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from receiver import database, metrics_ledger, revision, workers
from receiver.handoff import Bell
from receiver.intake import Intake
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
                yield from metrics_ledger.figures_of(connection, self._settings.sources)
        except (psycopg.Error, database.LedgerUnavailable) as error:
            log.warning("some figures are missing: %s", type(error).__name__)
        up.add_metric(["postgresql"], float(answers))
        try:
            with connect(self._settings.redis_url) as client:
                waiting, alive = Bell(client).waiting(), workers.alive(client)
            yield GaugeMetricFamily("hookonce_rings_waiting", "Jobs in the RQ queue", value=waiting)
            yield GaugeMetricFamily("hookonce_workers", "Workers that listen for the bell", value=alive)
            up.add_metric(["redis"], 1)
        except (redis.RedisError, OSError):
            up.add_metric(["redis"], 0)
        yield up
        yield GaugeMetricFamily(
            "hookonce_window_breaker_open",
            "Whether this process leaves Redis alone because it failed",
            value=float(self._intake.breaker.is_open),
        )
        build = GaugeMetricFamily("hookonce_build_info", "What runs here", labels=["version", "schema"])
        build.add_metric([version("hookonce"), revision.REVISION], 1)
        yield build
