"""`hookonce prune`: let go of what has outlived its horizon."""

import sys
import time
from dataclasses import asdict

import click
import psycopg
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hookonce.receiver.cli.connections import configured, ledger, operator
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.ledger.maintenance import steady_clock
from hookonce.receiver.ledger.maintenance.retention import Pruned, Retention, RetentionPass
from hookonce.receiver.ledger.maintenance.steady_clock import ClockHeld

PRUNE_BATCH = 250
"""Rows looked at in one transaction: few enough that no delivery waits long for the disk behind them."""
MAX_TRIES = 10
"""How often a day in use is tried."""


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--trust-clock", is_flag=True, help="Prune although the clock leapt: it is right now.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def prune(*, dry_run: bool, trust_clock: bool, as_json: bool) -> None:
    """Delete old ledger rows, whole days of bodies, old rejected deliveries and old lines of the audit.

    Horizons are keep_events (90d), keep_bodies (30d), keep_rejected (7d) and keep_audit (365d) under [receiver].
    Whatever is received, running, waiting or held stays. The sweep does the same all day long, unless [receiver]
    auto_prune = false. It may be stopped at any moment; exit 3 if a day could not be dropped. While the clock of the
    database is not trusted, since it leapt, nothing goes.
    """
    settings = configured()
    pruning = RetentionPass(
        Retention.of(settings),
        dry_run=dry_run,
        patience=MAX_TRIES,
        size=PRUNE_BATCH,
        trusts_clock=trust_clock,
    )
    with ledger(settings) as connection:
        if trust_clock:
            steady_clock.trust(connection, operator())
        try:
            _run(connection, pruning)
        except ClockHeld as error:
            raise click.ClickException(f"nothing is pruned: {error}") from None
        finally:
            pruning.audit(connection, operator())
    gone = pruning.done
    if as_json:
        print_json({**asdict(gone), "dry_run": dry_run})
    else:
        _print_result(gone, dry_run=dry_run)
    if gone.busy:
        tell(f"busy, run again: {', '.join(gone.busy)}")
        sys.exit(Exit.PARTIAL)


def _run(connection: psycopg.Connection, pruning: RetentionPass) -> None:
    """Take all steps, resting after each for as long as it took. A terminal shows how far they have come."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task("pruning", total=None)
        began = time.monotonic()
        for step in pruning.steps(connection):
            text = f"{pruning.done.events} events, {len(pruning.done.days)} days of bodies"
            bar.update(task, description=text, completed=step.passed, total=step.of or None)
            if not pruning.dry_run:
                time.sleep(time.monotonic() - began)
            began = time.monotonic()


def _print_result(gone: Pruned, *, dry_run: bool) -> None:
    verb = "would go" if dry_run else "gone"
    logs = f"{gone.rejected} rejected deliveries, {gone.audit} lines of the audit"
    tell(f"{verb}: {gone.events} events, {logs}, {_days(gone.days)}")
    if gone.needed:
        tell(f"stay, since an event of that day is yet to be handled: {', '.join(gone.needed)}")


def _days(names: list[str]) -> str:
    return f"the bodies of {len(names)} days ({', '.join(names)})" if names else "no bodies"
