"""`hookonce handlers`: what workers say they can do, and how it fares."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import click
import psycopg

from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.ledger import handlers as known
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.handlers import HandlerLimits
from hookonce.receiver.ledger.queries import handler_stats
from hookonce.receiver.ledger.stats import batch_figures


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
    configured()
    with ledger() as connection:
        documents = _documents(connection)
    if as_json:
        for document in documents:
            print_json(document)
        return
    show(
        ("handler", "takes", "batch", "limits", "attempts", "done", "open", "dead", "last run", "seen"),
        [_row(each) for each in documents],
        empty="no worker has told of a handler; `hookonce init` writes one, and `hookonce dev` runs it",
    )


_PAUSED_BY: Final = {None: "", "person": " (paused)", "breaker": " (stopped by its breaker)"}


def _documents(connection: psycopg.Connection) -> list[dict[str, Any]]:
    """Return one object for each pattern of each handler."""
    stats = {each.handler: each for each in handler_stats.handlers(connection)}
    paused = pauses.by_handler(connection)
    in_batches = batch_figures.figures(connection)
    documents = []
    for each in known.known_handlers(connection):
        recent = stats.get(each.handler)
        documents.append(
            {
                "handler": each.handler,
                "place": each.place,
                "pattern": each.pattern,
                "batch": each.batch,
                "batch_size": in_batches[each.handler].size if each.handler in in_batches else None,
                "attempts": each.attempts,
                "timeout_seconds": each.timeout.total_seconds(),
                **asdict(each.limits),
                "paused": each.handler in paused,
                "paused_by": paused[each.handler].by if each.handler in paused else None,
                "done": recent.done if recent else 0,
                "open": recent.open if recent else 0,
                "dead": recent.dead if recent else 0,
                "latest_run": recent.latest if recent else None,
                "announced_at": each.announced_at,
            }
        )
    return documents


def _row(document: dict[str, Any]) -> list[object]:
    latest: datetime | None = document["latest_run"]
    name = document["handler"] + _PAUSED_BY[document["paused_by"]]
    takes = f"{document['place']} {document['pattern']}"
    numbers = [document[key] for key in ("attempts", "done", "open", "dead")]
    batch = document["batch"] or ""
    if document["batch"] and document["batch_size"]:
        batch = f"{document['batch_size']} of {document['batch']}"
    limits = ", ".join(HandlerLimits.of(document).words())
    return [name, takes, batch, limits, *numbers, ago(latest), ago(document["announced_at"])]
