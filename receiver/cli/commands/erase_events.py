"""`hookonce events erase`: what is known of a person, of named events or of all that a filter or a text finds."""

import sys
from datetime import UTC, datetime
from typing import Any

import click

from hookonce.receiver.cli.desk import all_steps, asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import confirm, tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.cli.output.words import counted, counted_events
from hookonce.receiver.cli.replay.named import report_unknown
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
@click.option("--dry-run", is_flag=True, help="Only say what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask.")
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
    asked = asking(ErasureRequest, **given, events=list(references), dry_run=True)
    began = datetime.now(UTC)
    with desk() as here:
        found = left = all_steps(here, erase_events, asked)
        if (found.erased or found.refused) and not dry_run:
            if not yes:
                confirm(f"{_told(found)} would be erased, for ever", "erase them")
            bounds = _bounds(asked, found, began) if given else {}
            found = all_steps(here, erase_events, asked.model_copy(update={"dry_run": False, **bounds}))
            left = all_steps(here, erase_events, asked) if given else found
    if as_json:
        print_json(found.model_dump(exclude={"next"}))
    else:
        tell(f"{'would be erased' if found.dry_run else 'erased'}: {_told(found)}")
    if found.open:
        tell(f"left alone, since they are yet to be handled: {', '.join(map(str, found.open))}")
    if left.closed:
        tell(
            f"{left.closed} texts can't be decrypted here, and were not looked into; run it where the keys are"
        )
    if left is not found:
        tell(f"a second look finds {_told(left)}")
    unknown = [*found.unknown_names, *map(str, found.unknown)]
    report_unknown(unknown, is_all=len(unknown) == len(references) > 0)
    if found.open or unknown or left.closed or (left is not found and (left.erased or left.refused)):
        sys.exit(Exit.PARTIAL)


def _bounds(asked: ErasureRequest, found: Erased, began: datetime) -> dict[str, Any]:
    """Return what keeps an erasure by a filter from events and rejected deliveries that came after the count."""
    newest = max((*found.erased, *found.open), default=0)
    return {"cursor": newest + 1, "until": min(asked.until or began, began)}


def _told(found: Erased) -> str:
    said = counted_events(found.erased)
    return (
        f"{said} and {counted(found.refused, 'rejected delivery', 'rejected deliveries')}"
        if found.refused
        else said
    )
