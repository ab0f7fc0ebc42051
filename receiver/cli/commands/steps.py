"""`hookonce steps`: parts of handlers that are done once per event, and those that wait for a person."""

import json
from typing import Any

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.desk.events import EventPath
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.rows import Step, StepStatus
from hookonce.receiver.desk.steps import StepDecision, decide_step, list_steps, list_stopped_steps

_HANDLER = click.option("--handler", help="Whose step it is, where several handlers have one of that name.")
_EVENT = click.argument("reference", metavar="EVENT", shell_complete=completion_types.EVENTS)
_NAME = click.argument("name", metavar="STEP")


@click.group()
def steps() -> None:
    """See the steps of handlers (event.step), and decide about those that are stopped.

    A step is stopped when it was cut off, nobody knows whether it happened, and its handler asks for a person
    (on_unknown="stop"). Look at the other side for its key; then say what it gave, or have it forgotten, and replay.
    """


@steps.command("list")
@click.argument("reference", metavar="EVENT", required=False, shell_complete=completion_types.EVENTS)
@AS_JSON
def list_(reference: str | None, *, as_json: bool) -> None:
    """List the steps of an event.

    Without EVENT, all that are stopped, those of the newest events first.
    """
    with desk() as here:
        found = here.ask(list_stopped_steps).data if reference is None else _of(here, reference)
    if as_json:
        for step in found:
            print_json(step.model_dump())
    else:
        _print(found, with_event=reference is None)


@steps.command("done")
@_EVENT
@_NAME
@_HANDLER
@click.option(
    "--result", required=True, metavar="JSON", help="Result of the step, for the handler to continue with."
)
def done_(reference: str, name: str, handler: str | None, result: str) -> None:
    """Say that STEP happened, and what it gave.

    A replay of EVENT goes on behind it.
    """
    try:
        given = json.loads(result, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise click.UsageError(
            f'--result {result!r} is not JSON; expected null, "text", {{"id": 1}} …'
        ) from None
    event = _decide(reference, name, handler, decision="done", result=given)
    tell(f"noted; `hookonce replay {event}` goes on behind it")


@steps.command("forget")
@_EVENT
@_NAME
@_HANDLER
def forget_(reference: str, name: str, handler: str | None) -> None:
    """Have STEP forgotten, to be done again.

    A replay of EVENT does it, under the same key.
    """
    event = _decide(reference, name, handler, decision="forget")
    tell(f"forgotten; `hookonce replay {event}` has it done again")


def _print(steps: list[Step], *, with_event: bool) -> None:
    """Print steps, each with what it gave, or why it gave nothing; `with_event` where they are of many."""
    columns = ("step", "of", "status", "attempts", "finished", "key", "result or why not")
    rows = [(s.name, s.handler, s.status, s.attempts, s.finished_at, s.key, _gave(s)) for s in steps]
    if with_event:
        with_events = [(s.event, *row) for s, row in zip(steps, rows, strict=True)]
        show(("event", *columns), with_events, empty="no step waits for a person")
    else:
        show(columns, rows, empty="no handler of this event has a step")


def _gave(step: Step) -> str | None:
    is_done = StepStatus(step.status) is StepStatus.DONE
    return step.unreadable or (json.dumps(step.result) if is_done else step.note)


def _of(here: Asks, reference: str) -> list[Step]:
    return here.ask(list_steps, which=asking(EventPath, event=reference)).data


def _decide(reference: str, name: str, handler: str | None, **decision: Any) -> int:  # noqa: ANN401  JSON
    """Decide about the step that is meant; return its event."""
    with desk() as here:
        step = _step(_of(here, reference), reference, name, handler)
        asked = asking(StepDecision, handler=step.handler, step=step.name, **decision)
        here.ask(decide_step, which=asking(EventPath, event=str(step.event)), asked=asked)
    return step.event


def _step(found: list[Step], reference: str, name: str, handler: str | None) -> Step:
    """Return the step that is meant. Raises `NotFound`, and click's for a name that several handlers have."""
    meant = [step for step in found if step.name == name and handler in {None, step.handler}]
    if len(meant) == 1:
        return meant[0]
    if not meant:
        raise NotFound(
            f"event {reference} has no step '{name}'{f' of {handler}' if handler else ''}; "
            "`hookonce steps list EVENT` shows them"
        )
    raise click.UsageError(
        f"several handlers have a step '{name}'; add --handler, one of {', '.join(step.handler for step in meant)}"
    )


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")
