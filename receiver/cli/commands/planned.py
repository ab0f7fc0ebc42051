"""Commands that show a plan and then do what it shows: `hookonce events discard` and `erase`, `prune`, `reverify`."""

from collections.abc import Mapping
from typing import Any

import click

from hookonce.receiver.cli.action_command import planned
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import confirm, tell
from hookonce.receiver.cli.output.words import counted, counted_events
from hookonce.receiver.cli.plans import YES, plans_of, summed
from hookonce.receiver.cli.replay.named import report_left
from hookonce.receiver.desk.dead_letters import Discards, discard_events
from hookonce.receiver.desk.maintenance import Erased, erase_events
from hookonce.receiver.desk.maintenance import prune as prune_action
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.rejected import ReverifyResponse, reverify_source
from hookonce.receiver.desk.rows import Pruned


def _show_discards(found: Discards) -> None:
    discarded = counted_events([each.id for each in found.discarded])
    tell(f"{'to discard' if found.dry_run else 'discarded'}: {discarded}")


def _then_discards(_here: Asks, _models: Mapping[str, Any], done: Discards) -> object:
    report_left(done)
    return done.running or done.ended or done.unknown or done.unknown_names


discard = planned(
    discard_events,
    _show_discards,
    then=_then_discards,
    left_alone=("running", "ended"),
    name="discard",
    about="""Discard events that are never to run: dead, held or waiting ones. A replay undoes it.

    Discarded events are no longer counted as dead and raise no alert; a late copy is still a duplicate. Name events by
    ID, or choose all that match the options. With --handler only the runs of that handler are discarded. Running events
    and those that have ended are left alone. Exit 3 if some were, or are not in the ledger.
    """,
    epilog=examples(
        "hookonce events discard --status dead --issue 1f0c2a9be477",
        "hookonce events discard 12 stripe:evt_1Nxy",
        "hookonce events discard 12 --handler shop.credit",
    ),
)
YES(discard)


def _said_of(found: Erased) -> str:
    said = counted_events(found.erased)
    if found.refused:
        said += f" and {counted(found.refused, 'rejected delivery', 'rejected deliveries')}"
    return said


def _show_erased(found: Erased) -> None:
    tell(f"{'to erase' if found.dry_run else 'erased'}: {_said_of(found)}")


def _ask(plan: Erased) -> None:
    confirm(f"{_said_of(plan)} would be erased, for ever", "erase them")


def _then_erased(here: Asks, models: Mapping[str, Any], done: Erased) -> object:
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
        tell(f"a second look finds {_said_of(left)}")
    is_found = is_looked_for and (left.erased or left.refused)
    return done.open or done.unknown or done.unknown_names or left.closed or is_found


erase = planned(
    erase_events,
    _show_erased,
    then=_then_erased,
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
    epilog=examples(
        "hookonce events erase --body ada@example.com",
        "hookonce events erase --where '$.data.object.customer=cus_1' --dry-run",
        "hookonce events erase 12 stripe:evt_1Nxy",
    ),
)
YES(erase)


def _show_pruned(gone: Pruned) -> None:
    days = (
        f"the bodies of {counted(len(gone.days), 'day')} ({', '.join(gone.days)})"
        if gone.days
        else "no bodies"
    )
    logs = f"{gone.rejected} rejected deliveries, {gone.audit} lines of the audit"
    tell(f"{'to delete' if gone.dry_run else 'deleted'}: {counted(gone.events, 'event')}, {logs}, {days}")
    if gone.needed:
        tell(f"stay, since an event of that day is yet to be handled: {', '.join(gone.needed)}")


def _then_pruned(_here: Asks, _models: Mapping[str, Any], gone: Pruned) -> object:
    if gone.busy:
        tell(f"busy, run again: {', '.join(gone.busy)}")
    return gone.busy


prune = planned(
    prune_action,
    _show_pruned,
    then=_then_pruned,
    name="prune",
    about="""Delete old ledger rows, whole days of bodies, old rejected deliveries and old lines of the audit.

    Retention is set by keep_events (90d), keep_bodies (30d), keep_rejected (7d) and keep_audit (365d) under [receiver].
    Events that are received, running, waiting or held stay. The sweep prunes all day long, unless [receiver]
    auto_prune = false. It may be stopped at any moment; exit 3 if a day could not be dropped. While the clock of the
    database is not trusted, since it leapt, nothing is deleted.
    """,
)


def _show_reverified(done: ReverifyResponse) -> None:
    taken = "would be taken in" if done.dry_run else "taken in"
    counts = "" if done.dry_run else f" ({done.accepted} events new, {done.duplicates} known)"
    tell(f"{done.looked_at} deliveries looked at, {done.genuine} {taken}{counts}")
    if done.empty:
        tell(f"{done.empty} are genuine and hold no event")
    for reason, count in sorted(done.refused.items()):
        tell(f"{count} refused again: {reason}")
    if done.unopened:
        tell(f"{done.unopened} could not be opened: their key is not configured here, or they were changed")


def _then_reverified(_here: Asks, models: Mapping[str, Any], done: ReverifyResponse) -> object:
    if not done.keeps and not done.looked_at:
        source = models["which"].source
        tell(f"source '{source}' keeps none of what it refuses; `quarantine = true` in its table would")
    return done.unopened


reverify = planned(
    reverify_source,
    _show_reverified,
    then=_then_reverified,
    name="reverify",
    about="""Check what SOURCE rejected and kept in quarantine again, and take in what is genuine.

    Each delivery is checked as of its arrival, with the secrets of this environment. What fails stays in quarantine.
    Exit 3 if a delivery could not be opened.
    """,
)
