"""`hookonce events discard`: events that are never to run, named ones or all that a filter finds."""

import sys
from typing import Any

import click

from hookonce.receiver.cli.desk import all_steps, asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.cli.output.words import counted_events
from hookonce.receiver.cli.replay.named import report_unknown
from hookonce.receiver.desk.dead_letters import DiscardRequest, discard_events


@click.command(
    short_help="Discard dead, held or waiting events.",
    epilog=examples(
        "hookonce events discard --status dead --issue 1f0c2a9be477",
        "hookonce events discard 12 stripe:evt_1Nxy",
        "hookonce events discard 12 --handler shop.credit",
    ),
)
@click.argument("references", metavar="ID…", nargs=-1, shell_complete=completion_types.EVENTS)
@choosing
@click.option("--dry-run", is_flag=True, help="Only show which events would be discarded.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def discard(
    references: tuple[str, ...],
    *,
    dry_run: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401  those of a filter
) -> None:
    """Discard events that are never to run: dead, held or waiting ones. A replay undoes it.

    Discarded events are no longer counted as dead and raise no alert; a late copy is still a duplicate. Name events by
    ID, or choose all that match the options. With --handler only the runs of that handler are discarded. Running events
    are left alone. Exit 3 if some were, or are not in the ledger.
    """
    asked = asking(DiscardRequest, **given_of(options), events=list(references), dry_run=dry_run)
    with desk() as here:
        found = all_steps(here, discard_events, asked)
    if as_json:
        print_json(found.model_dump(exclude={"next"}))
    else:
        discarded = counted_events([each.id for each in found.discarded])
        tell(f"{'would be discarded' if found.dry_run else 'discarded'}: {discarded}")
    if found.running:
        tell(f"left alone, since they are running: {counted_events(found.running)}")
    if found.ended:
        tell(f"left alone, since nothing of them is dead, held or waits: {counted_events(found.ended)}")
    unknown = [*found.unknown_names, *map(str, found.unknown)]
    report_unknown(unknown, is_all=len(unknown) == len(references) > 0)
    if found.running or unknown:
        sys.exit(Exit.PARTIAL)
