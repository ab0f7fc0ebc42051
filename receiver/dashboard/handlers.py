"""*Handlers*: which patterns they take, how their newest runs went, and what holds them up."""

from contextlib import suppress

from flask import Response, render_template, request

from hookonce.receiver.dashboard.blueprint import admin, ask, to_page
from hookonce.receiver.desk import pauses as desk_pauses
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.rows import RUNS_LOOKED_AT


@admin.get("/handlers")
def handlers() -> str:
    """Show every handler that a worker announced or that ran lately."""
    found = ask(desk_pauses.list_handlers).data
    return render_template(
        "admin/handlers.html",
        handlers=found,
        limits={each.name: list(each.limits.words()) for each in found if each.limits},
        most=RUNS_LOOKED_AT,
    )


@admin.post("/pause")
def pause() -> Response:
    """Let the runs of what is named wait."""
    ask(desk_pauses.pause, **read(desk_pauses.pause, _named()))
    return _back(**_named())


@admin.post("/resume")
def resume() -> Response:
    """Go on; what waited is due at once."""
    with suppress(NotFound):  # it goes on already
        ask(desk_pauses.resume, **read(desk_pauses.resume, _named()))
    return _back(**_named())


def _back(kind: str, name: str) -> Response:
    source = desk_pauses.PAUSES[kind].source_of(name)
    if source is None:
        return to_page("handlers")
    return to_page("source", name=source) if request.form.get("back") == "source" else to_page("sources")


def _named() -> dict[str, str]:
    return {field: request.form.get(field, "") for field in ("kind", "name")}
