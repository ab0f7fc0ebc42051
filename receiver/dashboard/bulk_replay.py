"""Bulk replay: what would be replayed, then its progress. The sweep takes the steps, whoever watches."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from flask import Response, abort, make_response, redirect, render_template, request, url_for

from hookonce.receiver.dashboard.blueprint import admin, ask, context, is_fragment
from hookonce.receiver.dashboard.event_form import STATUSES, pinned_times, read_event_form
from hookonce.receiver.desk.arguments import read
from hookonce.receiver.desk.filters import EventFilter
from hookonce.receiver.desk.replays import BulkPath, continue_bulk_replay, start_bulk_replay, stop_bulk_replay
from hookonce.receiver.ledger.queries import choices
from hookonce.receiver.ledger.replay import (
    bulk as bulk_replays,
)
from hookonce.receiver.ledger.replay import (
    bulk_progress,
    bulk_steps,
)
from hookonce.receiver.ledger.replay.bulk import Bulk
from hookonce.receiver.ledger.replay.events import REPLAY_BATCH
from hookonce.receiver.redis.workers import notify


@admin.get("/bulk/new")
def bulk_new() -> str:
    """Show what matches by type and status, and the button."""
    form = read_event_form(request.args, datetime.now(UTC))
    if form.needle:
        form.mistakes.append(
            "a search in bodies can't be replayed as a whole; select its events on the events page"
        )
    counts = []
    with context().ledger() as connection:
        chosen_from = choices.choices(connection)
        if form.typed and not form.mistakes:
            counts = bulk_replays.counts(connection, form.wanted)
    return render_template(
        "admin/bulk_new.html",
        form=form,
        fixed=pinned_times(form),
        counts=counts,
        total=sum(count for *_, count in counts),
        statuses=STATUSES,
        choices=chosen_from,
    )


@admin.post("/bulk")
def bulk_start() -> Response:
    """Begin, and take the first step at once if no rate holds it back."""
    form = read_event_form(request.form, datetime.now(UTC))
    if form.mistakes or form.needle or not form.typed:
        abort(
            400,
            "; ".join(form.mistakes) or "Set a filter: an empty one would replay the whole ledger.",
        )
    fields = {f"filter.{name}": getattr(form.wanted, name) for name in EventFilter.model_fields}
    shown = request.form.get("expected", type=int)
    begun = ask(
        start_bulk_replay,
        **read(start_bulk_replay, {**fields, "rate": _rate(request.form), "expected": shown}),
    )
    if begun.rate is None and begun.ended_at is None:
        with context().ledger() as connection:
            bulk_steps.step(connection, begun.id, REPLAY_BATCH)
    notify(context().settings.redis_url)
    return _to(begun.id)


@admin.get("/bulk/<int:number>")
def bulk(number: int) -> str:
    """Show how far it is, or that part only."""
    with context().ledger() as connection:
        found = _found(bulk_replays.get(connection, number))
        bulk_progress.look(connection, number)
        progress = bulk_progress.progress(connection, number)
    return render_template(
        f"admin/bulk{'_live' if is_fragment() else ''}.html",
        bulk=found,
        progress=progress,
        is_open=found.ended_at is None or progress.open > 0,
        rest=max(found.matched - found.replayed - found.left_alone, 0),
        now=datetime.now(UTC),
        filter={name: value for name, value in asdict(found.wanted).items() if value is not None},
    )


@admin.post("/bulk/<int:number>/stop")
def bulk_stop(number: int) -> Response:
    """End it where it is."""
    return _to(ask(stop_bulk_replay, which=BulkPath(bulk=number)).id)


@admin.post("/bulk/<int:number>/go-on")
def bulk_go_on(number: int) -> Response:
    """Continue it."""
    return _to(ask(continue_bulk_replay, which=BulkPath(bulk=number)).id)


def _found(found: Bulk | None) -> Bulk:
    if found is None:
        abort(404, "There is no such bulk replay.")
    return found


def _rate(form: Mapping[str, str]) -> float | str | None:
    """Return the rate as a number if it is one."""
    typed = form.get("rate", "").strip()
    try:
        return float(typed) if typed else None
    except ValueError:
        return typed


def _to(number: int) -> Response:
    return make_response(redirect(url_for("admin.bulk", number=number), 303))
