"""*Send again to…*: a stored delivery, signed anew, to an address that `[admin] send_to` allows; the ledger stays."""

from datetime import UTC, datetime, timedelta

from flask import Response, abort, request

from hookonce.providers import Delivery
from hookonce.receiver.dashboard.blueprint import admin, context, to_page
from hookonce.receiver.desk import deliveries
from hookonce.receiver.outbound.forwarding import NotSent, allowed, forward
from hookonce.receiver.outbound.signing import EventName

_MAX_URL_LENGTH = 2000


@admin.post("/events/<int:number>/send-again")
def send_again(number: int) -> Response:
    """Send it, note who did, and say what came back."""
    settings = context().settings
    url = request.form.get("url", "").strip()[:_MAX_URL_LENGTH]
    if not allowed(url, settings.admin.send_to):
        abort(
            400,
            "Events may be sent to the addresses in [admin] send_to of hookonce.toml, and what is below them.",
        )
    with context().desk() as here:
        found = deliveries.event(here, number)
        if found is None or found.body is None or found.body.unreadable:
            abort(404, "This event or its body is not there, or can't be opened.")
        source = settings.sources.get(found.event.source)
        if source is None:
            abort(409, "Its source is not configured any more, so nothing can be signed for it.")
        here.note("send again", f"event {number}", {"to": url.partition("?")[0]})
    delivery = Delivery(source.provider.methods[0], url, found.body.headers, found.body.body)
    try:
        name = EventName(found.event.event_id, found.event.type)
        answer = forward(source, delivery, name, datetime.now(UTC), is_element=found.body.is_element)
    except NotSent as error:
        abort(502, f"Not sent: {error}.")
    took = answer.took // timedelta(milliseconds=1)
    return to_page("event", number=number, sent=answer.status, took=took, _anchor="send-again")
