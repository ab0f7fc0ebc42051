"""`hookonce replay`: run stored events again, or release held ones."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output import tables
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import confirm, tell
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.cli.plans import DRY_RUN, YES, carried_out
from hookonce.receiver.cli.replay import named
from hookonce.receiver.cli.replay.bulk import BulkRun
from hookonce.receiver.cli.replay.outcomes import ReplayReport
from hookonce.receiver.desk.events import EventCounts
from hookonce.receiver.desk.refusals import NAMED_OR_CHOSEN, NotFound
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.replays import (
    BulkFilter,
    BulkPath,
    BulkReplayRequest,
    continue_bulk_replay,
    start_bulk_replay,
)
from hookonce.receiver.desk.rows import BulkReplay
from hookonce.receiver.source import Limit

_KINDS = 8
"""Kinds of events named before the question; more are summed up."""


def _rate(_ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Read how many events per second; a usage error where it can't be read."""
    if text is None:
        return None
    try:
        limit = Limit.parse(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a rate; {error}", param=param) from None
    return limit.count / limit.period.total_seconds()


@click.command(
    epilog=examples(
        "hookonce replay 12 stripe:evt_1Nxy",
        "hookonce replay --status dead --since 2h --dry-run",
        "hookonce replay --status dead --source stripe --rate 20/s",
    )
)
@click.argument("references", metavar="ID…", nargs=-1, shell_complete=completion_types.EVENTS)
@choosing
@click.option("--limit", default=0, type=click.IntRange(0), help="At most so many, oldest first; 0 = all.")
@click.option("--rate", callback=_rate, metavar="RATE", help="No faster than this: 20/s, 600/m.")
@click.option(
    "--forget-step",
    "forget",
    metavar="NAME",
    multiple=True,
    help="Repeat this step of its handlers; may be repeated.",
)
@click.option("--again", is_flag=True, help="Also rerun handlers that are done.")
@click.option(
    "--seen", metavar="VIEW", help="With --again: fail if the event has changed since it was shown."
)
@DRY_RUN
@click.option(
    "--continue", "number", type=int, metavar="NUMBER", help="Continue a bulk replay that was stopped."
)
@click.option(
    "--wait/--no-wait", default=None, help="Wait until all events have ended; default: on a terminal."
)
@YES
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event.")
def replay(  # options
    references: tuple[str, ...],
    *,
    as_json: bool,
    number: int | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Run events again: new attempts under the same idempotency key; held events are released.

    Results of steps (event.step) are reused, unless --forget-step names the step.
    Name events by ID (ledger id, source:event_id, or how a sender's id begins), or choose all that match the
    options. Handlers of a named event that are done stay so unless you say --again. Ctrl-C stops a bulk replay where
    it is; killed, it is finished by the sweep. Exit 3 if some were left alone or died again, 4 if there is no such
    event.
    """
    given = given_of(options)
    _require_sense(references, given, number, options)
    with desk() as here:
        if references:
            named.replay(here, references, options, as_json=as_json)
        elif bulk := _begun(here, given, number, options, as_json=as_json):
            _replay_all(here, bulk, options, as_json=as_json)


def _require_sense(
    references: Sequence[str],
    given: Mapping[str, Any],
    number: int | None,
    options: Mapping[str, Any],
) -> None:
    """Refuse options that contradict each other, or would do nothing."""
    ways = [bool(references), bool(given), number is not None]
    wrong = {
        NAMED_OR_CHOSEN: sum(ways) != 1 or (options["limit"] and not given),
        "--rate is for events chosen by options, not by ID; leave it out": references and options["rate"],
        "--dry-run replays nothing that --wait could wait for; leave one out": options["wait"]
        and options["dry_run"],
        "--forget-step is for events that are named by ID: it does again what was done": options["forget"]
        and not references,
        "--seen says which runs may run --again; add that": options["seen"] and not options["again"],
        "--again is for events that are named by ID; choose what is done with --status done": options["again"]
        and not references,
        "--continue replays; leave out --dry-run, `hookonce replays` shows what is left": number is not None
        and options["dry_run"],
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise click.UsageError(text)


def _begun(
    here: Asks, given: Mapping[str, Any], number: int | None, options: Mapping[str, Any], *, as_json: bool
) -> BulkReplay | None:
    """Say what matches, ask, and begin; or continue one that was stopped. None where nothing is to be done."""
    if number is not None:
        bulk = here.ask(continue_bulk_replay, which=asking(BulkPath, bulk=number))
        if bulk.state == "complete":
            tell(f"bulk replay {number} is complete; nothing to do")
            return None
        return bulk
    asked = asking(
        BulkReplayRequest,
        filter=asking(BulkFilter, **given),
        rate=options["rate"],
        limit=options["limit"] or None,
        driven=True,
    )
    how = {"dry_run": options["dry_run"], "ask": None if options["yes"] else _ask(options["limit"])}
    try:
        found = carried_out(here, start_bulk_replay, _showing(options, as_json=as_json), **how, asked=asked)
    except NotFound as error:
        tell(clean(str(error)))
        return None
    return found if isinstance(found, BulkReplay) else None


def _ask(limit: int) -> Callable[[Any], None]:
    def ask(plan: EventCounts) -> None:
        confirm(_matching(plan, limit), f"replay {min(plan.total, limit or plan.total)}")

    return ask


def _showing(options: Mapping[str, Any], *, as_json: bool) -> Callable[[Any], None]:
    """Return what shows a plan: how many match, and of which kinds; as JSON if that is all there is to be."""

    def show(found: EventCounts | BulkReplay) -> None:
        if isinstance(found, BulkReplay):
            return
        tell(_matching(found, options["limit"]))
        if as_json and options["dry_run"]:
            for row in found.data:
                print_json({"type": row.type, "status": row.status, "events": row.count})
        elif options["dry_run"]:
            tables.show(
                ("type", "status", "events"), [(row.type, row.status, row.count) for row in found.data]
            )
        else:
            for row in found.data[:_KINDS]:
                tell(f"  {row.count:>8}  {row.status:<8}  {clean(row.type)}")
            if rest := sum(row.count for row in found.data[_KINDS:]):
                tell(f"  {rest:>8}  of other kinds")

    return show


def _matching(plan: EventCounts, limit: int) -> str:
    text = f"{counted(plan.total, 'event')} {'matches' if plan.total == 1 else 'match'}"
    return f"{text}, the oldest {limit} of them are chosen" if 0 < limit < plan.total else text


def _replay_all(here: Asks, bulk: BulkReplay, options: Mapping[str, Any], *, as_json: bool) -> None:
    wait = options["wait"]
    if wait is None and not sys.stderr.isatty():
        wait = False
    report = ReplayReport(as_json=as_json)
    driver = BulkRun(bulk, options["rate"])
    driver.run(here, report.take, wait=wait)
    report.finish()
    bulk = driver.bulk
    tell(f"bulk replay {bulk.id}: {driver.summary}, of {bulk.matched} that matched")
    if bulk.state != "complete":
        tell(f"stopped; continue with `hookonce replay --continue {bulk.id}`")
        sys.exit(Exit.PARTIAL)
    if not report.is_whole:
        sys.exit(report.exit)
    if bulk.dead:
        sys.exit(Exit.PARTIAL)
