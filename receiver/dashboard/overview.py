"""*Overview*: what came and what became of it, what waits, who is at work."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import render_template, request

from hookonce.receiver.dashboard.alert_links import alert_link
from hookonce.receiver.dashboard.blueprint import admin, context, is_fragment
from hookonce.receiver.dashboard.charts import SPANS, Chart, Span, Table, chart
from hookonce.receiver.dashboard.redis_status import servers
from hookonce.receiver.dashboard.source_pages.sources import url_of
from hookonce.receiver.dashboard.stacked_chart import stacked
from hookonce.receiver.ledger import alerts, pauses
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.runs import breakers
from hookonce.receiver.ledger.states import ENDED, OPEN, EventStatus
from hookonce.receiver.ledger.stats import activity, backlog, totals, worker_slots

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
    with context().ledger() as connection:
        table = Table(activity.rates(connection, begins[0], span.bucket), begins)
        counts = totals.events_by_status(connection)
        waiting = backlog.waiting(connection, counts)
        changes = audit_log.latest(connection, _MAX_CHANGES)
        paused = pauses.paused(connection)
        stopped = [each for each in breakers.breakers(connection) if each.is_open]
        raised = alerts.open_alerts(connection)
        slots = worker_slots.workers(connection)
        kept = _kept(counts, source)
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
        "waiting": waiting,
        "most": backlog.MAX_COUNTED,
        "is_late": waiting.oldest_due > _LATE_AFTER.total_seconds(),
        "servers": servers(context()),
        "paused": [each for each in paused if each.by == "person"],
        "stopped": stopped,
        "waiting_for_breakers": sum(each.waiting for each in stopped),
        "slots": slots,
        "alerts": [(each, *alert_link(each)) for each in raised],
        "changes": changes,
    }


def _kept(counts: Iterable[tuple[str, str, int]], only: str | None) -> dict[str, Counter[str]]:
    """Return by source how many events are in each status now; each is in one of them, so a row adds up."""
    kept: dict[str, Counter[str]] = defaultdict(Counter)
    for source, status, number in counts:
        if only in {None, source}:
            kept[source][status] = number
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
