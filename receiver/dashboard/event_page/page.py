"""*Event*: one event in full: what was delivered, what became of it, and what can be done about it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response, abort, make_response, render_template, request

from hookonce.receiver.dashboard.blueprint import admin, ask, context, file_of, is_fragment, to_page
from hookonce.receiver.dashboard.event_form import read_event_form
from hookonce.receiver.dashboard.event_page import body_view
from hookonce.receiver.dashboard.event_page.as_test import as_test
from hookonce.receiver.dashboard.event_page.run_panels import WHOLE_TRACEBACKS, anchor, panels
from hookonce.receiver.dashboard.event_page.waterfall import waterfall
from hookonce.receiver.desk import deliveries, replays
from hookonce.receiver.desk.dead_letters import DiscardRequest, discard_events
from hookonce.receiver.desk.deliveries import ShownEvent
from hookonce.receiver.desk.events import (
    EventPath,
    OtherBodyPath,
    get_event_body,
    get_other_body,
    is_number,
    why_not_run,
)
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.refusals import Conflict
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.replays import OUTCOMES, ReplayRequest, SeenEvent
from hookonce.receiver.desk.rows import GOOD, ReplayOutcome, StepStatus
from hookonce.receiver.desk.searches import neighbours
from hookonce.receiver.desk.steps import decide_step
from hookonce.receiver.intake.test_events import EDITED_FROM
from hookonce.receiver.ledger.states import OPEN

NEIGHBOUR_LOOK = timedelta(milliseconds=15)
"""How long the event before, and the one after, is looked for in the view that one comes from."""
_GONE = "No event has the ledger id {}; retention may have dropped it."
NOTICES: Mapping[str, tuple[str, str]] = {
    **{fate: ("good" if fate in GOOD else "bad", f"It {words}.") for fate, words in OUTCOMES.items()},
    ReplayOutcome.REPLAYED: ("good", "Replayed: its runs have new attempts."),
    ReplayOutcome.RELEASED: ("good", "Released: its handlers take it now."),
    "discarded": ("good", "Discarded: it is not run, unless you replay it."),
    "decided": ("good", "Saved. Replay the event, and its handler continues after the step."),
}


@admin.get("/events/<int:number>")
def event(number: int) -> str:
    """Show an event, by itself or beside a list, or its runs only."""
    form = read_event_form(request.args)
    in_pane = request.headers.get("HX-Target") == "pane"
    is_part = is_fragment() and not in_pane
    with context().desk() as here:
        found = _asked(here, number, is_part=is_part)
        around = {} if is_part else neighbours(here, form.wanted, number, NEIGHBOUR_LOOK)
        if found is None:
            abort(404, _GONE.format(number))
        reason = why_not_run(here, found)
    now = datetime.now(UTC)
    shown = panels(found)
    page = {
        "view": form.typed,
        "waterfall": waterfall(found, shown, now),
        "anchor": anchor,
        "WHOLE_TRACEBACKS": WHOLE_TRACEBACKS,
        "found": found,
        "why_not_run": reason,
        "event": found.event,
        "panels": shown,
        "steps": found.steps,
        "StepStatus": StepStatus,
        "is_open": found.event.status in OPEN,
        "is_part": is_part,
        "in_pane": in_pane,
    }
    if is_part:
        return render_template("admin/event_runs.html", **page)
    return render_template(
        "admin/event.html",
        **page,
        **around,
        **_delivered(found),
        sent=request.args.get("sent", type=int),
        took=request.args.get("took", 0, int),
        send_to=context().settings.admin.send_to,
        said=NOTICES.get(request.args.get("said", "")),
    )


@admin.post("/events/<int:number>/replay")
def replay(number: int) -> Response:
    """Run an event again, or release it; ask before what is done is run once more."""
    seen = [SeenEvent(event=number, view=request.form["seen"])] if "seen" in request.form else []
    asked = ReplayRequest(
        events=[str(number)],
        forget_steps=request.form.getlist("forget"),
        again="again" in request.form,
        seen=seen,
    )
    view = read_event_form(request.form).typed
    try:
        outcomes = ask(replays.replay, asked=asked).outcomes
    except Conflict as error:
        if error.code != "already_done":
            raise
        (outcome,) = ask(replays.replay, asked=asked.model_copy(update={"dry_run": True})).outcomes
        asking = {"outcome": outcome, "forget": asked.forget_steps, "view": view}
        return make_response(render_template("admin/again.html", **asking))
    return to_page("event", number=number, **view, said=outcomes[0].fate)


@admin.post("/events/<int:number>/discard")
def discard(number: int) -> Response:
    """Discard an event; one that is running, or has ended otherwise, is left as it is."""
    found = ask(discard_events, asked=DiscardRequest(events=[str(number)]))
    said = "discarded" if found.discarded else ReplayOutcome.CHANGED
    return to_page("event", number=number, **read_event_form(request.form).typed, said=said)


@admin.post("/events/<int:number>/steps")
def decide(number: int) -> Response:
    """Decide about a step that nobody knows of: say what it gave, or have it done anew."""
    typed = {name: request.form.get(name) for name in ("handler", "step", "decision")}
    if typed["decision"] == StepStatus.DONE:
        try:
            typed["result"] = json.loads(request.form.get("result") or "null")
        except (ValueError, RecursionError):
            abort(400, "The result is not JSON.")
    ask(decide_step, **read(decide_step, typed | {"event": str(number)}))
    return to_page("event", number=number, said="decided")


@admin.get("/events/<int:number>/body")
def download(number: int) -> Response:
    """Return the body, byte for byte, as a file."""
    return file_of(ask(get_event_body, which=EventPath(event=str(number))))


@admin.get("/events/<int:number>/conflicts/<int:conflict>")
def download_conflict(number: int, conflict: int) -> Response:
    """Return the other body that came under the event's id."""
    return file_of(ask(get_other_body, which=OtherBodyPath(event=str(number), body=conflict)))


def _asked(here: Desk, number: int, *, is_part: bool) -> ShownEvent | None:
    """Return what a page shows; of one that is there already what has changed, until its event has ended."""
    if is_part:
        found = deliveries.event(here, number, as_it_goes_on=True)
        if found is None or found.event.status in OPEN:
            return found
    return deliveries.event(here, number)


def _delivered(found: ShownEvent) -> dict[str, Any]:
    body = found.body
    delivered = {"body": body, "conflicts": _conflicts(found)}
    if body is None or body.unreadable:
        return delivered | dict.fromkeys(("shown", "curl", "edited_from", "test", "proof"))
    url = body.url if "://" in body.url else request.host_url.rstrip("/") + body.url
    return delivered | {
        "shown": body_view.body_view(body.body),
        "curl": body_view.curl(url, body.headers, body.body),
        "edited_from": _edited_from(body.headers),
        "test": as_test(found.event, body.body),
        "proof": found.prove(),
    }


def _edited_from(headers: Mapping[str, str]) -> int | None:
    """Return the ledger id that a test event's header names; of other events it says nothing."""
    named = headers.get(EDITED_FROM, "")
    return int(named) if is_number(named) else None


def _conflicts(found: ShownEvent) -> list[dict[str, Any]]:
    return [dict(other) | {"shown": body_view.body_view(other.octets)} for other in found.conflicts]
