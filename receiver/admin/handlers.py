"""*Handlers*: which patterns they take, how their newest runs went, and whether they are paused."""

from collections import defaultdict
from datetime import UTC, datetime

from flask import Response, abort, make_response, redirect, render_template, request, url_for

from receiver.admin.shell import admin, desk, who
from receiver.ledger import desk_figures, desk_pause
from receiver.ledger.announced import Announced, announced
from receiver.workers import ring

KINDS = ("source", "handler")
_LONGEST = 300


@admin.get("/handlers")
def handlers() -> str:
    """Show every handler that a worker announced or that ran lately."""
    with desk().ledger() as connection:
        known = announced(connection)
        figures = {row.handler: row for row in desk_figures.handlers(connection)}
        paused = {name for kind, name in desk_pause.paused(connection) if kind == "handler"}
    patterns: dict[str, list[Announced]] = defaultdict(list)
    for one in known:
        patterns[one.handler].append(one)
    return render_template(
        "admin/handlers.html",
        names=sorted({*patterns, *figures, *paused}),
        patterns=patterns,
        figures=figures,
        paused=paused,
        most=desk_figures.RUNS,
        now=datetime.now(UTC),
    )


@admin.post("/pause")
def pause() -> Response:
    """Let the runs of a source or a handler wait."""
    kind, name = _named()
    with desk().ledger() as connection:
        desk_pause.pause(connection, kind, name, who())
    return make_response(redirect(url_for(f"admin.{kind}s"), 303))


@admin.post("/resume")
def resume() -> Response:
    """Go on; what waited is due at once."""
    kind, name = _named()
    with desk().ledger() as connection:
        desk_pause.resume(connection, kind, name, who())
    ring(desk().settings.redis_url)
    return make_response(redirect(url_for(f"admin.{kind}s"), 303))


def _named() -> tuple[str, str]:
    kind, name = request.form.get("kind", ""), request.form.get("name", "").replace("\0", "")
    is_known = name in desk().settings.sources if kind == "source" else 0 < len(name) <= _LONGEST
    if kind not in KINDS or not is_known:
        abort(400, "Say which source or handler.")
    return kind, name
