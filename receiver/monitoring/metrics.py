"""The page `/metrics`: read from PostgreSQL and Redis at scrape time, so every process gives the same answer.

No counters in memory: they would be per process here and lost in workers. Counters of events are the sums that
the sweep keeps (`receiver.ledger.stats.activity`), and what has happened since. Event types are labels of one
metric only, and no more of them than `counters.MAX_TYPES` of a source.
`hookonce_window_breaker_open` alone is this process's own.
"""

from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version

import psycopg
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database import connections, schema_version
from hookonce.receiver.logs import limited
from hookonce.receiver.monitoring import ledger_metrics
from hookonce.receiver.redis import approximate, workers
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue

log = limited(__name__)


def page(settings: Settings, breaker: CircuitBreaker) -> tuple[bytes, str]:
    """Return `/metrics` (Prometheus text format), and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(settings, breaker))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Figures(Collector):
    def __init__(self, settings: Settings, breaker: CircuitBreaker) -> None:
        self._settings = settings
        self._breaker = breaker

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("hookonce_up", "Whether a server answers", labels=["server"])
        answers = False
        try:
            with connections.connect(self._settings.database_url) as connection:
                answers = True
                slots = {name: len(each.secrets) for name, each in self._settings.sources.items()}
                yield from ledger_metrics.collect(connection, slots)
        except (psycopg.Error, connections.LedgerUnavailable) as error:
            log.warning("some figures are missing: %s", type(error).__name__)
        up.add_metric(["postgresql"], float(answers))
        pending = GaugeMetricFamily("hookonce_notifications_pending", "Jobs in the RQ queue", labels=[])
        alive = GaugeMetricFamily("hookonce_workers", "Workers that listen for notifications", labels=[])
        try:
            with connect(self._settings.redis_url) as client:
                pending.add_metric([], WorkQueue(client).pending())
                alive.add_metric([], workers.alive(client))
            up.add_metric(["redis"], 1)
        except RedisUnavailable:
            up.add_metric(["redis"], 0)
        yield from (pending, alive, up)
        yield from self._approximate()
        yield GaugeMetricFamily(
            "hookonce_window_breaker_open",
            "Whether this process leaves Redis alone because it failed",
            value=float(self._breaker.is_open),
        )
        build = GaugeMetricFamily("hookonce_build_info", "What runs here", labels=["version", "schema"])
        build.add_metric([version("hookonce"), schema_version.REVISION], 1)
        yield build

    def _approximate(self) -> Iterator[Metric]:
        share = GaugeMetricFamily(
            "hookonce_approximate_fill", "Share of `most` that is held", labels=["name"]
        )
        wrong = CounterMetricFamily(
            "hookonce_approximate_mistaken", "New ids taken for known, as estimated", labels=["name"]
        )
        away = CounterMetricFamily(
            "hookonce_approximate_unanswered", "Ids taken for new since Redis was away", labels=["name"]
        )
        with suppress(RedisUnavailable), connect(self._settings.window_url) as client:
            for each in approximate.figures(client):
                share.add_metric([each.name], each.ids / each.most)
                wrong.add_metric([each.name], each.wrong)
                away.add_metric([each.name], each.unanswered)
        yield from (share, wrong, away)
