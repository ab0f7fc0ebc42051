"""`hookonce replays`: bulk replays, and how far each is."""

import click

from hookonce.receiver.cli.desk import desk, rows
from hookonce.receiver.cli.options.event_options import AS_JSON, LIMIT
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.desk.models import Paged
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.replays import BulkReplay, list_bulk_replays


@click.command()
@LIMIT
@AS_JSON
def replays(limit: int, *, as_json: bool) -> None:
    """List bulk replays, newest first: whose, of what, and how far."""
    with desk() as here:
        list_replays(here, limit, as_json=as_json)


def list_replays(here: Asks, limit: int = 50, *, as_json: bool) -> None:
    """Print bulk replays."""
    found = rows(here, list_bulk_replays, Paged, limit)
    if as_json:
        for bulk in found:
            print_json(bulk.model_dump() | {"is_complete": bulk.state == "complete"})
        return
    show(
        ("number", "by", "started", "state", "matched", "replayed", "left alone", "of"),
        [_row(bulk) for bulk in found],
        empty="nobody has begun a bulk replay; `hookonce replay --status dead` would",
    )


def _row(bulk: BulkReplay) -> list[object]:
    of = ", ".join(f"{name} {value}" for name, value in bulk.filter.items())
    counts = (bulk.matched, bulk.replayed, bulk.left_alone)
    return [bulk.id, bulk.who, bulk.started_at, bulk.state, *counts, of]
