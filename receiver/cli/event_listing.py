"""Events as a listing: lines on a terminal, a table anywhere else, and what to do where there is none."""

import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from hookonce.receiver.cli.options.event_options import doubt
from hookonce.receiver.cli.output import event_lines
from hookonce.receiver.cli.output.tables import show
from hookonce.receiver.ledger.queries.dead_letters import Death
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import EventRow
from hookonce.receiver.ledger.states import EventStatus


def print_events(events: Sequence[EventRow], deaths: dict[int, list[Death]], wanted: Filter) -> None:
    """Print events as lines on a terminal, and as a table anywhere else."""
    if not events:
        say_empty(wanted)
    elif sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        for line in event_lines.lines(events, deaths, width, datetime.now(UTC)):
            click.echo(line)
    else:
        _print_table(events, deaths, with_deaths=wanted.status == EventStatus.DEAD)


def _print_table(events: Sequence[EventRow], deaths: dict[int, list[Death]], *, with_deaths: bool) -> None:
    columns = ["id", "source", "event id", "type", "status", "received", "deliveries"]
    rows = []
    for e in events:
        row = [e.id, e.source, e.event_id, e.type, e.status, e.received_at, e.deliveries]
        died = [each for each in deaths.get(e.id, ()) if each.handler]
        if with_deaths:
            errors = "; ".join((each.error or "").strip().partition("\n")[0] for each in died)
            row += [", ".join(str(each.handler) for each in died) or None, errors or None]
        rows.append(row)
    show([*columns, "handler", "error"] if with_deaths else columns, rows)


def say_empty(wanted: Filter) -> None:
    """Say that nothing was found, and what to do about it."""
    if wanted == Filter():
        click.echo("no event yet; `hookonce trigger SOURCE` sends one", err=True)
    elif wanted == Filter(status=EventStatus.DEAD):
        click.echo("no event is dead", err=True)
    else:
        click.echo("no event matches; without options `hookonce events list` shows all", err=True)
    doubt(wanted.source)
