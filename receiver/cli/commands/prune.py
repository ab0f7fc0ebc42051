"""`hookonce prune`: deletes data past its retention."""

from collections.abc import Mapping
from typing import Any

from hookonce.receiver.cli.action_command import planned
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.desk.maintenance import prune as prune_action
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.rows import Pruned


def _show(gone: Pruned) -> None:
    days = (
        f"the bodies of {counted(len(gone.days), 'day')} ({', '.join(gone.days)})"
        if gone.days
        else "no bodies"
    )
    logs = f"{gone.rejected} rejected deliveries, {gone.audit} lines of the audit"
    tell(f"{'to delete' if gone.dry_run else 'deleted'}: {counted(gone.events, 'event')}, {logs}, {days}")
    if gone.needed:
        tell(f"stay, since an event of that day is yet to be handled: {', '.join(gone.needed)}")


def _then(_here: Asks, _models: Mapping[str, Any], gone: Pruned) -> object:
    if gone.busy:
        tell(f"busy, run again: {', '.join(gone.busy)}")
    return gone.busy


prune = planned(
    prune_action,
    _show,
    then=_then,
    name="prune",
    about="""Delete old ledger rows, whole days of bodies, old rejected deliveries and old lines of the audit.

    Retention is set by keep_events (90d), keep_bodies (30d), keep_rejected (7d) and keep_audit (365d) under [receiver].
    Events that are received, running, waiting or held stay. The sweep prunes all day long, unless [receiver]
    auto_prune = false. It may be stopped at any moment; exit 3 if a day could not be dropped. While the clock of the
    database is not trusted, since it leapt, nothing is deleted.
    """,
)
