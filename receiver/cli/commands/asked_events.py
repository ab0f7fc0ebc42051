"""`hookonce events list` where it goes by the desk: other inboxes, what bodies contain, and of what events died."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from hookonce.receiver.cli.desk import asking, desk, pages
from hookonce.receiver.cli.event_listing import print_events, say_empty
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import cell, clean, print_json
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.desk.dead_letters import DeadLettersQuery, list_dead_letters
from hookonce.receiver.desk.events import ListedEvent, list_events
from hookonce.receiver.desk.searches import SearchQuery, search_bodies
from hookonce.receiver.ledger.queries.dead_letters import MAX_DEATHS
from hookonce.receiver.ledger.states import EventStatus

MAX_SEARCHED = 200
"""Events that a search in bodies gives at most."""


def list_(given: Mapping[str, Any], limit: int, *, as_json: bool) -> None:
    """Print the events that match."""
    with desk() as here:
        found = list(pages(here, list_events, {**given, "limit": limit}))
    rows = [event for page in found for event in page.data]
    _print(rows, given, found[-1].hint, as_json=as_json)
    if limit and len(rows) == limit:
        tell(f"the newest {limit}; --limit 0 gives all")


def search(given: Mapping[str, Any], limit: int, *, as_json: bool) -> None:
    """Print the events whose bodies contain what is looked for, and how far was looked."""
    size = min(limit or MAX_SEARCHED, MAX_SEARCHED)
    with desk() as here:
        found = here.ask(search_bodies, asked=asking(SearchQuery, **given, limit=size))
    if size != limit:
        tell(
            f"a search in bodies gives {MAX_SEARCHED} events at most, --limit {limit} too; to go on, give --until"
        )
    _print([ListedEvent(**dict(event)) for event in found.data], given, found.hint, as_json=as_json)
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
    for each in found.data:
        newest = each.newest_events[0]
        if as_json:
            said = {"handler": each.handler, "error": each.error, "events": each.count}
            print_json({**said, "newest": each.newest_at, "example": newest, "issue": each.issue})
            continue
        number = f"{each.count:>6} {'event' if each.count == 1 else 'events'}"
        click.echo(
            f"{click.style(number, bold=True)}  {clean(each.handler or 'can not be read')}, "
            f"the last {ago(each.newest_at)}"
        )
        click.echo(f"        {click.style(clean(each.error), fg='red')}")
        click.echo(f"        hookonce events show {newest}")
        if each.issue:
            click.echo(f"        hookonce issues show {each.issue}")
    if not (found.is_complete or as_json):
        tell(f"the newest {MAX_DEATHS} dead events were grouped")


def _print(found: list[ListedEvent], given: Mapping[str, Any], hint: str | None, *, as_json: bool) -> None:
    if not as_json:
        print_events(found, {event.id: event.dead for event in found}, given, hint)
        return
    left_out = set() if given.get("status") == EventStatus.DEAD else {"dead"}
    for event in found:
        print_json(event.model_dump(exclude=left_out))
