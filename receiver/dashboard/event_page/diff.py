"""*What differs*: an event's body beside that of the last event of its kind that was done, asked for by itself."""

from flask import render_template, request

from hookonce.receiver.dashboard.blueprint import admin, ask, is_fragment
from hookonce.receiver.dashboard.event_form import read_event_form
from hookonce.receiver.desk.diffs import MAX_CHANGES, diff_event
from hookonce.receiver.desk.events import EventPath


@admin.get("/events/<int:number>/diff")
def diff(number: int) -> str:
    """Show which paths differ, as a page of its own or as a part of the event's."""
    found = ask(diff_event, which=EventPath(event=str(number)))
    return render_template(
        "admin/diff_part.html" if is_fragment() else "admin/diff.html",
        diff=found,
        view=read_event_form(request.args).typed,
        most=MAX_CHANGES,
    )
