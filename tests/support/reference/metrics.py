"""docs/reference/metrics.md: what a real `/metrics` has, on a database with the schema and nothing else."""

from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.monitoring import metrics
from tests.support.reference.layout import code, head, table

INTRODUCTION = """\
`GET /metrics`, in Prometheus' text format. The figures are read from PostgreSQL and Redis at scrape time, so every
process gives the same answer: scrape one of them, behind whatever address they share.
"""


def page(database_url, redis_url):
    rows = sorted(_row(family) for family in families(database_url, redis_url))
    return head("Metrics", "a real answer of `/metrics`", INTRODUCTION) + table(
        ("metric", "type", "labels", "means"), rows
    )


def families(database_url, redis_url):
    """Take what the collector yields on its way to the page."""
    seen, write = [], metrics.generate_latest

    def watched(registry):
        seen.extend(registry.collect())
        return write(registry)

    metrics.generate_latest = watched
    try:
        application = create_app(Settings(database_url, redis_url, {}, desk="door"))
        assert application.test_client().get("/metrics").status_code == 200
    finally:
        metrics.generate_latest = write
    return seen


def _row(family):
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(code(each) for each in getattr(family, "_labelnames", ()))
    return code(name), family.type, labels, family.documentation
