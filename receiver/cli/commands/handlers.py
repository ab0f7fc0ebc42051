"""`hookonce handlers`: what workers say they can do, and how it fares."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

import click

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.pauses import Handler, list_handlers
from hookonce.receiver.desk.rows import HandlerLimits

_PAUSED_BY: Final = {None: "", "person": " (paused)", "breaker": " (stopped by its breaker)"}


def _documents(handler: Handler) -> Iterator[dict[str, Any]]:
    """Yield one object for each pattern of a handler."""
    limits = handler.limits or HandlerLimits()
    for each in handler.takes:
        yield {
            "handler": handler.name,
            "place": each.place,
            "pattern": each.pattern,
            "batch": each.batch,
            "batch_size": handler.batches.size if handler.batches else None,
            "attempts": each.attempts,
            "timeout_seconds": each.timeout_seconds,
            **limits.model_dump(),
            "paused": handler.is_paused,
            "paused_by": handler.paused_by,
            "done": handler.done,
            "open": handler.open,
            "dead": handler.dead,
            "p50_seconds": handler.p50_seconds,
            "p99_seconds": handler.p99_seconds,
            "latest_run": handler.latest_run,
            "announced_at": each.announced_at,
        }


def _batch(document: dict[str, Any]) -> object:
    size, most = document["batch_size"], document["batch"]
    return f"{size} of {most}" if size and most else most or ""


def _took(document: dict[str, Any]) -> str | None:
    """Say within how many seconds half of the runs ended, and 99 of a hundred."""
    half, most = document["p50_seconds"], document["p99_seconds"]
    return None if half is None or most is None else f"{half:.3g} s, p99 {most:.3g} s"


handlers = click.Group(
    commands=[
        listing(
            list_handlers,
            {
                "handler": lambda one: one["handler"] + _PAUSED_BY[one["paused_by"]],
                "takes": lambda one: f"{one['place']} {one['pattern']}",
                "batch": _batch,
                "limits": lambda one: ", ".join(HandlerLimits(**one).words()),
                "attempts": itemgetter("attempts"),
                "done": itemgetter("done"),
                "open": itemgetter("open"),
                "dead": itemgetter("dead"),
                "took": _took,
                "last run": lambda one: ago(one["latest_run"]),
                "seen": lambda one: ago(one["announced_at"]),
            },
            "no worker has registered a handler; `hookonce init` writes one, and `hookonce dev` runs it",
            rows_of=_documents,
            document=dict,
            name="list",
            epilog=examples("hookonce handlers list", "hookonce handlers list --json"),
            about="""List handlers: what they take, their limits, how their runs ended.

            Workers register their handlers at their start and every few minutes. A handler that no worker has any more
            is listed for another day.
            """,
        )
    ],
    help="List the handlers that workers know.",
)
