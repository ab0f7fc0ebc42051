"""Steps of handlers as a table."""

import json
from collections.abc import Iterable

from hookonce.receiver.cli.output.tables import show
from hookonce.receiver.desk.events import Step
from hookonce.receiver.ledger.steps import StepStatus


def print_steps(steps: Iterable[Step], *, with_event: bool = False) -> None:
    """Print steps, each with what it gave, or why it gave nothing; `with_event` where they are of many."""
    columns = ("step", "of", "status", "attempts", "finished", "key", "result or why not")
    rows = [(s.name, s.handler, s.status, s.attempts, s.finished_at, s.key, _gave(s)) for s in steps]
    if with_event:
        with_events = [(s.event, *row) for s, row in zip(steps, rows, strict=True)]
        show(("event", *columns), with_events, empty="no step waits for a person")
    else:
        show(columns, rows, empty="no handler of this event has a step")


def _gave(step: Step) -> str | None:
    return step.unreadable or (
        json.dumps(step.result) if StepStatus(step.status) is StepStatus.DONE else step.note
    )
