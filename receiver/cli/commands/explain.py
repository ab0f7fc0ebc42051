"""`hookonce explain` and `hookonce verify`: a captured delivery, and whether and why it is (not) genuine."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from hookonce.providers import Event
from hookonce.receiver.cli import local_sources, signing_sources
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.desk.rejected import ExplanationModel
from hookonce.receiver.intake.explain import causes
from hookonce.receiver.intake.explain.causes import Explanation
from hookonce.receiver.intake.explain.checks import case_of
from hookonce.receiver.source import Source

_FILE = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="REQUEST.http"
)
_AT = click.option(
    "--at",
    type=SINCE,
    help="As of this time; default is when it was captured, if the file says so, else now.",
)
_SHOWN_IDS = 20
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_PROVIDER = click.option("--provider", help="With this provider.", shell_complete=completion_types.PROVIDERS)


@click.command(epilog=examples("hookonce explain delivery.http --source stripe"))
@_FILE
@signing_sources.SOURCE
@_PROVIDER
@signing_sources.SECRET
@_AT
@_JSON
def explain(*, as_json: bool, **options: object) -> None:
    """Explain why a delivery is rejected: each check, what it expects, what was found, and the likely cause.

    REQUEST.http is what `hookonce capture` writes. Neither a secret nor a right signature is ever shown. Exit 1 if
    it is rejected.
    """
    settings = configured()
    source, found = _explained(settings, **options)  # type: ignore[arg-type]
    ids = [] if found.reason else [event.id for event in _events(source, options["file"])]
    if as_json:
        print_json({"source": source.name, **asdict(found), "event_ids": ids})
    else:
        print_explanation(found)
        for event_id in ids[:_SHOWN_IDS]:
            click.echo(f"id       {clean(event_id)}")
    if found.reason:
        sys.exit(Exit.FAILURE)


@click.command()
@_FILE
@signing_sources.SOURCE
@_PROVIDER
@signing_sources.SECRET
@_AT
@_JSON
def verify(*, as_json: bool, **options: object) -> None:
    """Verify a captured delivery with a source's secrets, or a provider's given by reference; exit 1 if it is forged.

    Prints the events it holds. `hookonce explain` says more about one that is rejected.
    """
    settings = configured()
    source, found = _explained(settings, **options)  # type: ignore[arg-type]
    if found.reason:
        tell(f"hookonce: refused, {found.reason}: {clean(found.detail)}")
        sys.exit(Exit.FAILURE)
    events = _events(source, options["file"])
    slot = f" under secret {found.slot}" if found.slot else ""
    tell(f"genuine{slot}, {len(events)} event{'' if len(events) == 1 else 's'}")
    rows = [(event.id, event.type, event.account, event.occurred_at) for event in events]
    columns = ("event_id", "type", "account", "occurred_at")
    if as_json:
        for row in rows:
            print_json(dict(zip(columns, row, strict=True)))
    else:
        show([name.replace("_", " ") for name in columns], rows)


def _events(source: Source, file: object) -> list[Event]:
    """Return the events of a genuine delivery, with the ids that the source gives them."""
    sent = signing_sources.delivery(signing_sources.request(file), source)  # type: ignore[arg-type]
    decode = source.provider.decode
    return source.provider.events(decode(sent, source.secrets) if decode else sent)


def _explained(  # noqa: PLR0913  options
    settings: Settings,
    *,
    file: Path,
    source: str | None,
    provider: str | None,
    references: tuple[str, ...],
    at: datetime | None,
) -> tuple[Source, Explanation]:
    proved = signing_sources.prover(settings, source, provider, references)
    sent = signing_sources.request(file)
    case = case_of(
        proved,
        signing_sources.delivery(sent, proved),
        at or sent.at or datetime.now(UTC),
        local_sources.sources(settings),
    )
    return proved, causes.explain(case)


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
