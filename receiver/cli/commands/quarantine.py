"""`hookonce rejected quarantine` and `hookonce reverify`: deliveries that were kept whole, verified again."""

import sys
from datetime import datetime

import click

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.plans import DRY_RUN, carried_out
from hookonce.receiver.desk.rejected import (
    ReverifyRequest,
    ReverifyResponse,
    list_quarantine,
    reverify_source,
)
from hookonce.receiver.desk.sources import SourcePath

quarantine = listing(
    list_quarantine,
    "source reason count bytes oldest newest",
    "nothing is in quarantine; `quarantine = true` in a source's table keeps what it rejects",
    name="quarantine",
    about="Say what is in quarantine, by source and reason. `hookonce reverify` checks it again.",
)


@click.command()
@click.argument("source")
@click.option("--since", type=SINCE, help="Only what came since: 90s, 15m, 2h, 7d, today, 2026-01-31.")
@DRY_RUN
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def reverify(source: str, since: datetime | None, *, dry_run: bool, as_json: bool) -> None:
    """Check what SOURCE rejected and kept in quarantine again, and take in what is genuine.

    Each delivery is checked as of its arrival, with the secrets of this environment. What fails stays in quarantine.
    Exit 3 if a delivery could not be opened.
    """
    with desk() as here:
        which, asked = asking(SourcePath, source=source), ReverifyRequest(since=since)
        done = carried_out(
            here, reverify_source, _print_result, dry_run=dry_run, as_json=as_json, which=which, asked=asked
        )
    if not done.keeps and not done.looked_at:
        tell(f"source '{source}' keeps none of what it refuses; `quarantine = true` in its table would")
    if done.unopened:
        sys.exit(Exit.PARTIAL)


def _print_result(done: ReverifyResponse) -> None:
    dry_run = done.dry_run
    taken = "would be taken in" if dry_run else "taken in"
    counts = "" if dry_run else f" ({done.accepted} events new, {done.duplicates} known)"
    tell(f"{done.looked_at} deliveries looked at, {done.genuine} {taken}{counts}")
    if done.empty:
        tell(f"{done.empty} are genuine and hold no event")
    for reason, count in sorted(done.refused.items()):
        tell(f"{count} refused again: {reason}")
    if done.unopened:
        tell(f"{done.unopened} could not be opened: their key is not configured here, or they were changed")
