"""`hookonce events erase`: what is known of a person, of named events or of all that a filter or a text finds."""

import sys
from typing import Any

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import confirm, tell
from hookonce.receiver.cli.output.words import counted, counted_events
from hookonce.receiver.cli.plans import DRY_RUN, YES, carried_out, planned, summed
from hookonce.receiver.cli.replay.named import report_left
from hookonce.receiver.desk.maintenance import Erased, ErasureRequest, erase_events


@click.command(
    epilog=examples(
        "hookonce events erase --body ada@example.com",
        "hookonce events erase --where '$.data.object.customer=cus_1' --dry-run",
        "hookonce events erase 12 stripe:evt_1Nxy",
    )
)
@click.argument("references", metavar="ID…", nargs=-1, shell_complete=completion_types.EVENTS)
@choosing
@click.option(
    "--body", "text", metavar="TEXT", help="Only what holds this text anywhere; rejected deliveries too."
)
@click.option("--where", metavar="$.PATH=VALUE", help="Only with this value there in the body.")
@DRY_RUN
@YES
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def erase(
    references: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401  those of a filter
) -> None:
    """Erase what events that have ended hold of people.

    That is bodies, headers, errors, logs and results. Their ids stay, so that a late copy is still a duplicate; they
    can't be replayed any more, and dead ones are discarded. What your handlers wrote is in your tables. Name events by
    ID, or choose all that match the options: killed, it goes on when you repeat the command. A second look then says
    what is left. Exit 3 if some are yet to be handled, are not in the ledger, or can't be opened.
    """
    given = given_of(options) | {
        name: options[name] for name in ("text", "where") if options[name] is not None
    }
    asked = asking(ErasureRequest, **given, events=list(references))
    how: dict[str, Any] = {"dry_run": dry_run, "as_json": as_json, "left_alone": ["open"]}
    with desk() as here:
        left = done = carried_out(here, erase_events, _show, ask=None if yes else _ask, **how, asked=asked)
        if is_looked_for := bool(given) and not done.dry_run:
            left = summed([each.shown for each in planned(here, erase_events, asked=asked)])
    report_left(done)
    if left.closed:
        tell(
            f"{left.closed} texts can't be decrypted here, and were not looked into; run it where the keys are"
        )
    if is_looked_for:
        tell(f"a second look finds {_told(left)}")
    if (
        done.open
        or done.unknown
        or done.unknown_names
        or left.closed
        or (is_looked_for and (left.erased or left.refused))
    ):
        sys.exit(Exit.PARTIAL)


def _show(found: Erased) -> None:
    tell(f"{'would be erased' if found.dry_run else 'erased'}: {_told(found)}")


def _ask(plan: Erased) -> None:
    confirm(f"{_told(plan)} would be erased, for ever", "erase them")


def _told(found: Erased) -> str:
    said = counted_events(found.erased)
    if found.refused:
        said += f" and {counted(found.refused, 'rejected delivery', 'rejected deliveries')}"
    return said
