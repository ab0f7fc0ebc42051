"""What happened to an event, in order: when it came, each attempt and how it ended, what comes next."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from hookonce.receiver.ledger.queries.events import Detail, RunRow
from hookonce.receiver.ledger.states import EventStatus, RunStatus

MAX_SHOWN = 60
"""Moments, the newest; one event may have failed hundreds of times."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened, or will; `kind` is a status, for its colour, and `took` the length of an attempt."""

    at: datetime
    what: str
    kind: str
    handler: str = ""
    detail: str = ""
    took: timedelta | None = None


def timeline(found: Detail) -> list[Moment]:
    """Return an event's moments, oldest first, `MAX_SHOWN` at most."""
    moments = [*_deliveries(found), *_failures(found)]
    for run in found.runs:
        moments += _run(run)
    return sorted(moments, key=lambda each: each.at)[-MAX_SHOWN:]


def _deliveries(found: Detail) -> Iterator[Moment]:
    event = found.event
    if event.occurred_at:
        yield Moment(event.occurred_at, "occurred, says the sender", "other")
    repeated = event.deliveries - 1
    detail = f"{repeated} more {'delivery was' if repeated == 1 else 'deliveries were'} answered as duplicate"
    yield Moment(event.received_at, "delivered", EventStatus.RECEIVED, detail=detail if repeated else "")
    for other in found.conflicts:
        times = f", {other['deliveries']} times" if other["deliveries"] > 1 else ""
        yield Moment(other["first_at"], f"another body came under its id{times}", EventStatus.WAITING)


def _failures(found: Detail) -> Iterator[Moment]:
    latest = {run.handler: run for run in found.runs}
    for failure in found.failures:
        run = latest.get(failure["handler"])
        is_last = run is not None and (run.cycle, run.attempts) == (failure["cycle"], failure["attempt"])
        is_dead = is_last and run is not None and run.status == RunStatus.DEAD
        yield Moment(
            failure["failed_at"],
            f"attempt {_numbered(failure['attempt'], failure['cycle'])} failed{', the last' if is_dead else ''}",
            EventStatus.DEAD if is_dead else EventStatus.WAITING,
            failure["handler"],
            (failure["error"].splitlines() or [""])[0],
            _took(run) if is_last else None,
        )


def _run(run: RunRow) -> Iterator[Moment]:
    number = _numbered(run.attempts, run.cycle)
    if run.status == RunStatus.DONE and run.finished_at:
        yield Moment(
            run.finished_at, f"attempt {number} succeeded", EventStatus.DONE, run.handler, took=_took(run)
        )
    elif run.status == RunStatus.RUNNING and run.started_at:
        yield Moment(run.started_at, f"attempt {number} began", EventStatus.RUNNING, run.handler)
    elif run.status == RunStatus.WAITING and run.due_at and not run.parked:
        yield Moment(run.due_at, "the next attempt is due", EventStatus.WAITING, run.handler)


def _numbered(attempt: int, cycle: int) -> str:
    return f"{attempt}, after replay {cycle - 1}," if cycle > 1 else str(attempt)


def _took(run: RunRow | None) -> timedelta | None:
    return run.finished_at - run.started_at if run and run.finished_at and run.started_at else None
