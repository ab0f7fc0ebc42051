"""A bulk replay at another inbox: its sweep takes the steps, and here one looks how far it is."""

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import click

from hookonce.receiver.cli.desk import asking
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.replay import question
from hookonce.receiver.desk.events import count_events
from hookonce.receiver.desk.filters import EventFilter
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.replays import (
    BulkFilter,
    BulkPath,
    BulkReplay,
    BulkReplayRequest,
    continue_bulk_replay,
    get_bulk_replay,
    start_bulk_replay,
)
from hookonce.receiver.ledger.queries.event_filter import Filter

_POLL_INTERVAL: Final = 2.0
"""Seconds between two looks."""


def replay(
    here: Asks, wanted: Filter, number: int | None, options: Mapping[str, Any], *, as_json: bool
) -> None:
    """Begin a bulk replay, or continue one, and follow it; exits with 3 if some died again or were left alone."""
    if number is not None:
        bulk = here.ask(continue_bulk_replay, which=asking(BulkPath, bulk=number))
    else:
        given = {name: value for name, value in asdict(wanted).items() if value is not None}
        counted = here.ask(count_events, asked=asking(EventFilter, **given))
        kinds = [(row.type, row.status, row.count) for row in counted.data]
        chosen = question.ask(kinds, options, as_json=as_json)
        if chosen is None:
            return
        asked = asking(
            BulkReplayRequest,
            filter=asking(BulkFilter, **given),
            rate=options["rate"],
            limit=options["limit"] or None,
            expected=chosen,
        )
        bulk = here.ask(start_bulk_replay, asked=asked)
    if options["wait"] is not False and (options["wait"] or sys.stderr.isatty()):
        bulk = _followed(here, bulk)
    click.echo(f"bulk replay {bulk.id}: {_summary(bulk)}, of {bulk.matched} that matched", err=True)
    if bulk.state == "running":
        click.echo("the sweep there goes on with it; `hookonce --at … replays` says how far it is", err=True)
    elif bulk.dead or bulk.left_alone:
        sys.exit(Exit.PARTIAL)


def _followed(here: Asks, bulk: BulkReplay) -> BulkReplay:
    try:
        while bulk.state == "running" or bulk.open:
            time.sleep(_POLL_INTERVAL)
            bulk = here.ask(get_bulk_replay, which=BulkPath(bulk=bulk.id))
            click.echo(_summary(bulk), err=True)
    except KeyboardInterrupt:
        click.echo("nobody looks any longer; it goes on there", err=True)
    return bulk


def _summary(bulk: BulkReplay) -> str:
    words = [f"replayed {bulk.replayed}", f"done {bulk.done}", f"died again {bulk.dead}"]
    words += [f"still open {bulk.open}"] if bulk.open else []
    words += [f"left alone {bulk.left_alone}"] if bulk.left_alone else []
    return ", ".join(words)
