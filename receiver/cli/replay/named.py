"""`hookonce replay ID…`: events that somebody names, few enough to be reported one by one."""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from hookonce.receiver.cli.desk import asking
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.replay.outcomes import ReplayReport
from hookonce.receiver.desk.events import EventPath, get_event
from hookonce.receiver.desk.models import PAGE_SIZE
from hookonce.receiver.desk.refusals import Conflict, NotFound
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.replays import Replayed, ReplayRequest, SeenEvent
from hookonce.receiver.desk.replays import replay as replay_action
from hookonce.receiver.desk.rows import ReplayOutcome


class How(NamedTuple):
    """How named events are replayed: which steps are repeated, what runs again, as it was seen, and how it is told."""

    forget: Sequence[str]
    again: bool
    seen: str | None
    as_json: bool


def preview(here: Asks, references: Sequence[str], how: How) -> None:
    """Show what a replay would make of each named event, and replay none."""
    asked = asking(
        ReplayRequest, events=list(references), forget_steps=list(how.forget), again=how.again, dry_run=True
    )
    found = here.ask(replay_action, asked=asked)
    tell("a replay would say:")
    report = ReplayReport(as_json=how.as_json)
    report.take(found.outcomes)
    report.finish()
    unknown = [*found.unknown_names, *map(str, found.unknown)]
    report_unknown(unknown, is_all=not found.outcomes)
    tell("this is the plan; nothing was replayed")
    if unknown:
        sys.exit(Exit.PARTIAL)


def replay(here: Asks, references: Sequence[str], how: How) -> None:
    """Replay the named events and report what became of each; exits with 3 or 4 as `hookonce help exits` lists."""
    report = ReplayReport(as_json=how.as_json)
    unknown: list[str] = []
    if how.seen and len(references) > 1:
        raise click.UsageError("--seen is for one event; name it alone")
    for first in range(0, len(references), PAGE_SIZE):
        found = _replayed(here, references[first : first + PAGE_SIZE], how)
        report.take(found.outcomes)
        unknown += [*found.unknown_names, *map(str, found.unknown)]
    report.finish()
    report_unknown(unknown, is_all=not report.is_any(list(ReplayOutcome)))
    if unknown or not report.is_whole:
        sys.exit(report.exit)


def _replayed(here: Asks, references: Sequence[str], how: How) -> Replayed:
    seen = []
    if how.seen:
        event = here.ask(get_event, which=asking(EventPath, event=references[0]))
        seen = [SeenEvent(event=event.id, view=how.seen)]
    asked = asking(
        ReplayRequest, events=list(references), forget_steps=list(how.forget), again=how.again, seen=seen
    )
    try:
        return here.ask(replay_action, asked=asked)
    except Conflict as error:
        if error.code != "already_done":
            raise
        return here.ask(replay_action, asked=asked.model_copy(update={"dry_run": True}))


def report_unknown(unknown: Sequence[str], *, is_all: bool) -> None:
    """Report which names no event has. Raises: `NotFound` if that is all there was to replay."""
    if unknown:
        names = ", ".join(map(clean, unknown))
        text = f"not in the ledger: {names}; expected ids, or how they begin, see `hookonce events list`"
        if is_all:
            raise NotFound(text)
        tell(f"hookonce: {text}")
