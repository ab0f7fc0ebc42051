"""`hookonce handlers`: what workers say they can do, and how it fares."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import click

from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.pauses import Handler
from hookonce.receiver.desk.pauses import list_handlers as list_handlers_
from hookonce.receiver.ledger.handlers import HandlerLimits


@click.group()
def handlers() -> None:
    """List the handlers that workers know."""


@handlers.command("list", epilog=examples("hookonce handlers list", "hookonce handlers list --json"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_handlers(*, as_json: bool) -> None:
    """List handlers: what they take, their limits, how their runs ended.

    Workers say at their start, and now and then, which handlers they have: nobody else can tell. One that no worker
    names any more is listed for another day.
    """
    with desk() as here:
        documents = [each for handler in here.ask(list_handlers_).data for each in _documents(handler)]
    if as_json:
        for document in documents:
            print_json(document)
        return
    show(
        (
            "handler",
            "takes",
            "batch",
            "limits",
            "attempts",
            "done",
            "open",
            "dead",
            "took",
            "last run",
            "seen",
        ),
        [_row(each) for each in documents],
        empty="no worker has told of a handler; `hookonce init` writes one, and `hookonce dev` runs it",
    )


_PAUSED_BY: Final = {None: "", "person": " (paused)", "breaker": " (stopped by its breaker)"}


def _documents(handler: Handler) -> Iterator[dict[str, Any]]:
    """Yield one object for each pattern of a handler."""
    limits = handler.limits.model_dump() if handler.limits else asdict(HandlerLimits())
    for each in handler.takes:
        yield {
            "handler": handler.name,
            "place": each.place,
            "pattern": each.pattern,
            "batch": each.batch,
            "batch_size": handler.batches.size if handler.batches else None,
            "attempts": each.attempts,
            "timeout_seconds": each.timeout_seconds,
            **limits,
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


def _row(document: dict[str, Any]) -> list[object]:
    latest: datetime | None = document["latest_run"]
    name = document["handler"] + _PAUSED_BY[document["paused_by"]]
    takes = f"{document['place']} {document['pattern']}"
    numbers = [document[key] for key in ("attempts", "done", "open", "dead")]
    batch = document["batch"] or ""
    if document["batch"] and document["batch_size"]:
        batch = f"{document['batch_size']} of {document['batch']}"
    limits = ", ".join(HandlerLimits.of(document).words())
    ends = [ago(latest), ago(document["announced_at"])]
    return [
        name,
        takes,
        batch,
        limits,
        *numbers,
        _took(document["p50_seconds"], document["p99_seconds"]),
        *ends,
    ]


def _took(half: float | None, most: float | None) -> str | None:
    """Say within how many seconds half of the runs ended, and 99 of a hundred."""
    return None if half is None or most is None else f"{half:.3g} s, p99 {most:.3g} s"
