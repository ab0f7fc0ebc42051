"""`hookonce events erase`: what is known of a person, of named events or of all that a filter or a text finds."""

from collections.abc import Mapping

import click

from hookonce.receiver.cli.action_command import YES, planned
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import confirm, tell
from hookonce.receiver.cli.output.words import counted, counted_events
from hookonce.receiver.cli.plans import plans_of, summed
from hookonce.receiver.cli.replay.named import report_left
from hookonce.receiver.desk.maintenance import Erased, ErasureRequest, erase_events
from hookonce.receiver.desk.registry import Asks


def _told(found: Erased) -> str:
    said = counted_events(found.erased)
    if found.refused:
        said += f" and {counted(found.refused, 'rejected delivery', 'rejected deliveries')}"
    return said


def _show(found: Erased) -> None:
    tell(f"{'to erase' if found.dry_run else 'erased'}: {_told(found)}")


def _ask(plan: Erased) -> None:
    confirm(f"{_told(plan)} would be erased, for ever", "erase them")


def _then(here: Asks, models: Mapping[str, ErasureRequest], done: Erased) -> object:
    """Tell what was left alone, and what a second look finds."""
    report_left(done)
    left = done
    if is_looked_for := not (models["asked"].events or done.dry_run):
        left = summed([each.shown for each in plans_of(here, erase_events, **models)])
    if left.closed:
        tell(
            f"{left.closed} texts can't be decrypted here, and were not looked into; run it where the keys are"
        )
    if is_looked_for:
        tell(f"a second look finds {_told(left)}")
    is_found = is_looked_for and (left.erased or left.refused)
    return done.open or done.unknown or done.unknown_names or left.closed or is_found


erase = planned(
    erase_events,
    _show,
    then=_then,
    ask=_ask,
    left_alone=("open",),
    name="erase",
    about="""Erase personal data from events that have ended.

    That is bodies, headers, errors, logs and results. Their ids stay, so that a late copy is still a duplicate; they
    can't be replayed any more, and dead ones are discarded. What your handlers wrote is in your tables. Name events by
    ID, or choose all that match the options: killed, it goes on when you repeat the command. A second look then says
    what is left. Exit 3 if some are yet to be handled, are not in the ledger, or can't be opened.
    """,
    instead={
        "text": click.Option(
            ["--body", "text"],
            metavar="TEXT",
            help="Only what holds this text anywhere; rejected deliveries too.",
        ),
        "refused_until": None,
    },
    more=[YES],
    epilog=examples(
        "hookonce events erase --body ada@example.com",
        "hookonce events erase --where '$.data.object.customer=cus_1' --dry-run",
        "hookonce events erase 12 stripe:evt_1Nxy",
    ),
)
