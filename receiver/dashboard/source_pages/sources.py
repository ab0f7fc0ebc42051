"""*Sources*: each with a mark of its health, what to do about it, its URL and whether anything comes."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
from flask import render_template, request

from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.dashboard.charts import Chart, Span, Table, chart
from hookonce.receiver.dashboard.source_pages.source_health import Health, Mark, Signs, health, read_signs
from hookonce.receiver.ledger.stats import activity, totals
from hookonce.receiver.source import Source

DAY = Span("24h", timedelta(hours=1), 24)


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


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret by its reference: how many deliveries it verified, and when last."""

    name: str
    uses: int
    last: datetime | None


@admin.get("/sources")
def sources() -> str:
    """Show every configured source, those in trouble first."""
    now = datetime.now(UTC)
    with context().ledger() as connection:
        found = rows(connection, context().settings.sources, read_signs(connection), now)
    order = list(Mark)
    return render_template(
        "admin/sources.html",
        rows=sorted(found, key=lambda row: (order.index(row.health.mark), row.source.name)),
        now=now,
    )


def rows(
    connection: psycopg.Connection, wanted: Mapping[str, Source], signs: Signs, now: datetime
) -> list[Row]:
    """Return what is shown of sources."""
    begins = DAY.begins(now)
    table = Table(activity.rates(connection, begins[0], DAY.bucket), begins)
    refused: dict[str, int] = defaultdict(int)
    for name, _, count in totals.rejections(connection):
        refused[name] += count
    return [
        Row(
            source=source,
            url=url_of(source),
            health=health(source, signs, now),
            last=signs.last.get(name),
            oldest_due=signs.oldest_due.get(name),
            accepted=sum(table.counts("accepted", name)),
            rejected=sum(table.counts("rejected", name)),
            rejected_ever=refused[name],
            chart=chart("accepted", table.counts("accepted", name), begins, now),
        )
        for name, source in sorted(wanted.items())
    ]


def secrets_of(source: Source, used: dict[int, tuple[int, datetime]]) -> list[Secret]:
    """Return each secret with how often it verified a delivery, and those that once did and are gone."""
    slots = sorted({*range(1, len(source.secrets) + 1), *used})
    return [Secret(source.secret_name(slot), *used.get(slot, (0, None))) for slot in slots]


def url_of(source: Source) -> str:
    """Return what is to be pasted at the sender's; a secret that belongs in it is not shown."""
    base = "" if source.url or source.public_url else request.host_url.rstrip("/")
    needs_secret = source.provider.unauthenticated and not source.unauthenticated and not source.url
    return base + source.shown_url + ("/<secret>" if needs_secret else "")
