"""`hookonce events`: what came, and what became of it."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import click

from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import AS_JSON, LIMIT, choosing, chosen, doubt
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.tables import cell, clean, document_body, print_json, show
from hookonce.receiver.ledger.queries import event_lookup
from hookonce.receiver.ledger.queries import events as event_queries
from hookonce.receiver.ledger.queries.events import Detail, EventRow, RunRow
from hookonce.receiver.ledger.states import PARKED_BY_LIMIT

_MAX_SHOWN = 4000
"""Characters of a body that a person is shown; `--raw` gives all of it."""


_TRANSFER_COMMANDS = ("export", "import")


class _Events(click.Group):
    """Knows the commands that move events by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_TRANSFER_COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _TRANSFER_COMMANDS:
            return super().get_command(ctx, cmd_name)
        from hookonce.receiver.cli.commands.transfer import export, import_  # a listing starts sooner without

        return export if cmd_name == "export" else import_


@click.group(cls=_Events)
def events() -> None:
    """List the events in the ledger, or show one in full."""


@events.command("list")
@choosing
@LIMIT
@AS_JSON
def list_(limit: int, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401  options
    """List events, newest first."""
    with ledger() as connection:
        found = event_queries.events(connection, chosen(options), limit)
        if as_json:
            for event in found:
                print_json(asdict(event))
            return
        rows = [(e.id, e.source, e.event_id, e.type, e.status, e.received_at, e.deliveries) for e in found]
    show(("id", "source", "event id", "type", "status", "received", "deliveries"), rows)
    if not rows:
        doubt(options["source"])
    if limit and len(rows) == limit:
        click.echo(f"the newest {limit}; --limit 0 gives all", err=True)


@events.command("show")
@click.argument("reference", metavar="ID", shell_complete=completion_types.EVENTS)
@click.option("--raw", is_flag=True, help="Write the body to stdout, byte for byte, and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show_(reference: str, *, raw: bool, as_json: bool) -> None:
    """Show an event: headers, body, runs, failures.

    ID is the ledger id, source:event_id, or how a sender's id begins.
    """
    settings = configured()
    with ledger(settings) as connection:
        number = event_lookup.find(connection, reference)
        found = None if number is None else event_queries.detail(connection, number, settings.keyring)
    if found is None:
        raise NotFound(
            f"no event is {reference!r}; expected a ledger id, source:event_id, or how a sender's id begins, "
            "see `hookonce events list`"
        )
    if raw:
        if found.body is None:
            raise NotFound(
                f"the body of event {found.event.id} was dropped by retention; only its row is left"
            )
        click.echo(found.body.body, nl=False)
    elif as_json:
        print_json(_document(found))
    else:
        _print(found)


def _document(found: Detail) -> dict[str, Any]:
    body = found.body
    return {
        **asdict(found.event),
        "url": body.url if body else None,
        "headers": body.headers if body else None,
        **document_body("body", None if body is None or body.unreadable else body.body),
        "unreadable": body.unreadable if body else None,
        "runs": [asdict(run) for run in found.runs],
        "failures": found.failures,
        "conflicts": [
            {**conflict, "body": None, **document_body("body", conflict["body"])}
            for conflict in found.conflicts
        ],
        "repeats": found.repeats,
    }


def _print(found: Detail) -> None:
    for name, value in _facts(found.event, found.repeats):
        click.echo(f"{name:<12} {value}")
    if found.body is None:
        click.echo("\nthe body was dropped by retention")
    else:
        click.echo(f"\nPOST {clean(found.body.url)}")
        for name, value in found.body.headers.items():
            click.echo(f"{clean(name)}: {clean(value)}")
        click.echo(f"\n{found.body.unreadable or _pretty(found.body.body)}")
    _print_runs(found)
    if found.conflicts:
        click.echo()
        show(
            ("other body", "first", "last", "deliveries", "bytes"),
            [
                (c["id"], c["first_at"], c["last_at"], c["deliveries"], len(c["body"]))
                for c in found.conflicts
            ],
        )


def _status(run: RunRow) -> str:
    """Return a run's status, and why it is passed over."""
    if not run.parked:
        return run.status
    why = "its limit is full" if run.parked.startswith(PARKED_BY_LIMIT) else "paused"
    return f"{run.status} (parked: {why})"


def _print_runs(found: Detail) -> None:
    if found.runs:
        click.echo()
        columns = ("handler", "status", "attempts", "cycle", "due", "finished", "result", "error")
        show(
            columns,
            [
                (
                    r.handler,
                    _status(r),
                    r.attempts,
                    r.cycle,
                    r.due_at,
                    r.finished_at,
                    _result(r.result),
                    r.error,
                )
                for r in found.runs
            ],
        )
    if found.failures:
        click.echo()
        show(
            ("failed attempt", "of", "cycle", "at", "error"),
            [(f["attempt"], f["handler"], f["cycle"], f["failed_at"], f["error"]) for f in found.failures],
        )
        _print_tracebacks(found.failures)


def _print_tracebacks(failures: Sequence[Mapping[str, Any]]) -> None:
    """Print the tracebacks, each once: most attempts of a run fail alike."""
    shown: dict[str, str] = {}
    for failure in failures:
        which = f"attempt {failure['attempt']} of {failure['handler']}, cycle {failure['cycle']}"
        text = failure["traceback"] or failure["unreadable"]
        if text is None:
            continue
        click.echo()
        if text in shown:
            click.echo(f"{clean(which)}: the same traceback as {clean(shown[text])}")
            continue
        shown[text] = which
        click.echo(f"{clean(which)}:\n{clean(text.rstrip(), lines=True)}")


def _facts(event: EventRow, repeats: list[int]) -> list[tuple[str, str]]:
    facts = [
        (name.replace("_", " "), cell(value)) for name, value in asdict(event).items() if value is not None
    ]
    if repeats:
        facts.append(("repeated by", ", ".join(map(str, repeats))))
    return facts


def _result(result: object) -> str | None:
    return None if result is None else json.dumps(result)


def _pretty(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return f"{len(body)} bytes that are not text; --raw writes them"
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    cut = "" if len(text) <= _MAX_SHOWN else f"\n… {len(text) - _MAX_SHOWN} characters more; --raw gives all"
    return clean(text[:_MAX_SHOWN], lines=True) + cut
