"""*Source*: one source in full: where to send to, what verifies it, what came, what was refused, what can be tried."""

from datetime import UTC, datetime

from flask import Response, abort, render_template, request

from hookonce.receiver.dashboard.blueprint import admin, ask, context, to_page
from hookonce.receiver.dashboard.source_pages.source_health import lacks_secret
from hookonce.receiver.dashboard.source_pages.sources import rows
from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.pauses import PAUSES, SOURCE, list_pauses
from hookonce.receiver.desk.sources import SourcePath, get_source, send_test_event, signs
from hookonce.receiver.desk.stats import status_counts
from hookonce.receiver.intake import test_events

_MAX_REJECTED = 5


@admin.get("/sources/<name>")
def source(name: str) -> str:
    """Show a configured source."""
    chosen = context().settings.sources.get(name)
    if chosen is None:
        abort(404, "No source of this name is configured; its events, if there are any, are on their page.")
    now = datetime.now(UTC)
    with context().desk() as here:
        known = signs(here)
        (row,) = rows(here, {name: chosen}, known, now)
        shown = get_source(here, which=SourcePath(source=name))
        paused = [each for each in list_pauses(here).data if each.kind != SOURCE.kind]
        counts = {each.status: each.count for each in status_counts(here) if each.source == name}
        refused = deliveries.rejected_deliveries(here, source=name, limit=_MAX_REJECTED)
    return render_template(
        "admin/source.html",
        row=row,
        source=chosen,
        secrets=[(chosen.secret_name(each.slot), each) for each in shown.secrets],
        lacks_secret=lacks_secret(chosen, known.handed),
        is_handed=shown.has_handed_out_secret,
        counts=counts,
        paused=[each for each in paused if PAUSES[each.kind].source_of(each.name) == name],
        refused=refused,
        shown=shown,
        test_types=test_events.types(chosen) if chosen.tests else (),
        now=now,
    )


@admin.post("/test-event", endpoint="send_test_event")
def send_sample() -> Response:
    """Send a source a test event of the type that was chosen, then show it."""
    typed = {name: request.form.get(name) or None for name in ("source", "type")}
    sent = ask(send_test_event, **read(send_test_event, typed))
    return to_page("event", number=sent.id)
