"""`hookonce steps`: parts of handlers that are done once per event, and those that wait for a person."""

import json
from dataclasses import asdict

import click
import psycopg

from hookonce.receiver.cli.connections import configured, ledger, operator
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.steps import print_steps
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.ledger import steps as ledger_steps
from hookonce.receiver.ledger.queries import event_lookup
from hookonce.receiver.ledger.steps import RunUnderWay, StepRow

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
    settings = configured()
    with ledger(settings) as connection:
        found = (
            ledger_steps.stopped(connection, settings.keyring)
            if reference is None
            else ledger_steps.of_event(connection, _event(connection, reference), settings.keyring)
        )
    if as_json:
        for step in found:
            print_json(asdict(step))
    else:
        print_steps(found, with_event=reference is None)


@steps.command("done")
@_EVENT
@_NAME
@_HANDLER
@click.option("--result", required=True, metavar="JSON", help="What it gave, for the handler to go on with.")
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
    settings = configured()
    with ledger(settings) as connection:
        step = _step(_of(connection, reference), reference, name, handler)
        key = (step.event, step.handler, step.name)
        try:
            is_new = ledger_steps.mark_done(connection, settings.keyring, key, given, operator())
        except RunUnderWay as error:
            raise click.ClickException(str(error)) from None
    if not is_new:
        raise click.ClickException(
            f"the step '{clean(name)}' is done already; `hookonce steps forget` would have it done anew"
        )
    click.echo(f"noted; `hookonce replay {step.event}` goes on behind it", err=True)


@steps.command("forget")
@_EVENT
@_NAME
@_HANDLER
def forget_(reference: str, name: str, handler: str | None) -> None:
    """Have STEP forgotten, to be done anew.

    A replay of EVENT does it, under the same key.
    """
    settings = configured()
    with ledger(settings) as connection:
        step = _step(_of(connection, reference), reference, name, handler)
        try:
            ledger_steps.forget(connection, (step.event, step.handler, step.name), operator())
        except RunUnderWay as error:
            raise click.ClickException(str(error)) from None
    click.echo(f"forgotten; `hookonce replay {step.event}` does it anew", err=True)


def _of(connection: psycopg.Connection, reference: str) -> list[StepRow]:
    return ledger_steps.of_event(connection, _event(connection, reference), configured().keyring)


def _event(connection: psycopg.Connection, reference: str) -> int:
    number = event_lookup.find(connection, reference)
    if number is None:
        raise NotFound(
            f"no event is {reference!r}; expected a ledger id, source:event_id, or how a sender's id begins, "
            "see `hookonce events list`"
        )
    return number


def _step(found: list[StepRow], reference: str, name: str, handler: str | None) -> StepRow:
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
