"""`hookonce prune`: let go of what has outlived its horizon."""

import sys
from dataclasses import asdict

import click

from receiver.cli.exits import Exit
from receiver.cli.servers import configured, ledger, operator
from receiver.cli.tables import print_json
from receiver.ledger import desk_prune
from receiver.ledger.desk_prune import Horizons


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def prune(*, dry_run: bool, as_json: bool) -> None:
    """Delete old ledger rows, whole days of bodies, and old rejected deliveries.

    Horizons are keep_events (90d), keep_bodies (30d) and keep_rejected (7d) under [receiver]. Whatever is
    received, running, waiting or held stays. Run it daily, at any hour; exit 3 if a day could not be dropped.
    """
    settings = configured()
    horizons = Horizons(settings.keep_events, settings.keep_bodies, settings.keep_rejected)
    with ledger(settings) as connection:
        gone = desk_prune.prune(connection, horizons, operator(), dry_run=dry_run)
    if as_json:
        print_json({**asdict(gone), "dry_run": dry_run})
    else:
        verb = "would go" if dry_run else "gone"
        click.echo(
            f"{verb}: {gone.events} events, {gone.rejected} rejected deliveries, {_days(gone.days)}", err=True
        )
        if gone.needed:
            click.echo(
                f"stay, since an event of that day is yet to be handled: {', '.join(gone.needed)}", err=True
            )
    if gone.busy:
        click.echo(f"busy, run again: {', '.join(gone.busy)}", err=True)
        sys.exit(Exit.PARTIAL)


def _days(names: list[str]) -> str:
    return f"the bodies of {len(names)} days ({', '.join(names)})" if names else "no bodies"
