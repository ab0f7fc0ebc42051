"""*Overview*: what came and what became of it, what waits, who is at work."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import render_template, request

from hookonce.receiver.dashboard.alert_links import shown
from hookonce.receiver.dashboard.blueprint import DashboardContext, admin, context, is_fragment
from hookonce.receiver.dashboard.charts import SPANS, Chart, Span, Table, chart
from hookonce.receiver.dashboard.source_pages.sources import url_of
from hookonce.receiver.dashboard.stacked_chart import stacked
from hookonce.receiver.desk.access.history import AuditQuery, list_audit
from hookonce.receiver.desk.rows import StatusCount
from hookonce.receiver.desk.stats import get_stats, traffic
from hookonce.receiver.ledger.states import ENDED, OPEN, EventStatus
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue
from hookonce.receiver.redis.workers import alive

KINDS = ("accepted", EventStatus.DONE, EventStatus.IGNORED, EventStatus.DEAD, "rejected")
STATUSES = (*ENDED, *OPEN, EventStatus.HELD)
_MAX_CHANGES = 8
_LATE_AFTER = timedelta(minutes=1)
"""From when on something that is due looks forgotten."""


@dataclass(frozen=True, slots=True)
class Row:
    """One source: how much of each kind, and a small chart of what it sent."""

    source: str
    totals: dict[str, int]
    chart: Chart


@dataclass(frozen=True, slots=True)
class Servers:
    """`workers` alive and `pending` notifications are None where Redis does not answer."""

    workers: int | None
    pending: int | None
    breaker_is_open: bool


@admin.get("/")
def overview() -> str:
    """Show the page, or its living part."""
    span = SPANS.get(request.args.get("span", ""), SPANS["1h"])
    source = request.args.get("source") or None
    part = "overview_live" if is_fragment() else "overview"
    return render_template(f"admin/{part}.html", **_figures(span, source))


def _figures(span: Span, source: str | None) -> dict[str, Any]:
    now = datetime.now(UTC)
    begins = span.begins(now)
    with context().desk() as here:
        table = Table(traffic(here, begins[0], span.bucket), begins)
        numbers = get_stats(here)
        changes = list_audit(here, asked=AuditQuery.model_validate({"limit": _MAX_CHANGES})).data
    stopped = [each for each in numbers.breakers if each.is_open]
    kept = _kept(numbers.events, source)
    return {
        "now": now,
        "span": span,
        "spans": list(SPANS),
        "begins": begins,
        "source": source,
        "chart": stacked(table, begins, span.bucket, source),
        "repeated": sum(table.counts("duplicate", source)),
        "kinds": KINDS,
        "rows": _by_source(table, begins, now),
        "kept": kept,
        "all_kept": sum(kept.values(), Counter()),
        "set_up": []
        if kept
        else [(each, url_of(each)) for _, each in sorted(context().settings.sources.items())],
        "statuses": [
            *STATUSES,
            *([EventStatus.LOST] if any(each[EventStatus.LOST] for each in kept.values()) else []),
        ],
        "numbers": numbers,
        "is_late": numbers.oldest_due_seconds > _LATE_AFTER.total_seconds(),
        "servers": servers(context()),
        "paused": [each for each in numbers.paused if each.by == "person"],
        "stopped": stopped,
        "waiting_for_breakers": sum(each.waiting for each in stopped),
        "slots": numbers.workers,
        "alerts": [shown(each) for each in numbers.alerts],
        "changes": changes,
    }


def servers(context: DashboardContext) -> Servers:
    """Return what Redis knows of the workers; it has a quarter of a second to answer."""
    is_open = context.intake.breaker.is_open
    try:
        with connect(context.settings.redis_url) as client:
            return Servers(alive(client), WorkQueue(client).pending(), is_open)
    except RedisUnavailable:
        return Servers(None, None, is_open)


def _kept(counts: Iterable[StatusCount], only: str | None) -> dict[str, Counter[str]]:
    """Return by source how many events are in each status now; each is in one of them, so a row adds up."""
    kept: dict[str, Counter[str]] = defaultdict(Counter)
    for each in counts:
        if only in {None, each.source}:
            kept[each.source][each.status] = each.count
    return kept


def _by_source(table: Table, begins: Sequence[datetime], now: datetime) -> list[Row]:
    return [
        Row(
            name,
            {kind: sum(table.counts(kind, name)) for kind in KINDS},
            chart("accepted", table.counts("accepted", name), begins, now),
        )
        for name in sorted(table.sources | set(context().settings.sources))
    ]
