"""`hookonce steps`: parts of handlers that are done once per event, and those that wait for a person."""

import json

import click

from hookonce.receiver.cli.action_command import Column, done, listing
from hookonce.receiver.desk.rows import Step, StepStatus
from hookonce.receiver.desk.steps import decide_step, list_steps, list_stopped_steps


def _read(_ctx: click.Context, param: click.Parameter, text: str) -> object:
    """Read JSON; a usage error where it can't be read."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise click.BadParameter(
            f'{text!r} is not JSON; expected null, "text", {{"id": 1}} …', param=param
        ) from None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _gave(step: Step) -> str | None:
    is_done = StepStatus(step.status) is StepStatus.DONE
    return step.unreadable or (json.dumps(step.result) if is_done else step.note)


_COLUMNS: dict[str, Column] = {
    "event": "event",
    "step": "name",
    "of": "handler",
    "status": "status",
    "attempts": "attempts",
    "finished": "finished_at",
    "key": "key",
    "result or why not": _gave,
}
_STEP = click.Argument(["step"])
_RESULT = click.Option(
    ["--result"],
    required=True,
    callback=_read,
    metavar="JSON",
    help="Result of the step, for the handler to continue with.",
)

steps = click.Group(
    commands=[
        listing(
            list_stopped_steps,
            _COLUMNS,
            "no step waits for a person",
            name="list",
            about="List the steps that are stopped, those of the newest events first.",
        ),
        listing(list_steps, _COLUMNS, "no handler of this event has a step", name="show"),
        done(
            decide_step,
            "noted; `hookonce replay {event}` goes on behind it",
            name="done",
            about="Say that STEP happened, and what it gave.\n\nA replay of EVENT goes on behind it.",
            preset={"decision": "done"},
            instead={"step": _STEP, "result": _RESULT},
        ),
        done(
            decide_step,
            "forgotten; `hookonce replay {event}` has it done again",
            name="forget",
            about="Have STEP forgotten, to be done again.\n\nA replay of EVENT does it, under the same key.",
            preset={"decision": "forget", "result": None},
            instead={"step": _STEP},
        ),
    ],
    help="""See the steps of handlers (event.step), and decide about those that are stopped.

    A step is stopped when it was cut off, nobody knows whether it happened, and its handler asks for a person
    (on_unknown="stop"). Look at the other side for its key; then say what it gave, or have it forgotten, and replay.
    """,
)
