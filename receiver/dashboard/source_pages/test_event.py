"""*Send test event*: a sample of a source's sender, taken in as a delivery; then the event is shown."""

from flask import Response, abort, make_response, redirect, request, url_for

from hookonce.receiver.dashboard.blueprint import actor, admin, context
from hookonce.receiver.intake import test_events


@admin.post("/test-event")
def send_test_event() -> Response:
    """Send a source a test event of the type that was chosen."""
    source = context().settings.sources.get(request.form.get("source", ""))
    if source is None:
        abort(400, "Say which source.")
    kind = request.form.get("type") or None
    try:
        with context().ledger() as connection:
            stored, _, _ = test_events.send(context().intake, connection, source, kind, actor())
    except LookupError as error:
        abort(400, str(error.args[0]))
    except test_events.NotPossible as error:
        abort(409, str(error))
    return make_response(redirect(url_for("admin.event", number=stored.id), 303))
