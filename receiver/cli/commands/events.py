"""`hookonce events`: what came, and what became of it."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from types import ModuleType
from typing import Any

import click
import psycopg

from hookonce.receiver.cli.connections import at, ledger
from hookonce.receiver.cli.event_listing import print_events
from hookonce.receiver.cli.options.event_options import AS_JSON, LIMIT, choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.queries import events as event_queries
from hookonce.receiver.ledger.queries.dead_letters import MAX_DEATHS, by_event, deaths_of
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.states import EventStatus

_ELSEWHERE = {
    "diff": "diff_event:diff",
    "discard": "discard_events:discard",
    "edit": "edit_event:edit",
    "erase": "erase_events:erase",
    "export": "transfer:export",
    "import": "transfer:import_",
    "open": "open_event:open_",
    "show": "show_event:show",
}
"""Those of other modules, without which a listing starts sooner."""


class _Events(click.Group):
    """Knows further commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = _ELSEWHERE[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"{__package__}.{module}"), attribute)
        return command


@click.group(cls=_Events)
def events() -> None:
    """List the events in the ledger, or show one in full."""


@events.command(
    "list",
    epilog=examples(
        "hookonce events list --source stripe --since 2h",
        "hookonce events list --status dead",
        "hookonce events list --status dead --group",
    ),
)
@choosing
@LIMIT
@click.option("--group", "is_grouped", is_flag=True, help="With --status dead: one line for each cause.")
@click.option("--body", "text", metavar="TEXT", help="Only with this text in the body.")
@click.option("--where", metavar="$.PATH=VALUE", help="Only with this value there in the body.")
@AS_JSON
def list_(
    limit: int,
    text: str | None,
    where: str | None,
    *,
    is_grouped: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401  those of a filter
) -> None:
    """List events, newest first.

    With --status dead it says which handlers they died of, and why. --body and --where look into the newest bodies, as
    far as 20 seconds reach, and say where they stopped.
    """
    given = given_of(options)
    is_dead = given.get("status") == EventStatus.DEAD
    is_search = text is not None or where is not None
    if is_grouped and (is_search or not is_dead):
        raise click.UsageError("--group is for dead events; add --status dead, leave out --body and --where")
    if is_grouped or is_search or at():
        asked = _asked()
        if is_grouped:
            asked.group(given, as_json=as_json)
        elif is_search:
            asked.search({**given, "text": text, "where": where}, limit, as_json=as_json)
        else:
            asked.list_(given, limit, as_json=as_json)
        return
    with ledger() as connection:
        found = event_queries.events(connection, Filter(**given), limit)
        if as_json:
            _print_json(connection, found, with_deaths=is_dead)
            return
        events = list(found)
        deaths = by_event(deaths_of(connection, [each.id for each in events]) if is_dead else ())
    if not events and "source" in given:  # the desk knows what may be wrong with that
        with suppress(ConfigError):  # the listing needs nothing of the rest of the configuration
            _asked().list_(given, limit, as_json=as_json)
            return
    print_events(events, deaths, given)
    if limit and len(events) == limit:
        tell(f"the newest {limit}; --limit 0 gives all")


def _asked() -> ModuleType:
    """Return the module of listings by the desk, without which one of this ledger starts sooner."""
    return import_module(f"{__package__}.asked_events")


def _print_json(connection: psycopg.Connection, found: Iterator[Event], *, with_deaths: bool) -> None:
    """Print events, and of dead ones the runs that died, a part at a time."""
    while part := list(islice(found, MAX_DEATHS)):
        deaths = by_event(deaths_of(connection, [each.id for each in part]) if with_deaths else ())
        for event in part:
            document = event.model_dump()
            if with_deaths:
                dead = deaths.get(event.id, ())
                document["dead"] = [{"handler": each.handler or "", "error": each.error} for each in dead]
            print_json(document)
