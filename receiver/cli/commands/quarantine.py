"""`hookonce quarantine` and `hookonce reverify`: what was refused and kept whole, and another chance for it."""

import sys
from collections import deque
from dataclasses import asdict
from datetime import UTC, datetime

import click

from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.connections import configured, ledger, operator
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.intake import reverification
from hookonce.receiver.intake.reverification import Reverified
from hookonce.receiver.ledger.quarantine import holdings


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def quarantine(*, as_json: bool) -> None:
    """Say what is in quarantine, by source and reason. `hookonce reverify` checks it again."""
    with ledger() as connection:
        found = [asdict(one) for one in holdings(connection)]
    if as_json:
        for one in found:
            print_json(one)
        return
    columns = ("source", "reason", "count", "bytes", "oldest", "newest")
    show(
        columns,
        [[one[name] for name in columns] for one in found],
        empty="nothing is in quarantine; `quarantine = true` in a source's table keeps what it rejects",
    )


@click.command()
@click.argument("source")
@click.option("--since", type=SINCE, help="Only what came since: 90s, 15m, 2h, 7d, today, 2026-01-31.")
@click.option("--dry-run", is_flag=True, help="Only say what would be taken in.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def reverify(source: str, since: datetime | None, *, dry_run: bool, as_json: bool) -> None:
    """Check what SOURCE rejected and kept in quarantine again, and take in what is genuine.

    Each delivery is checked as of its arrival, with the secrets of this environment. What fails stays in quarantine.
    Exit 3 if a delivery could not be opened.
    """
    settings = configured()
    known = local_sources.source(settings, source)
    since = since or datetime.min.replace(tzinfo=UTC)
    with ledger(settings) as connection:
        steps = deque(
            reverification.reverify(settings, connection, known, since, operator(), dry_run=dry_run), maxlen=1
        )
    done = steps[0] if steps else Reverified()
    if known.quarantine is None and not done.looked_at:
        click.echo(
            f"source '{source}' keeps none of what it refuses; `quarantine = true` in its table would",
            err=True,
        )
    if as_json:
        print_json({**asdict(done), "looked_at": done.looked_at, "dry_run": dry_run})
    else:
        _print_result(done, dry_run=dry_run)
    if done.unopened:
        sys.exit(Exit.PARTIAL)


def _print_result(done: Reverified, *, dry_run: bool) -> None:
    taken = "would be taken in" if dry_run else "taken in"
    counts = "" if dry_run else f" ({done.accepted} events new, {done.duplicates} known)"
    click.echo(f"{done.looked_at} deliveries looked at, {done.genuine} {taken}{counts}", err=True)
    if done.empty:
        click.echo(f"{done.empty} are genuine and hold no event", err=True)
    for reason, count in sorted(done.refused.items()):
        click.echo(f"{count} refused again: {reason}", err=True)
    if done.unopened:
        click.echo(
            f"{done.unopened} could not be opened: their key is not configured here, or they were changed",
            err=True,
        )
