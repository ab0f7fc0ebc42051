"""`hookonce events`: what came, and what became of it."""

from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from itertools import islice
from typing import Any

import click
import psycopg

from hookonce.receiver.cli.connections import at, ledger
from hookonce.receiver.cli.event_listing import print_events, say_empty
from hookonce.receiver.cli.options.event_options import AS_JSON, LIMIT, choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output import event_lines
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.ledger.queries import events as event_queries
from hookonce.receiver.ledger.queries.dead_groups import grouped
from hookonce.receiver.ledger.queries.dead_letters import MAX_DEATHS, deaths_of
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import EventRow
from hookonce.receiver.ledger.states import EventStatus

_ELSEWHERE = {
    "diff": "diff_event:diff",
    "edit": "edit_event:edit",
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
    wanted = Filter(**given_of(options))
    is_dead = wanted.status == EventStatus.DEAD
    if text is not None or where is not None or at():
        from hookonce.receiver.cli.commands import far_events  # few listings need it

        if is_grouped:
            raise click.UsageError(
                "--group counts what this ledger holds; leave out --body, --where and --at"
            )
        far_events.list_(wanted, limit, text, where, as_json=as_json)
        return
    if is_grouped and not is_dead:
        raise click.UsageError("--group is for dead events; add --status dead")
    with ledger() as connection:
        if is_grouped:
            _print_groups(connection, wanted, as_json=as_json)
            return
        found = event_queries.events(connection, wanted, limit)
        if as_json:
            _print_json(connection, found, with_deaths=is_dead)
            return
        events = list(found)
        deaths = event_lines.by_event(deaths_of(connection, [each.id for each in events]) if is_dead else ())
    print_events(events, deaths, wanted)
    if limit and len(events) == limit:
        click.echo(f"the newest {limit}; --limit 0 gives all", err=True)


def _print_json(connection: psycopg.Connection, found: Iterator[EventRow], *, with_deaths: bool) -> None:
    """Print events, and of dead ones the runs that died, a part at a time."""
    while part := list(islice(found, MAX_DEATHS)):
        deaths = event_lines.by_event(
            deaths_of(connection, [each.id for each in part]) if with_deaths else ()
        )
        for event in part:
            document = asdict(event)
            if with_deaths:
                dead = [each for each in deaths.get(event.id, ()) if each.handler]
                document["dead"] = [{"handler": each.handler, "error": each.error} for each in dead]
            print_json(document)


def _print_groups(connection: psycopg.Connection, wanted: Filter, *, as_json: bool) -> None:
    """Print the causes that the newest dead events died of, the most frequent first."""
    events = list(event_queries.events(connection, wanted, MAX_DEATHS))
    groups = grouped(deaths_of(connection, [each.id for each in events]))
    for group in groups if as_json else ():
        said = {"handler": group.handler, "error": group.pattern, "events": len(group.events)}
        print_json({**said, "newest": group.newest, "example": max(group.events)})
    if as_json:
        return
    if not groups:
        say_empty(wanted)
        return
    for group in groups:
        number = len(group.events)
        click.echo(
            click.style(f"{number:>6} {'event' if number == 1 else 'events'}", bold=True)
            + f"  {clean(group.handler or 'can not be read')}, the last {ago(group.newest)}"
        )
        click.echo(f"        {click.style(clean(group.pattern), fg='red')}")
        click.echo(f"        hookonce events show {max(group.events)}")
    if len(events) == MAX_DEATHS:
        click.echo(f"of the newest {MAX_DEATHS}", err=True)
