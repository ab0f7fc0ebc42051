"""*Source*: one source in full: where to send to, what verifies it, what came, what was refused, what can be tried."""

from datetime import UTC, datetime

from flask import abort, render_template

from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.dashboard.source_pages.source_health import lacks_secret, read_signs
from hookonce.receiver.dashboard.source_pages.sources import rows, secrets_of
from hookonce.receiver.desk import content
from hookonce.receiver.intake import test_events
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.stats import totals

_MAX_REJECTED = 5


@admin.get("/sources/<name>")
def source(name: str) -> str:
    """Show a configured source."""
    chosen = context().settings.sources.get(name)
    if chosen is None:
        abort(404, "No source of this name is configured; its events, if there are any, are on their page.")
    now = datetime.now(UTC)
    with context().desk() as here:
        connection = here.connection
        signs = read_signs(connection)
        (row,) = rows(connection, {name: chosen}, signs, now)
        secrets = secrets_of(chosen, totals.secrets(connection).get(name, {}))
        paused = pauses.of_source(connection, name)
        counts = {
            status: count for each, status, count in totals.events_by_status(connection) if each == name
        }
        refused = content.rejected_deliveries(here, source=name, limit=_MAX_REJECTED)
    return render_template(
        "admin/source.html",
        row=row,
        source=chosen,
        secrets=secrets,
        lacks_secret=lacks_secret(chosen, signs.handed),
        is_handed=name in signs.handed,
        counts=counts,
        paused=paused,
        refused=refused,
        test_types=test_events.types(chosen) if chosen.tests else (),
        now=now,
    )
