"""*Sources*: the URL to paste, where to paste it, whether anything comes, and which secrets are in use."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from flask import render_template, request

from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.dashboard.charts import SPANS, Chart, Table, chart
from hookonce.receiver.intake import test_events
from hookonce.receiver.ledger import handshake_secrets, pauses
from hookonce.receiver.ledger.stats import activity, source_activity, totals
from hookonce.receiver.source import Source

_DAY = SPANS["24h"]


@dataclass(frozen=True, slots=True)
class Row:
    """One source as it is shown; `slots` are (number, uses, last use) of its secrets."""

    source: Source
    url: str
    last: datetime | None
    accepted: int
    rejected: int
    rejected_ever: int
    chart: Chart
    slots: list[tuple[int, int, datetime | None]]
    is_handed: bool
    is_paused: bool
    test_types: Sequence[str]


@admin.get("/sources")
def sources() -> str:
    """Show every configured source."""
    now = datetime.now(UTC)
    with context().ledger() as connection:
        rows = _rows(connection, now)
    return render_template("admin/sources.html", rows=rows, now=now)


def _rows(connection: psycopg.Connection, now: datetime) -> list[Row]:
    begins = _DAY.begins(now)
    table = Table(activity.rates(connection, begins[0], _DAY.bucket), begins)
    last = source_activity.last_seen(connection)
    refused: dict[str, int] = defaultdict(int)
    for name, _, count in totals.rejections(connection):
        refused[name] += count
    used = totals.secrets(connection)
    paused = pauses.paused(connection)
    given = {one.source for one in handshake_secrets.all_kept(connection)}
    return [
        Row(
            source=source,
            url=_url(source),
            last=last.get(name),
            accepted=sum(table.counts("accepted", name)),
            rejected=sum(table.counts("rejected", name)),
            rejected_ever=refused[name],
            chart=chart("accepted", table.counts("accepted", name), begins, now),
            slots=_slots(source, used.get(name, {})),
            is_handed=name in given,
            is_paused=("source", name) in paused,
            test_types=test_events.types(source) if source.tests else (),
        )
        for name, source in sorted(context().settings.sources.items())
    ]


def _slots(source: Source, used: dict[int, tuple[int, datetime]]) -> list[tuple[int, int, datetime | None]]:
    """Return each secret's place with how often it verified a delivery, and places that once had one."""
    slots = sorted({*range(1, len(source.secrets) + 1), *used})
    return [(slot, *used.get(slot, (0, None))) for slot in slots]


def _url(source: Source) -> str:
    """Return what is to be pasted at the sender's; a secret that belongs into it is not shown."""
    base = source.public_url or request.host_url.rstrip("/")
    needs_secret = source.provider.unauthenticated and not source.unauthenticated
    return f"{base}/hooks/{source.name}" + ("/<secret>" if needs_secret else "")
