"""*Sources*: each with a mark of its health, what to do about it, its URL and whether anything comes."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from flask import render_template, request

from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.dashboard.charts import DAY, Chart, Table, chart
from hookonce.receiver.dashboard.source_pages.source_health import Health, Mark, health
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.sources import Signs, signs
from hookonce.receiver.desk.stats import rejection_counts, traffic
from hookonce.receiver.source import Source


@dataclass(frozen=True, slots=True)
class Row:
    """One source as it is shown: counts are of 24 hours, but `rejected_ever`."""

    source: Source
    url: str
    health: Health
    last: datetime | None
    oldest_due: float | None
    accepted: int
    rejected: int
    rejected_ever: int
    chart: Chart

    @property
    def is_paused(self) -> bool:
        """Whether a person, or a circuit breaker, has paused it."""
        return self.health.mark is Mark.PAUSED


@admin.get("/sources")
def sources() -> str:
    """Show every configured source, those in trouble first."""
    now = datetime.now(UTC)
    with context().desk() as here:
        found = rows(here, context().settings.sources, signs(here), now)
    order = list(Mark)
    return render_template(
        "admin/sources.html",
        rows=sorted(found, key=lambda row: (order.index(row.health.mark), row.source.name)),
        now=now,
    )


def rows(here: Desk, wanted: Mapping[str, Source], known: Signs, now: datetime) -> list[Row]:
    """Return what is shown of sources."""
    begins = DAY.begins(now)
    table = Table(traffic(here, begins[0], DAY.bucket), begins)
    refused: dict[str, int] = defaultdict(int)
    for each in rejection_counts(here):
        refused[each.source] += each.count
    return [
        Row(
            source=source,
            url=url_of(source),
            health=health(source, known, now),
            last=known.last.get(name),
            oldest_due=known.oldest_due.get(name),
            accepted=sum(table.counts("accepted", name)),
            rejected=sum(table.counts("rejected", name)),
            rejected_ever=refused[name],
            chart=chart({"accepted": table.counts("accepted", name)}, begins),
        )
        for name, source in sorted(wanted.items())
    ]


def url_of(source: Source) -> str:
    """Return what is to be pasted at the sender's; a secret that belongs in it is not shown."""
    base = "" if source.url or source.public_url else request.host_url.rstrip("/")
    needs_secret = source.provider.unauthenticated and not source.unauthenticated and not source.url
    return base + source.shown_url + ("/<secret>" if needs_secret else "")
