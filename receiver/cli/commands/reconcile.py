"""`hookonce reconcile`: asks a source's sender at once what it sent, and has what is missing come."""

import sys
from datetime import UTC, datetime

import click

from hookonce.providers.kit.calls import CallFailed
from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import cell, show
from hookonce.receiver.config.suggestions import no_source
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.intake.sender_api.reconciling import FIRST
from hookonce.receiver.intake.sender_api.rounds import Rounds


@click.command()
@click.argument("source")
@click.option("--since", type=SINCE, help="Ask for what was sent since: 2h, 2d, today, 2026-01-31.")
@click.option("--dry-run", is_flag=True, help="Only list what is missing.")
def reconcile(source: str, since: datetime | None, *, dry_run: bool) -> None:
    """Ask the sender of SOURCE what it sent, and have what is missing come.

    The key of its API is looked up in this process. Exit 1 where the sender could not be asked.
    """
    settings = configured()
    if source not in settings.sources:
        raise NotFound(no_source(source, settings.sources))
    chosen = settings.sources[source]
    rounds, left = Rounds(settings), 0
    try:
        with ledger(settings) as connection:
            reconciler = rounds.reconciler(chosen)
            if dry_run:
                found = reconciler.preview(connection, since or datetime.now(UTC) - FIRST)
                rows = [(cell(each.listed_at), each.event_id, each.type, each.why) for each in found]
                show(("listed at", "id", "type", "why"), rows, empty="nothing is missing")
                return
            failed = rounds.reconcile(connection, source, since, eager=True)
            left = rounds.left(connection, source)
    except CallFailed as error:
        failed = str(error)
    finally:
        rounds.close()
    if failed:
        tell(f"source '{source}': {failed}")
        sys.exit(Exit.FAILURE)
    tell(
        f"compared; {left} missing: asked for again, and on their way"
        if left
        else "compared; nothing is missing"
    )
