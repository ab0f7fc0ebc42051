"""`hookonce replay ID…`: events that somebody names, few enough to be told one by one."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import click
import psycopg

from receiver.cli.errors import NotFound
from receiver.cli.exits import Exit
from receiver.cli.replay_outcomes import Told
from receiver.cli.servers import operator, ring
from receiver.cli.tables import clean, print_json, show
from receiver.ledger import desk, desk_find, desk_replay
from receiver.ledger.desk_replay import GOOD
from receiver.settings import Settings


def preview(
    settings: Settings, connection: psycopg.Connection, references: Iterable[str], *, as_json: bool
) -> None:
    """Show the named events as they are, and replay none."""
    ids, unknown = _found(connection, references)
    details = [desk.detail(connection, each, settings.keyring) for each in ids]
    events = [detail.event for detail in details if detail]
    if as_json:
        for event in events:
            print_json(asdict(event))
    elif events:
        columns = ("id", "source", "event id", "type", "status")
        show(columns, [(e.id, e.source, e.event_id, e.type, e.status) for e in events])
    _tell_unknown(unknown, is_all=not events)
    click.echo("nothing was replayed", err=True)
    if unknown:
        sys.exit(Exit.PARTIAL)


def replay(
    settings: Settings, connection: psycopg.Connection, references: Iterable[str], *, as_json: bool
) -> None:
    """Replay the named events and tell what became of each; exits with 3 or 4 as `hookonce exits` says."""
    ids, unknown = _found(connection, references)
    told = Told(as_json=as_json)
    outcomes = list(desk_replay.replay(connection, ids, operator()))
    told.take(outcomes)
    unknown += [str(each) for each in sorted(set(ids) - {outcome.id for outcome in outcomes})]
    if told.is_any(GOOD):
        ring(settings)
    told.finish()
    _tell_unknown(unknown, is_all=not outcomes)
    if unknown or not told.is_whole:
        sys.exit(told.exit)


def _tell_unknown(unknown: Sequence[str], *, is_all: bool) -> None:
    """Say which names no event has. Raises: `NotFound` if that is all there was to replay."""
    if unknown:
        names = ", ".join(map(clean, unknown))
        text = f"not in the ledger: {names}; expected ids, or how they begin, see `hookonce events list`"
        if is_all:
            raise NotFound(text)
        click.echo(f"hookonce: {text}", err=True)


def _found(connection: psycopg.Connection, references: Iterable[str]) -> tuple[list[int], list[str]]:
    """Give the ledger's ids of the named events, and the names that no event has."""
    found = {reference: desk_find.find(connection, reference) for reference in references}
    unknown = [reference for reference, each in found.items() if each is None]
    return [each for each in found.values() if each is not None], unknown
