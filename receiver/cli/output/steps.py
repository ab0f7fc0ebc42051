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
        show(("event", *columns), [(s.event, *row) for s, row in zip(steps, rows, strict=True)])
    else:
        show(columns, rows)


def _gave(step: Step) -> str | None:
    return step.unreadable or (
        json.dumps(step.result) if StepStatus(step.status) is StepStatus.DONE else step.note
    )
