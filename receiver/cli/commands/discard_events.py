"""`hookonce events discard`: events that are never to run, named ones or all that a filter finds."""

from collections.abc import Mapping
from typing import Any

from hookonce.receiver.cli.action_command import YES, planned
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.words import counted_events
from hookonce.receiver.cli.replay.named import report_left
from hookonce.receiver.desk.dead_letters import Discards, discard_events
from hookonce.receiver.desk.registry import Asks


def _show(found: Discards) -> None:
    discarded = counted_events([each.id for each in found.discarded])
    tell(f"{'to discard' if found.dry_run else 'discarded'}: {discarded}")


def _then(_here: Asks, _models: Mapping[str, Any], done: Discards) -> object:
    report_left(done)
    return done.running or done.ended or done.unknown or done.unknown_names


discard = planned(
    discard_events,
    _show,
    then=_then,
    left_alone=("running", "ended"),
    name="discard",
    about="""Discard events that are never to run: dead, held or waiting ones. A replay undoes it.

    Discarded events are no longer counted as dead and raise no alert; a late copy is still a duplicate. Name events by
    ID, or choose all that match the options. With --handler only the runs of that handler are discarded. Running events
    and those that have ended are left alone. Exit 3 if some were, or are not in the ledger.
    """,
    more=[YES],
    epilog=examples(
        "hookonce events discard --status dead --issue 1f0c2a9be477",
        "hookonce events discard 12 stripe:evt_1Nxy",
        "hookonce events discard 12 --handler shop.credit",
    ),
)
