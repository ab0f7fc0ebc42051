"""Bulk replay: what would be replayed, then its progress. The sweep takes the steps, whoever watches."""

from dataclasses import asdict
from datetime import UTC, datetime

from flask import Response, abort, make_response, redirect, render_template, request, url_for

from receiver.admin.asked import STATUSES, asked, fixed
from receiver.admin.shell import admin, desk, is_fragment, who
from receiver.ledger import desk_bulk, desk_follow, desk_steps
from receiver.ledger.desk_bulk import Bulk
from receiver.ledger.desk_replay import BATCH
from receiver.workers import ring

_SLOWEST, _FASTEST = 0.01, 10_000


@admin.get("/bulk/new")
def bulk_new() -> str:
    """Show what matches by type and status, and the button."""
    form = asked(request.args, datetime.now(UTC))
    counts = []
    if form.said and not form.mistakes:
        with desk().ledger() as connection:
            counts = desk_bulk.counts(connection, form.wanted)
    return render_template(
        "admin/bulk_new.html",
        form=form,
        fixed=fixed(form),
        counts=counts,
        total=sum(count for *_, count in counts),
        statuses=STATUSES,
        sources=sorted(desk().settings.sources),
    )


@admin.post("/bulk")
def bulk_start() -> Response:
    """Begin, and take the first step at once if no rate holds it back."""
    form = asked(request.form, datetime.now(UTC))
    if form.mistakes or not form.said:
        abort(
            400,
            "; ".join(form.mistakes) or "Say which events: an empty filter would replay the whole ledger.",
        )
    rate = _rate(request.form.get("rate", "").strip())
    with desk().ledger() as connection:
        begun = desk_bulk.start(connection, form.wanted, who(), rate)
        if rate is None and begun.ended_at is None:
            desk_steps.step(connection, begun.id, BATCH)
    ring(desk().settings.redis_url)
    return _to(begun.id)


@admin.get("/bulk/<int:number>")
def bulk(number: int) -> str:
    """Show how far it is, or that part only."""
    with desk().ledger() as connection:
        found = _found(desk_bulk.get(connection, number))
        desk_follow.look(connection, number)
        progress = desk_follow.progress(connection, number)
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
    with desk().ledger() as connection:
        if not desk_bulk.stop(connection, number, who()):
            abort(404, "There is no such bulk replay.")
    return _to(number)


@admin.post("/bulk/<int:number>/go-on")
def bulk_go_on(number: int) -> Response:
    """Take it up again."""
    with desk().ledger() as connection:
        desk_bulk.go_on(connection, number, who())
    return _to(number)


def _found(found: Bulk | None) -> Bulk:
    if found is None:
        abort(404, "There is no such bulk replay.")
    return found


def _rate(said: str) -> float | None:
    if not said:
        return None
    try:
        rate = float(said)
    except ValueError:
        rate = 0.0
    if not _SLOWEST <= rate <= _FASTEST:
        abort(
            400,
            f"The rate is events per second: a number from {_SLOWEST} to {_FASTEST}, or nothing for no limit.",
        )
    return rate


def _to(number: int) -> Response:
    return make_response(redirect(url_for("admin.bulk", number=number), 303))
