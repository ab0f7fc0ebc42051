"""`hookonce replay`: run stored events again, or release held ones."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import psycopg

from hookonce.receiver.cli.commands.bulk_replays import replays
from hookonce.receiver.cli.connections import at, configured, ledger, notify_workers, operator
from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import choosing, chosen, doubt
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.rate_option import Rate
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.replay import distant, named, question
from hookonce.receiver.cli.replay.bulk import DRIVER, BulkRun
from hookonce.receiver.cli.replay.outcomes import ReplayReport
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import bulk as bulk_replays
from hookonce.receiver.ledger.replay.bulk import Bulk


@click.command(
    epilog=examples(
        "hookonce replay 12 stripe:evt_1Nxy",
        "hookonce replay --status dead --since 2h --dry-run",
        "hookonce replay --status dead --source stripe --rate 20/s",
    )
)
@click.argument("references", metavar="ID…", nargs=-1, shell_complete=completion_types.EVENTS)
@choosing
@click.option("--limit", default=0, type=click.IntRange(0), help="The oldest so many; 0 = all.")
@click.option("--rate", type=Rate(), help="No faster than this: 20/s, 600/m.")
@click.option(
    "--forget-step",
    "forget",
    metavar="NAME",
    multiple=True,
    help="Repeat this step of its handlers; may be repeated.",
)
@click.option("--again", is_flag=True, help="Also what is done: its handlers run once more.")
@click.option("--seen", metavar="VIEW", help="With --again: only if what is done is what was shown.")
@click.option("--dry-run", is_flag=True, help="Only say what would be replayed.")
@click.option(
    "--continue", "number", type=int, metavar="NUMBER", help="Continue a bulk replay that was stopped."
)
@click.option("--list", "listing", is_flag=True, help="List the bulk replays, newest first.")
@click.option(
    "--wait/--no-wait", default=None, help="Wait until all have ended, or for none; default: on a terminal."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event.")
def replay(  # options
    references: tuple[str, ...],
    *,
    as_json: bool,
    listing: bool,
    number: int | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Run events again: new attempts under the same idempotency key; held events are released.

    What steps of their handlers gave (event.step) is used again, unless --forget-step names them.
    Name events by ID (ledger id, source:event_id, or how a sender's id begins), or choose all that match the
    options. Handlers of a named event that are done stay so unless you say --again. Ctrl-C stops a bulk replay where
    it is; killed, it is finished by the sweep. Exit 3 if some were left alone or died again, 4 if there is no such
    event.
    """
    wanted = chosen(options)
    _require_sense(references, wanted, number, options, listing=listing)
    if listing:
        click.get_current_context().invoke(replays, limit=50, as_json=as_json)
    elif references:
        with desk() as here:
            if options["dry_run"]:
                named.preview(here, references, as_json=as_json)
            else:
                how = named.How(options["forget"], options["again"], options["seen"], as_json=as_json)
                named.replay(here, references, how)
    elif at():
        with desk() as here:
            distant.replay(here, wanted, number, options, as_json=as_json)
    else:
        settings = configured()
        with ledger(settings) as connection:
            bulk = (
                _start_bulk_replay(connection, wanted, options, as_json=as_json)
                if number is None
                else _resume_bulk_replay(connection, number, options)
            )
            if bulk:
                _replay_all(settings, connection, bulk, as_json=as_json, wait=options["wait"])


def _require_sense(
    references: Sequence[str],
    wanted: Filter,
    number: int | None,
    options: dict[str, Any],
    *,
    listing: bool,
) -> None:
    """Refuse options that contradict each other, or would do nothing."""
    ways = [bool(references), wanted != Filter(), number is not None, listing]
    if sum(ways) != 1 or (options["limit"] and not ways[1]):
        raise click.UsageError(
            "name events by ID, or choose them with --status, --source, --type, --since …; not both and not neither"
        )
    if references and (options["rate"] or options["wait"]):
        raise click.UsageError(
            "--rate and --wait are for events chosen by options, not by ID; leave them out"
        )
    if options["forget"] and not references:
        raise click.UsageError(
            "--forget-step is for events that are named by ID: it does again what was done"
        )
    if options["seen"] and not options["again"]:
        raise click.UsageError("--seen says which runs may run --again; add that")
    if options["again"] and not references:
        raise click.UsageError(
            "--again is for events that are named by ID; choose what is done with --status done"
        )
    if number is not None and options["dry_run"]:
        raise click.UsageError(
            "--continue replays; leave out --dry-run, `hookonce replay --list` shows what is left"
        )


def _start_bulk_replay(
    connection: psycopg.Connection, wanted: Filter, options: dict[str, Any], *, as_json: bool
) -> Bulk | None:
    """Say what matches, ask, and begin; None where nothing is to be done."""
    kinds = bulk_replays.counts(connection, wanted)
    if not kinds:
        doubt(wanted.source)
    chosen = question.ask(kinds, options, as_json=as_json)
    if chosen is None:
        return None
    with connection.transaction():
        bulk = bulk_replays.start(
            connection, wanted, operator(), options["rate"], limit=options["limit"], driver=DRIVER
        )
        if bulk.matched > chosen:
            raise click.ClickException(question.has_grown(bulk.matched, chosen))
    return bulk


def _resume_bulk_replay(connection: psycopg.Connection, number: int, options: dict[str, Any]) -> Bulk | None:
    bulk = bulk_replays.get(connection, number)
    if bulk is None:
        raise NotFound(f"no bulk replay has number {number}; `hookonce replays` shows all")
    if not bulk_replays.go_on(connection, number, operator(), options["rate"], driver=DRIVER):
        click.echo(f"bulk replay {number} is complete; nothing to do", err=True)
        return None
    return bulk_replays.get(connection, number)


def _replay_all(
    settings: Settings, connection: psycopg.Connection, bulk: Bulk, *, as_json: bool, wait: bool | None
) -> None:
    if wait is None and not sys.stderr.isatty():
        wait = False
    report = ReplayReport(as_json=as_json)
    driver = BulkRun(settings, connection, bulk, partial(notify_workers, settings))
    driver.run(report.take, wait=wait)
    report.finish()
    bulk = driver.bulk
    click.echo(f"bulk replay {bulk.id}: {driver.summary}, of {bulk.matched} that matched", err=True)
    if not bulk.is_complete:
        click.echo(f"stopped; continue with `hookonce replay --continue {bulk.id}`", err=True)
        sys.exit(Exit.PARTIAL)
    if not report.is_whole:
        sys.exit(report.exit)
    if driver.progress.dead:
        sys.exit(Exit.PARTIAL)
