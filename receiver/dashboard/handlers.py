"""*Handlers*: which patterns they take, how their newest runs went, and what holds them up."""

from collections import defaultdict
from datetime import UTC, datetime

from flask import Response, abort, make_response, redirect, render_template, request, url_for

from hookonce.receiver.dashboard.blueprint import actor, admin, context
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.handlers import KnownHandler, known_handlers, limits_of
from hookonce.receiver.ledger.queries import handler_stats
from hookonce.receiver.ledger.reasons import PAUSES, nouns
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.stats import batch_figures, worker_slots
from hookonce.receiver.redis.workers import notify

_MAX_NAME_LENGTH = 300


@admin.get("/handlers")
def handlers() -> str:
    """Show every handler that a worker announced or that ran lately."""
    with context().ledger() as connection:
        known = known_handlers(connection)
        figures = {row.handler: row for row in handler_stats.handlers(connection)}
        failing = {each.handler: each for each in breakers.breakers(connection)}
        waiting = limit_gate.waiting(connection)
        delays = limit_gate.delays(connection)
        in_batches = batch_figures.figures(connection)
        suspects = worker_slots.suspects(connection)
        long = {each.handler: each for each in reversed(worker_slots.long_transactions(connection))}
        paused = pauses.by_handler(connection)
    patterns: dict[str, list[KnownHandler]] = defaultdict(list)
    for one in known:
        patterns[one.handler].append(one)
    return render_template(
        "admin/handlers.html",
        names=sorted(
            {*patterns, *figures, *paused, *failing, *waiting, *delays, *in_batches, *suspects, *long}
        ),
        patterns=patterns,
        figures=figures,
        paused=paused,
        limits={name: list(each.words()) for name, each in limits_of(known).items()},
        failing=failing,
        waiting=waiting,
        delays=delays,
        in_batches=in_batches,
        suspects=suspects,
        long=long,
        most=handler_stats.RUNS_LOOKED_AT,
        now=datetime.now(UTC),
    )


@admin.post("/pause")
def pause() -> Response:
    """Let the runs of what is named wait."""
    kind, name = _named()
    with context().ledger() as connection:
        pauses.pause(connection, kind, name, actor())
    return _back(kind, name)


@admin.post("/resume")
def resume() -> Response:
    """Go on; what waited is due at once."""
    kind, name = _named()
    with context().ledger() as connection:
        pauses.resume(connection, kind, name, actor(), pauses.PATIENCE)
    notify(context().settings.redis_url)
    return _back(kind, name)


def _back(kind: str, name: str) -> Response:
    source = PAUSES[kind].source_of(name)
    if source is None:
        where = url_for("admin.handlers")
    elif request.form.get("back") == "source":
        where = url_for("admin.source", name=source)
    else:
        where = url_for("admin.sources")
    return make_response(redirect(where, 303))


def _named() -> tuple[str, str]:
    kind, name = request.form.get("kind", ""), request.form.get("name", "").replace("\0", "")
    pause = PAUSES.get(kind)
    is_known = pause is not None and pause.may_be(name, context().settings.sources)
    if not is_known or not 0 < len(name) <= _MAX_NAME_LENGTH:
        abort(400, f"Say which: {nouns()}.")
    return kind, name
