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
from hookonce.receiver.desk.access.history import AuditQuery, list_audit
from hookonce.receiver.desk.rows import StatusCount
from hookonce.receiver.desk.stats import get_stats, traffic
from hookonce.receiver.ledger.states import ENDED, OPEN, EventStatus
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue
from hookonce.receiver.redis.workers import alive

RECEIVED = {"accepted": "new", "duplicate": "repeated", "rejected": "rejected"}
ENDS = (EventStatus.DONE, EventStatus.IGNORED, EventStatus.DEAD)
LAYERS = (*ENDS, "rejected")
"""The layers of the chart, from below; what needs a person is on top."""
STATUSES = (*ENDED, *OPEN, EventStatus.HELD)
_MAX_CHANGES = 8
_LATE_AFTER = timedelta(minutes=1)
"""From when on something that is due looks forgotten."""


@dataclass(frozen=True, slots=True)
class Row:
    """One source, or all: how much of each kind, and a small chart of what is new."""

    source: str
    totals: dict[str, int]
    chart: Chart

    @property
    def received(self) -> int:
        """How much was received: the sum of its three columns."""
        return sum(self.totals[kind] for kind in RECEIVED)

    @property
    def ended(self) -> int:
        """How many events ended: the sum of their three columns."""
        return sum(self.totals[kind] for kind in ENDS)


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
        "chart": chart(
            {kind: table.counts(kind, source) for kind in ("accepted", *LAYERS)}, begins, line="accepted"
        ),
        "all": _row(table, begins, source),
        "columns": (RECEIVED, {each: each for each in ENDS}),
        "rows": [
            _row(table, begins, name) for name in sorted(table.sources | set(context().settings.sources))
        ],
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


def _row(table: Table, begins: Sequence[datetime], source: str | None) -> Row:
    totals = {kind: sum(table.counts(kind, source)) for kind in (*RECEIVED, *ENDS)}
    return Row(source or "", totals, chart({"accepted": table.counts("accepted", source)}, begins))
