"""`hookonce prune`: deletes data past its retention."""

import sys

import click

from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.cli.plans import DRY_RUN, carried_out
from hookonce.receiver.desk.maintenance import PruneRequest
from hookonce.receiver.desk.maintenance import prune as prune_action
from hookonce.receiver.desk.rows import Pruned


@click.command()
@DRY_RUN
@click.option("--trust-clock", is_flag=True, help="Prune although the clock leapt: it is right now.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def prune(*, dry_run: bool, trust_clock: bool, as_json: bool) -> None:
    """Delete old ledger rows, whole days of bodies, old rejected deliveries and old lines of the audit.

    Horizons are keep_events (90d), keep_bodies (30d), keep_rejected (7d) and keep_audit (365d) under [receiver].
    Whatever is received, running, waiting or held stays. The sweep does the same all day long, unless [receiver]
    auto_prune = false. It may be stopped at any moment; exit 3 if a day could not be dropped. While the clock of the
    database is not trusted, since it leapt, nothing goes.
    """
    asked = PruneRequest(trust_clock=trust_clock)
    with desk() as here:
        gone = carried_out(here, prune_action, _print, dry_run=dry_run, as_json=as_json, asked=asked)
    if gone.busy:
        tell(f"busy, run again: {', '.join(gone.busy)}")
        sys.exit(Exit.PARTIAL)


def _print(gone: Pruned) -> None:
    days = (
        f"the bodies of {counted(len(gone.days), 'day')} ({', '.join(gone.days)})"
        if gone.days
        else "no bodies"
    )
    logs = f"{gone.rejected} rejected deliveries, {gone.audit} lines of the audit"
    tell(f"{'would go' if gone.dry_run else 'gone'}: {counted(gone.events, 'event')}, {logs}, {days}")
    if gone.needed:
        tell(f"stay, since an event of that day is yet to be handled: {', '.join(gone.needed)}")
