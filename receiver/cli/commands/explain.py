"""`hookonce explain`: whether a captured delivery is genuine, why it is rejected, and the events that it holds."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from hookonce.receiver.cli import local_sources, signing_sources
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.desk.rejected import ExplanationModel
from hookonce.receiver.intake.explain import causes
from hookonce.receiver.intake.explain.causes import Explanation
from hookonce.receiver.intake.explain.checks import case_of

_EVENT = ("id", "type", "account", "occurred_at")


@click.command(epilog=examples("hookonce explain delivery.http --source stripe"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="REQUEST.http")
@signing_sources.SOURCE
@click.option("--provider", help="With this provider.", shell_complete=completion_types.PROVIDERS)
@signing_sources.SECRET
@click.option(
    "--at",
    type=SINCE,
    help="As of this time; default is when it was captured, if the file says so, else now.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(  # noqa: PLR0913  its options
    *,
    file: Path,
    source: str | None,
    provider: str | None,
    references: tuple[str, ...],
    at: datetime | None,
    as_json: bool,
) -> None:
    """Verify a captured delivery: each check, what it expects, what was found, the likely cause, and its events.

    REQUEST.http is what `hookonce capture` writes. Neither a secret nor a right signature is ever shown. Exit 1 if
    it is rejected.
    """
    settings = configured()
    proved, sent = (
        signing_sources.prover(settings, source, provider, references),
        signing_sources.request(file),
    )
    delivery, now = signing_sources.delivery(sent, proved), at or sent.at or datetime.now(UTC)
    case = case_of(proved, delivery, now, local_sources.sources(settings))
    found = causes.explain(case)
    held = [] if found.reason else case.verifier.authenticate(case.source, case.delivery, case.now).events
    rows = [[getattr(each, name) for name in _EVENT] for each in held]
    columns = ("event_id", *_EVENT[1:])
    if as_json:
        events = [dict(zip(columns, row, strict=True)) for row in rows]
        checks = [check.model_dump() for check in found.checks]
        print_json({"source": case.source.name, **asdict(found), "checks": checks, "events": events})
    else:
        print_explanation(found)
        if rows:
            click.echo()
            show([name.replace("_", " ") for name in columns], rows)
    if found.reason:
        tell(f"hookonce: refused, {found.reason}: {clean(found.detail)}")
        sys.exit(Exit.FAILURE)
    tell(f"genuine{f' under secret {found.slot}' if found.slot else ''}, {counted(len(rows), 'event')}")


def print_explanation(found: Explanation | ExplanationModel) -> None:
    """Print the checks of a delivery, and what they come to."""
    marks = {True: "ok", False: "WRONG", None: "-"}
    show(
        ("", "check", "expected", "found"),
        [(marks[check.is_right], check.what, check.expected, check.found) for check in found.checks],
    )
    click.echo()
    click.echo(f"verdict  {f'refused, {found.reason}: ' if found.reason else ''}{clean(found.detail)}")
    if found.cause:
        click.echo(f"cause    {clean(found.cause)}")
    if found.advice:
        click.echo(f"do       {clean(found.advice)}")
