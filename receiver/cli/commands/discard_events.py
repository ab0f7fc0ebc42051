"""`hookonce events discard`: events that are never to run, named ones or all that a filter finds."""

import sys
from typing import Any

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.words import counted_events
from hookonce.receiver.cli.plans import DRY_RUN, YES, carried_out
from hookonce.receiver.cli.replay.named import report_left
from hookonce.receiver.desk.dead_letters import DiscardRequest, Discards, discard_events


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
@DRY_RUN
@YES
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def discard(
    references: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,  # noqa: ARG001  a replay undoes it, so nothing is asked
    as_json: bool,
    **options: Any,  # noqa: ANN401  those of a filter
) -> None:
    """Discard events that are never to run: dead, held or waiting ones. A replay undoes it.

    Discarded events are no longer counted as dead and raise no alert; a late copy is still a duplicate. Name events by
    ID, or choose all that match the options. With --handler only the runs of that handler are discarded. Running events
    are left alone. Exit 3 if some were, or are not in the ledger.
    """
    asked = asking(DiscardRequest, **given_of(options), events=list(references))
    how: dict[str, Any] = {"dry_run": dry_run, "as_json": as_json, "left_alone": ["running", "ended"]}
    with desk() as here:
        done = carried_out(here, discard_events, _show, **how, asked=asked)
    report_left(done)
    if done.running or done.unknown or done.unknown_names:
        sys.exit(Exit.PARTIAL)


def _show(found: Discards) -> None:
    discarded = counted_events([each.id for each in found.discarded])
    tell(f"{'would be discarded' if found.dry_run else 'discarded'}: {discarded}")
