"""*Dead*: what needs a person, grouped by handler and error, so that one cause is one line."""

from datetime import UTC, datetime

from flask import render_template

from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.ledger.queries.dead_groups import grouped
from hookonce.receiver.ledger.queries.dead_letters import MAX_DEATHS, deaths
from hookonce.receiver.ledger.replay import bulk
from hookonce.receiver.ledger.stats import backlog

_MAX_BULK_REPLAYS = 5


@admin.get("/dead")
def dead() -> str:
    """Show the groups, and the latest bulk replays."""
    with context().ledger() as connection:
        found = deaths(connection)
        waiting = backlog.waiting(connection)
        bulks = bulk.listing(connection, _MAX_BULK_REPLAYS)
    return render_template(
        "admin/dead.html",
        groups=grouped(found),
        seen=len({death.event for death in found}),
        is_part=waiting.dead > MAX_DEATHS,
        waiting=waiting,
        most=backlog.MAX_COUNTED,
        bulks=bulks,
        now=datetime.now(UTC),
    )
