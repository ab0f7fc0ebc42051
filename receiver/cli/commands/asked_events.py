"""`hookonce events list --body`, `--where` and `--group`: by the content of bodies, and dead events by cause."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.event_listing import document, print_events, say_empty
from hookonce.receiver.cli.output.printing import paged, tell
from hookonce.receiver.cli.output.tables import cell, clean, print_json
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.desk.dead_letters import MAX_GROUPED, DeadLettersQuery, list_dead_letters
from hookonce.receiver.desk.listed_events import ListedEvent
from hookonce.receiver.desk.searches import SearchQuery, search_bodies

MAX_SEARCHED = 200
"""Events that a search in bodies gives at most."""


def search(given: Mapping[str, Any], limit: int, *, as_json: bool) -> None:
    """Print the events whose bodies contain what is looked for, and how far was looked."""
    size = min(limit or MAX_SEARCHED, MAX_SEARCHED)
    with desk() as here:
        found = here.ask(search_bodies, asked=asking(SearchQuery, **given, limit=size))
    if size != limit:
        tell(
            f"a search in bodies gives {MAX_SEARCHED} events at most, --limit {limit} too; to go on, give --until"
        )
    rows = [ListedEvent(**dict(event)) for event in found.data]
    if as_json:
        for row in rows:
            print_json(document(row, given))
    else:
        print_events(rows, given, found.hint)
    said = f"searched {counted(found.looked_into, 'body', 'bodies')}"
    if found.closed:
        said += f", {found.closed} of them can't be opened here"
    if found.large:
        said += f", {found.large} were too large"
    if found.next is not None:
        back: datetime | None = found.back_to
        said += (
            f"; it stopped at what came {cell(back)}: to go on there, --until {cell(back).replace(' ', 'T')}"
        )
    tell(said)


def group(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the causes that the newest dead events died of, the most frequent first."""
    with desk() as here:
        found = here.ask(list_dead_letters, asked=asking(DeadLettersQuery, **given))
    if not found.data and not as_json:
        say_empty(given, found.hint)
    with paged():
        for each in found.data:
            if as_json:
                print_json(each.model_dump())
                continue
            number = f"{each.count:>6} {'event' if each.count == 1 else 'events'}"
            click.echo(
                f"{click.style(number, bold=True)}  {clean(each.handler or 'can not be read')}, "
                f"the last {ago(each.newest_at)}"
            )
            click.echo(f"        {click.style(clean(each.error), fg='red')}")
            click.echo(f"        hookonce events show {each.newest_events[0]}")
            if each.issue:
                click.echo(f"        hookonce issues show {each.issue}")
    if not (found.is_complete or as_json):
        tell(f"the newest {MAX_GROUPED} dead events were grouped")
