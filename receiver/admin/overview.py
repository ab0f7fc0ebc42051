"""*Overview*: what came and what became of it, what waits, who is at work."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import render_template, request

from receiver.admin.charts import SPANS, Chart, Span, Table, chart
from receiver.admin.servers import servers
from receiver.admin.shell import admin, desk, is_fragment
from receiver.ledger import activity, alerts, audit, desk_counts, desk_pause

KINDS = ("accepted", "done", "dead", "rejected")
_CHANGES = 8
_LATE = timedelta(minutes=1)
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
    with desk().ledger() as connection:
        table = Table(activity.rates(connection, begins[0], span.bucket), begins)
        waiting = desk_counts.waiting(connection)
        changes = audit.latest(connection, _CHANGES)
        paused = desk_pause.paused(connection)
        raised = alerts.open_alerts(connection)
    return {
        "now": now,
        "span": span,
        "spans": list(SPANS),
        "begins": begins,
        "source": source,
        "charts": [chart(kind, table.counts(kind, source), begins, now) for kind in KINDS],
        "rows": _by_source(table, begins, now),
        "waiting": waiting,
        "most": desk_counts.MOST,
        "is_late": waiting.oldest_due > _LATE.total_seconds(),
        "servers": servers(desk()),
        "paused": paused,
        "alerts": raised,
        "changes": changes,
    }


def _by_source(table: Table, begins: Sequence[datetime], now: datetime) -> list[Row]:
    return [
        Row(
            name,
            {kind: sum(table.counts(kind, name)) for kind in KINDS},
            chart("accepted", table.counts("accepted", name), begins, now),
        )
        for name in sorted(table.sources | set(desk().settings.sources))
    ]
