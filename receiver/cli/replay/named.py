"""`hookonce replay ID…`: events that somebody names, few enough to be reported one by one."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import NamedTuple

import click
import psycopg

from hookonce.receiver.cli.connections import notify_workers, operator
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.cli.replay.outcomes import ReplayReport
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.queries import event_lookup
from hookonce.receiver.ledger.queries import events as event_queries
from hookonce.receiver.ledger.replay import events as event_replays
from hookonce.receiver.ledger.replay.events import GOOD


def preview(
    settings: Settings, connection: psycopg.Connection, references: Iterable[str], *, as_json: bool
) -> None:
    """Show the named events as they are, and replay none."""
    ids, unknown = _found(connection, references)
    details = [event_queries.detail(connection, each, settings.keyring) for each in ids]
    events = [detail.event for detail in details if detail]
    if as_json:
        for event in events:
            print_json(asdict(event))
    elif events:
        columns = ("id", "source", "event id", "type", "status")
        show(columns, [(e.id, e.source, e.event_id, e.type, e.status) for e in events])
    _report_unknown(unknown, is_all=not events)
    click.echo("nothing was replayed", err=True)
    if unknown:
        sys.exit(Exit.PARTIAL)


class How(NamedTuple):
    """How named events are replayed: which steps anew, what is done once more, and how it is told."""

    forget: Sequence[str]
    again: bool
    as_json: bool


def replay(settings: Settings, connection: psycopg.Connection, references: Iterable[str], how: How) -> None:
    """Replay the named events and report what became of each; exits with 3 or 4 as `hookonce exits` says."""
    ids, unknown = _found(connection, references)
    report = ReplayReport(as_json=how.as_json)
    outcomes = list(event_replays.replay(connection, ids, operator(), forget=how.forget, again=how.again))
    report.take(outcomes)
    unknown += [str(each) for each in sorted(set(ids) - {outcome.id for outcome in outcomes})]
    if report.is_any(GOOD):
        notify_workers(settings)
    report.finish()
    _report_unknown(unknown, is_all=not outcomes)
    if unknown or not report.is_whole:
        sys.exit(report.exit)


def _report_unknown(unknown: Sequence[str], *, is_all: bool) -> None:
    """Report which names no event has. Raises: `NotFound` if that is all there was to replay."""
    if unknown:
        names = ", ".join(map(clean, unknown))
        text = f"not in the ledger: {names}; expected ids, or how they begin, see `hookonce events list`"
        if is_all:
            raise NotFound(text)
        click.echo(f"hookonce: {text}", err=True)


def _found(connection: psycopg.Connection, references: Iterable[str]) -> tuple[list[int], list[str]]:
    """Return the ledger's ids of the named events, and the names that no event has."""
    found = {reference: event_lookup.find(connection, reference) for reference in references}
    unknown = [reference for reference, each in found.items() if each is None]
    return [each for each in found.values() if each is not None], unknown
