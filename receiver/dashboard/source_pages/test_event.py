"""*Send test event*: a sample of a source's sender, taken in as a delivery; then the event is shown."""

from flask import Response, make_response, redirect, request, url_for

from hookonce.receiver.dashboard.blueprint import admin, ask
from hookonce.receiver.desk import sources
from hookonce.receiver.desk.forms import read


@admin.post("/test-event")
def send_test_event() -> Response:
    """Send a source a test event of the type that was chosen."""
    typed = {name: request.form.get(name) or None for name in ("source", "type")}
    sent = ask(sources.send_test_event, **read(sources.send_test_event, typed))
    return make_response(redirect(url_for("admin.event", number=sent.id), 303))
