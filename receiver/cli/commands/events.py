"""`hookonce events`: what came, and what became of it."""

from importlib import import_module
from types import ModuleType
from typing import Any

import click

from hookonce.receiver.cli.desk import desk, pages
from hookonce.receiver.cli.event_listing import document, print_events
from hookonce.receiver.cli.options.event_options import AS_JSON, choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.desk.listed_events import ListedEvent, list_events
from hookonce.receiver.ledger.states import EventStatus

_ELSEWHERE = {
    "conflicts": "rejected:conflicts",
    "diff": "listings:diff",
    "discard": "planned:discard",
    "edit": "edit_event:edit",
    "erase": "planned:erase",
    "export": "transfer:export",
    "forget-window": "listings:forget",
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
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(0), help="At most so many; 0 = all."
)
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
    if is_grouped:
        _further().group(given, as_json=as_json)
    elif is_search:
        _further().search({**given, "text": text, "where": where}, limit, as_json=as_json)
    else:
        _list(given, limit, as_json=as_json)


def _list(given: dict[str, Any], limit: int, *, as_json: bool) -> None:
    """Print the events that match; as JSON each page as it comes."""
    rows: list[ListedEvent] = []
    hint = None
    with desk() as here:
        for page in pages(here, list_events, {**given, "limit": limit}):
            hint = page.hint
            if as_json:
                for event in page.data:
                    print_json(document(event, given))
            else:
                rows += page.data
    if as_json:
        return
    print_events(rows, given, hint)
    if limit and len(rows) == limit:
        tell(f"the newest {limit}; --limit 0 gives all")


def _further() -> ModuleType:
    """Return the module of other listings, without which this one starts sooner."""
    return import_module(f"{__package__}.asked_events")
