"""Events as a listing: lines on a terminal, a table anywhere else, and what to do where there is none."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hookonce.receiver.cli.output import event_lines
from hookonce.receiver.cli.output.printing import page, tell
from hookonce.receiver.cli.output.tables import clean, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.listed_events import DeadRun, ListedEvent
from hookonce.receiver.ledger.states import EventStatus


def document(event: ListedEvent, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event as one line of JSON; what it died of only where dead events are asked for."""
    return event.model_dump(exclude=set() if given.get("status") == EventStatus.DEAD else {"dead"})


def print_events(events: Sequence[ListedEvent], given: Mapping[str, Any], hint: str | None) -> None:
    """Print events as lines on a terminal, and as a table anywhere else; without any, what may be wrong (`hint`)."""
    if not events:
        say_empty(given, hint)
    elif sys.stdout.isatty():
        width, now = shutil.get_terminal_size().columns, datetime.now(UTC)
        notes = {event.id: list(map(_died, event.dead)) for event in events}
        if given.get("status") == EventStatus.WAITING:
            notes = {event.id: [_waits(event, now)] for event in events}
        page("\n".join(event_lines.lines(events, notes, width, now)))
    else:
        _print_table(events, with_deaths=given.get("status") == EventStatus.DEAD)


def _print_table(events: Sequence[ListedEvent], *, with_deaths: bool) -> None:
    cause = ["handler", "error"] if with_deaths else []
    rows = []
    for e in events:
        row = [e.id, e.status, e.type]
        if with_deaths:
            errors = "; ".join((each.error or "").strip().partition("\n")[0] for each in e.dead)
            row += [", ".join(each.handler for each in e.dead if each.handler) or None, errors or None]
        rows.append([*row, e.received_at, e.deliveries, e.source, e.event_id])
    show(["id", "status", "type", *cause, "received", "deliveries", "source", "event id"], rows)


def _died(death: DeadRun) -> str:
    error = (death.error or "").strip().partition("\n")[0]
    return (
        ", in ".join(filter(None, (error, death.handler))) if death.handler else f"it can't be read: {error}"
    )


def _waits(event: ListedEvent, now: datetime) -> str:
    """Return what an event waits for, or when it is due."""
    if event.waits:
        return event.waits
    return f"due {ago(event.due_at, now)}" if event.due_at and event.due_at > now else "due, for a worker"


def say_empty(given: Mapping[str, Any], hint: str | None) -> None:
    """Say that nothing was found by these fields of a filter, and what to do about it."""
    if not given:
        tell("no event yet; `hookonce trigger SOURCE` sends one")
    elif given == {"status": EventStatus.DEAD}:
        tell("no event is dead")
    else:
        tell(f"no event matches; {clean(hint or 'remove a filter to see more')}")
