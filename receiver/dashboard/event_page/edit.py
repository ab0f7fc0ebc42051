"""*Edit and send again*: an event's body in an editor, sent as a test event, signed as its sender would."""

from datetime import UTC, datetime

from flask import Response, abort, make_response, render_template, request

from hookonce.receiver.dashboard.blueprint import admin, ask, context, to_page
from hookonce.receiver.dashboard.event_form import read_event_form
from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.deliveries import ShownEvent
from hookonce.receiver.desk.events import EventPath
from hookonce.receiver.desk.refusals import Conflict
from hookonce.receiver.desk.sources import EditedEvent, send_edited_event
from hookonce.receiver.intake.test_events import MAX_EDITED, Edit, NotPossible, edited

_CONFLICT = 409


@admin.get("/events/<int:number>/edit")
def edit(number: int) -> str:
    """Show the editor, or why nothing can be sent."""
    return _page(number)


@admin.post("/events/<int:number>/edit")
def send_edited(number: int) -> Response:
    """Send what was made of the body; then the new event is shown. A refusal keeps what was typed."""
    typed, runs = request.form.get("body", "").replace("\r\n", "\n"), "run" in request.form
    if len(typed) > MAX_EDITED:
        return make_response(_page(number, typed, f"over {MAX_EDITED} characters", runs=runs), 413)
    asked = EditedEvent(body=typed, run=runs)
    try:
        sent = ask(send_edited_event, which=EventPath(event=str(number)), asked=asked)
    except Conflict as error:
        return make_response(_page(number, typed, str(error), runs=runs), _CONFLICT)
    return to_page("event", number=sent.id)


def _page(number: int, typed: str | None = None, refusal: str = "", *, runs: bool = False) -> str:
    with context().desk() as here:
        found = deliveries.event(here, number)
    if found is None:
        abort(404, f"No event has the ledger id {number}; retention may have dropped it.")
    text, why_not = _text(found)
    return render_template(
        "admin/edit.html",
        event=found.event,
        text=text if typed is None else typed,
        why_not=why_not,
        refusal=refusal,
        runs=runs,
        most=MAX_EDITED,
        view=read_event_form(request.args).typed,
    )


def _text(found: ShownEvent) -> tuple[str, str]:
    """Return a body as it can be edited, and why it can't be sent, empty where it can."""
    event = found.event
    source = context().settings.sources.get(event.source)
    if found.body is None:
        return "", f"the body {found.why_no_body}"
    if source is None:
        return (
            "",
            f"source '{event.source}' is not configured any more, so nothing can be signed for it",
        )
    try:
        body = found.body.body
        edited(Edit(source, event.id, event.event_id, event.type, found.body, body), datetime.now(UTC))
        text = body.decode()
    except NotPossible as error:
        return "", str(error)
    except UnicodeDecodeError:
        return "", "the body is not text"
    return ("", "the body holds NUL, which an editor loses") if "\0" in text else (text, "")
