"""`hookonce events list` where it goes by the desk: what bodies contain, and events of another inbox."""

from dataclasses import asdict
from datetime import datetime
from functools import partial

import click

from hookonce.receiver.cli.desk import asking, desk, rows
from hookonce.receiver.cli.event_listing import print_events
from hookonce.receiver.cli.output.tables import cell, print_json
from hookonce.receiver.desk.events import Event, EventsQuery, list_events
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.searches import SearchQuery, search_bodies
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import EventRow

MAX_SEARCHED = 200
"""Events that a search in bodies gives at most."""


def list_(wanted: Filter, limit: int, text: str | None, where: str | None, *, as_json: bool) -> None:
    """Print the events that match, and how far a search has looked."""
    given = {name: value for name, value in asdict(wanted).items() if value is not None}
    with desk() as here:
        stopped = None
        if text is None and where is None:
            found = list(rows(here, list_events, partial(EventsQuery, **given), limit))
        else:
            found, stopped = _searched(here, given | {"text": text, "where": where}, limit or MAX_SEARCHED)
            if limit == 0 or limit > MAX_SEARCHED:
                click.echo(
                    f"a search in bodies gives {MAX_SEARCHED} events at most, --limit {limit} too; "
                    "to go on, give --until",
                    err=True,
                )
    if as_json:
        for event in found:
            print_json(event.model_dump())
    else:
        print_events([EventRow(**event.model_dump()) for event in found], {}, wanted)
    if stopped:
        click.echo(stopped, err=True)
    elif limit and len(found) == limit:
        click.echo(f"the newest {limit}; --limit 0 gives all", err=True)


def _searched(here: Asks, given: dict[str, object], limit: int) -> tuple[list[Event], str]:
    """Return what was found, and what there is to say of how far was looked."""
    found = here.ask(search_bodies, asked=asking(SearchQuery, **given, limit=min(limit, MAX_SEARCHED)))
    said = f"{found.looked_into} bodies looked into"
    if found.closed:
        said += f", {found.closed} of them can't be opened here"
    if found.large:
        said += f", {found.large} were too large"
    if found.next is not None:
        back: datetime | None = found.back_to
        said += (
            f"; it stopped at what came {cell(back)}: to go on there, --until {cell(back).replace(' ', 'T')}"
        )
    return found.data, said
