"""`hookonce events erase`: what is known of a person, event by event."""

import sys

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import confirm, tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.cli.replay.named import report_unknown
from hookonce.receiver.desk.maintenance import ErasureRequest, erase_events


@click.command(epilog=examples("hookonce events erase 12 stripe:evt_1Nxy --dry-run"))
@click.argument("references", metavar="ID…", nargs=-1, required=True, shell_complete=completion_types.EVENTS)
@click.option("--dry-run", is_flag=True, help="Only say which would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def erase(references: tuple[str, ...], *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase what events that have ended hold of people.

    That is bodies, headers, errors, logs and results. Their ids stay, so that a late copy is still a duplicate; they
    can't be replayed any more. What your handlers wrote is in your tables. `hookonce events list --body TEXT` finds the
    events of a person. Exit 3 if some are yet to be handled, or are not in the ledger.
    """
    with desk() as here:
        asked = asking(ErasureRequest, events=list(references), dry_run=True)
        found = here.ask(erase_events, asked=asked)
        if found.erased and not dry_run:
            if not yes:
                confirm(f"{len(found.erased)} of {len(references)} would be erased, for ever", "erase them")
            found = here.ask(erase_events, asked=asked.model_copy(update={"dry_run": False}))
    if as_json:
        print_json(found.model_dump())
    elif found.erased:
        tell(f"{'would be erased' if dry_run else 'erased'}: {', '.join(map(str, found.erased))}")
    if found.open:
        tell(f"left alone, since they are yet to be handled: {', '.join(map(str, found.open))}")
    unknown = [*found.unknown_names, *map(str, found.unknown)]
    report_unknown(unknown, is_all=len(unknown) == len(references))
    if found.open or unknown:
        sys.exit(Exit.PARTIAL)
