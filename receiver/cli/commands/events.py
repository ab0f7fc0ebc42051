"""`hookonce events`: what came, and what became of it."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import click
import psycopg

from hookonce.providers import Delivery
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import AS_JSON, LIMIT, choosing, chosen, doubt
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output import event_lines, event_page
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.tables import clean, document_body, print_json, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.ledger.queries import event_lookup
from hookonce.receiver.ledger.queries import events as event_queries
from hookonce.receiver.ledger.queries.dead_groups import grouped
from hookonce.receiver.ledger.queries.dead_letters import MAX_DEATHS, Death, deaths_of
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import Detail, EventRow
from hookonce.receiver.ledger.states import EventStatus

_TRANSFER_COMMANDS = ("export", "import")


class _Events(click.Group):
    """Knows the commands that move events by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_TRANSFER_COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _TRANSFER_COMMANDS:
            return super().get_command(ctx, cmd_name)
        from hookonce.receiver.cli.commands.transfer import export, import_  # a listing starts sooner without

        return export if cmd_name == "export" else import_


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
@AS_JSON
def list_(limit: int, *, is_grouped: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401  options
    """List events, newest first.

    With --status dead it says which handlers they died of, and why.
    """
    wanted = chosen(options)
    is_dead = wanted.status == EventStatus.DEAD
    if is_grouped and not is_dead:
        raise click.UsageError("--group is for what died; add --status dead")
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
    if not events:
        _say_empty(wanted)
    elif sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        for line in event_lines.lines(events, deaths, width, datetime.now(UTC)):
            click.echo(line)
    else:
        _print_table(events, deaths, with_deaths=is_dead)
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


def _print_table(events: list[EventRow], deaths: dict[int, list[Death]], *, with_deaths: bool) -> None:
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
        _say_empty(wanted)
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


def _say_empty(wanted: Filter) -> None:
    """Say that nothing was found, and what to do about it."""
    if wanted == Filter():
        click.echo("no event yet; `hookonce trigger SOURCE` sends one", err=True)
    elif wanted == Filter(status=EventStatus.DEAD):
        click.echo("no event is dead", err=True)
    else:
        click.echo("no event matches; without options `hookonce events list` shows all", err=True)
    doubt(wanted.source)


@events.command("show", epilog=examples("hookonce events show 12", "hookonce events show evt_1Nxy --raw"))
@click.argument("reference", metavar="ID", shell_complete=completion_types.EVENTS)
@click.option("--raw", is_flag=True, help="Write the body to stdout, byte for byte, and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; `data` is what handlers get.")
def show_(reference: str, *, raw: bool, as_json: bool) -> None:
    """Show an event, and why its runs failed.

    ID is the ledger id, source:event_id, or how a sender's id begins.
    """
    settings = configured()
    with ledger(settings) as connection:
        number = event_lookup.find(connection, reference)
        found = None if number is None else event_queries.detail(connection, number, settings.keyring)
    if found is None:
        raise NotFound(
            f"no event is {reference!r}; expected a ledger id, source:event_id, or how a sender's id begins, "
            "see `hookonce events list`"
        )
    if raw:
        if found.body is None:
            raise NotFound(f"the body of event {found.event.id} {found.why_no_body}; only its row is left")
        click.echo(found.body.body, nl=False)
    elif as_json:
        source = settings.sources.get(found.event.source)
        print_json(_document(found, source.provider if source else None))
    else:
        for line in event_page.lines(found, datetime.now(UTC)):
            click.echo(line)


def _document(found: Detail, provider: Provider | None) -> dict[str, Any]:
    body = found.body
    return {
        **asdict(found.event),
        "url": body.url if body else None,
        "headers": body.headers if body else None,
        **document_body("body", None if body is None or body.unreadable else body.body),
        "data": _data(found, provider),
        "unreadable": body.unreadable if body else None,
        "runs": [asdict(run) for run in found.runs],
        "steps": [asdict(step) for step in found.steps],
        "failures": [
            {**each, "frames": each["frames"] and asdict(each["frames"])} for each in found.failures
        ],
        "conflicts": [
            {**conflict, "body": None, **document_body("body", conflict["body"])}
            for conflict in found.conflicts
        ],
        "repeats": found.repeats,
    }


def _data(found: Detail, provider: Provider | None) -> Any:  # noqa: ANN401  whatever the sender sent
    """Return the payload as handlers get it; None where it can't be read."""
    body = found.body
    if body is None or body.unreadable:
        return None
    if provider is not None and not body.is_element:
        try:
            return provider.events(Delivery("POST", body.url, body.headers, body.body))[0].data
        except Exception:  # noqa: BLE001  a provider of somebody's own, maybe
            return None
    try:
        return json.loads(body.body)
    except (ValueError, RecursionError):
        return None
