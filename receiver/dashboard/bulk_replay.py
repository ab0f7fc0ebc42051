"""Bulk replay: what would be replayed, then its progress. The sweep takes the steps, whoever watches."""

from collections.abc import Mapping

import psycopg
from flask import Response, abort, render_template, request

from hookonce.receiver.dashboard.blueprint import admin, ask, context, is_fragment, to_page
from hookonce.receiver.dashboard.event_form import STATUSES, pinned_times, read_event_form
from hookonce.receiver.desk.events import EventCounts, choices_of, count_events
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.replays import (
    BulkPath,
    BulkStepRequest,
    continue_bulk_replay,
    get_bulk_replay,
    start_bulk_replay,
    step_bulk_replay,
    stop_bulk_replay,
)


@admin.get("/bulk/new")
def bulk_new() -> str:
    """Show what matches by type and status, and the button."""
    form = read_event_form(request.args)
    if form.needle:
        form.mistakes.append(
            "a search in bodies can't be replayed as a whole; select its events on the events page"
        )
    counted: EventCounts | None = EventCounts(total=0, data=[])
    with context().desk() as here:
        chosen_from = choices_of(here)
        if form.typed and not form.mistakes:
            try:
                counted = count_events(here, **read(count_events, form.filter))
            except psycopg.errors.QueryCanceled:
                counted = None
    return render_template(
        "admin/bulk_new.html",
        form=form,
        fixed=pinned_times(form),
        counted=counted,
        statuses=STATUSES,
        choices=chosen_from,
    )


@admin.post("/bulk")
def bulk_start() -> Response:
    """Begin, and take the first step at once if no rate holds it back."""
    form = read_event_form(request.form)
    if form.mistakes or form.needle or not form.typed:
        abort(
            400,
            "; ".join(form.mistakes) or "Set a filter: an empty one would replay the whole ledger.",
        )
    shown = request.form.get("expected", type=int)
    asked = {"filter": form.filter, "rate": _rate(request.form), "expected": shown}
    with context().desk() as here:
        begun = start_bulk_replay(here, **read(start_bulk_replay, asked))
        if begun.rate is None:
            step_bulk_replay(here, which=BulkPath(bulk=begun.id), asked=BulkStepRequest(rate=None))
        here.notifies_workers = True
    return to_page("bulk", number=begun.id)


@admin.get("/bulk/<int:number>")
def bulk(number: int) -> str:
    """Show how far it is, or that part only."""
    found = ask(get_bulk_replay, which=BulkPath(bulk=number))
    return render_template(
        f"admin/bulk{'_live' if is_fragment() else ''}.html",
        bulk=found,
        is_open=found.is_running or found.open > 0,
        rest=max(found.matched - found.replayed - found.left_alone, 0),
    )


@admin.post("/bulk/<int:number>/stop")
def bulk_stop(number: int) -> Response:
    """End it where it is."""
    return to_page("bulk", number=ask(stop_bulk_replay, which=BulkPath(bulk=number)).id)


@admin.post("/bulk/<int:number>/go-on")
def bulk_go_on(number: int) -> Response:
    """Continue it."""
    return to_page("bulk", number=ask(continue_bulk_replay, which=BulkPath(bulk=number)).id)


def _rate(form: Mapping[str, str]) -> float | str | None:
    """Return the rate as a number if it is one."""
    typed = form.get("rate", "").strip()
    try:
        return float(typed) if typed else None
    except ValueError:
        return typed
