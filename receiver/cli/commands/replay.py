"""`hookonce replay`: run stored events again, or release held ones."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import click
import psycopg

from hookonce.receiver.cli.connections import configured, ledger, notify_workers, operator
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import choosing, chosen, doubt
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.rate_option import Rate
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.cli.replay import named
from hookonce.receiver.cli.replay.bulk import DRIVER, BulkRun
from hookonce.receiver.cli.replay.outcomes import ReplayReport
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import bulk as bulk_replays
from hookonce.receiver.ledger.replay.bulk import Bulk

_KINDS = 8
"""Kinds of events named before the question; more are summed up."""


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
    help="Do this step of its handlers anew; may be repeated.",
)
@click.option("--again", is_flag=True, help="Also what is done: its handlers run once more.")
@click.option("--dry-run", is_flag=True, help="Only say what would be replayed.")
@click.option(
    "--continue", "number", type=int, metavar="NUMBER", help="Go on with a bulk replay that was stopped."
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
    settings = configured()
    with ledger(settings) as connection:
        if listing:
            _list(connection, as_json=as_json)
        elif references:
            if options["dry_run"]:
                named.preview(settings, connection, references, as_json=as_json)
            else:
                how = named.How(options["forget"], options["again"], as_json=as_json)
                named.replay(settings, connection, references, how)
        else:
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
    matching = sum(count for _, _, count in kinds)
    if not matching:
        doubt(wanted.source)
    chosen_ = min(matching, options["limit"] or matching)
    text = f"{matching} {'event matches' if matching == 1 else 'events match'}"
    if chosen_ < matching:
        text += f", the oldest {chosen_} of them are chosen"
    if options["dry_run"]:
        _show(kinds, as_json=as_json)
        click.echo(f"{text}; nothing was replayed", err=True)
        return None
    if not matching:
        click.echo(f"{text}; nothing to do", err=True)
        return None
    _ask(text, kinds, chosen_, yes=options["yes"])
    return bulk_replays.start(
        connection, wanted, operator(), options["rate"], limit=options["limit"], driver=DRIVER
    )


def _show(kinds: Sequence[tuple[str, str, int]], *, as_json: bool) -> None:
    if not as_json:
        show(("type", "status", "events"), kinds)
        return
    for kind, status, count in kinds:
        print_json({"type": kind, "status": status, "events": count})


def _ask(text: str, kinds: Sequence[tuple[str, str, int]], chosen_: int, *, yes: bool) -> None:
    click.echo(text, err=True)
    for kind, status, count in kinds[:_KINDS]:
        click.echo(f"  {count:>8}  {status:<8}  {clean(kind)}", err=True)
    if len(kinds) > _KINDS:
        click.echo(f"  {sum(count for _, _, count in kinds[_KINDS:]):>8}  of other kinds", err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"{text}; add --yes to replay them without being asked")
        click.confirm(f"replay {chosen_}?", abort=True, err=True)


def _resume_bulk_replay(connection: psycopg.Connection, number: int, options: dict[str, Any]) -> Bulk | None:
    bulk = bulk_replays.get(connection, number)
    if bulk is None:
        raise NotFound(f"no bulk replay has number {number}; `hookonce replay --list` shows all")
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
        click.echo(f"stopped; go on with `hookonce replay --continue {bulk.id}`", err=True)
        sys.exit(Exit.PARTIAL)
    if not report.is_whole:
        sys.exit(report.exit)
    if driver.progress.dead:
        sys.exit(Exit.PARTIAL)


def _list(connection: psycopg.Connection, *, as_json: bool) -> None:
    found = bulk_replays.listing(connection)
    if as_json:
        for bulk in found:
            print_json(asdict(bulk))
        return
    columns = ("number", "by", "started", "ended", "matched", "replayed", "left alone", "complete", "of")
    show(
        columns,
        [
            (
                b.id,
                b.who,
                b.started_at,
                b.ended_at,
                b.matched,
                b.replayed,
                b.left_alone,
                b.is_complete,
                _progress(b),
            )
            for b in found
        ],
    )


def _progress(bulk: Bulk) -> str:
    return ", ".join(f"{name} {value}" for name, value in bulk.filter.items())
