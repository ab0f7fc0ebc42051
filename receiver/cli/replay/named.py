"""`hookonce replay ID…`: events that somebody names, few enough to be reported one by one."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from hookonce.receiver.cli.desk import asking
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.output.words import counted_events
from hookonce.receiver.cli.plans import carried_out
from hookonce.receiver.cli.replay.outcomes import ReplayReport
from hookonce.receiver.cli.replay.waiting import wait_for
from hookonce.receiver.desk.dead_letters import Discards
from hookonce.receiver.desk.events import EventPath, get_event
from hookonce.receiver.desk.maintenance import Erased
from hookonce.receiver.desk.models import PAGE_SIZE
from hookonce.receiver.desk.refusals import Conflict, NotFound, not_in_ledger
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.replays import Outcome, Replayed, ReplayRequest, SeenEvent
from hookonce.receiver.desk.replays import replay as replay_action
from hookonce.receiver.desk.rows import GOOD
from hookonce.receiver.ledger.states import OPEN, EventStatus


def replay(here: Asks, references: Sequence[str], options: Mapping[str, Any], *, as_json: bool) -> None:
    """Show the plan, replay the named events and report what became of each; exits as `hookonce help exits` lists."""
    if options["seen"] and len(references) > 1:
        raise click.UsageError("--seen is for one event; name it alone")
    report = ReplayReport(as_json=as_json)
    done: list[Outcome] = []
    unknown: list[object] = []
    for first in range(0, len(references), PAGE_SIZE):
        batch = references[first : first + PAGE_SIZE]
        try:
            found = _replayed(here, batch, options)
        except NotFound as error:
            if len(references) == len(batch) or error.code != NotFound.usual_code:
                raise
            unknown += batch
            continue
        report.take(found.outcomes)
        done += found.outcomes
        unknown += [*found.unknown_names, *found.unknown]
    if not done and unknown:
        raise NotFound(not_in_ledger(unknown))
    report.finish()
    report_unknown(unknown)
    has_ended_well = not options["wait"] or _await(here, done)
    if unknown or not has_ended_well or not (report.is_whole or options["dry_run"]):
        sys.exit(Exit.PARTIAL if unknown or not has_ended_well else report.exit)


def _replayed(here: Asks, references: Sequence[str], options: Mapping[str, Any]) -> Replayed:
    seen = []
    if options["seen"]:
        event = here.ask(get_event, which=asking(EventPath, event=references[0]))
        seen = [SeenEvent(event=event.id, view=options["seen"])]
    how = {"forget_steps": list(options["forget"]), "again": options["again"], "seen": seen}
    asked = asking(ReplayRequest, events=list(references), **how)
    shown: list[Replayed] = []

    def show(found: Replayed) -> None:
        if not shown:
            good = [each.id for each in found.outcomes if each.fate in GOOD]
            tell(f"to replay: {counted_events(good)}")
        shown.append(found)

    try:
        return carried_out(here, replay_action, show, dry_run=options["dry_run"], asked=asked)
    except Conflict as error:
        if error.code != "already_done":
            raise
    return here.ask(replay_action, asked=asked.model_copy(update={"dry_run": True}))


def _await(here: Asks, done: Sequence[Outcome]) -> bool:
    """Wait until the events that were replayed have ended; return whether none is dead."""
    left = {each.id for each in done if each.fate in GOOD}
    ended: dict[int, str] = {}

    def is_open() -> int:
        for number in sorted(left):
            found = here.ask(get_event, which=EventPath(event=str(number)))
            if found.status not in OPEN:
                left.discard(number)
                ended[number] = found.status
        return len(left)

    wait_for(here, is_open, {name for each in done if each.id in left for name in each.handlers})
    for number, status in ended.items():
        tell(f"event {number} is {status}")
    return EventStatus.DEAD not in ended.values()


def report_left(done: Discards | Erased) -> None:
    """Report which events were left alone, and which names no event has."""
    for line in done.left_alone:
        tell(line)
    report_unknown([*done.unknown_names, *done.unknown])


def report_unknown(unknown: Sequence[object]) -> None:
    """Report which names no event has."""
    if unknown:
        tell(f"hookonce: {clean(not_in_ledger(unknown))}")
