"""*What differs*: an event's body beside that of the last event of its kind that was done, asked for by itself."""

from datetime import UTC, datetime

from flask import abort, render_template, request

from hookonce.receiver.dashboard.blueprint import actor, admin, context, is_fragment
from hookonce.receiver.dashboard.event_form import read_event_form
from hookonce.receiver.desk import diffs
from hookonce.receiver.desk.body_diff import MAX_CHANGES
from hookonce.receiver.desk.events import EventPath
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Desk


@admin.get("/events/<int:number>/diff")
def diff(number: int) -> str:
    """Show which paths differ, as a page of its own or as a part of the event's."""
    with context().ledger() as connection:
        desk = Desk(context().settings, connection, actor())
        try:
            found = diffs.diff_event(desk, which=EventPath(event=str(number)))
        except NotFound as error:
            abort(404, str(error))
    return render_template(
        "admin/diff_part.html" if is_fragment() else "admin/diff.html",
        diff=found,
        view=read_event_form(request.args, datetime.now(UTC)).typed,
        most=MAX_CHANGES,
    )
