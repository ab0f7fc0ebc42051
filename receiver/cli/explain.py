"""`hookonce explain` and `hookonce verify`: a captured delivery, and whether and why it is (not) genuine."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from receiver.cli import completing, local, proofs
from receiver.cli.exits import Exit
from receiver.cli.servers import configured
from receiver.cli.tables import clean, print_json, show
from receiver.cli.times import SINCE
from receiver.explain import Case
from receiver.explain_causes import Explanation
from receiver.explain_causes import explain as explained
from receiver.keys import Keys
from receiver.settings import Settings
from receiver.sources import Source

_FILE = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="REQUEST.http"
)
_AT = click.option(
    "--at",
    type=SINCE,
    help="As of this time; default is when it was captured, if the file says so, else now.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_PROVIDER = click.option("--provider", help="With this provider.", shell_complete=completing.PROVIDERS)


@click.command()
@_FILE
@proofs.SOURCE
@_PROVIDER
@proofs.SECRET
@_AT
@_JSON
def explain(*, as_json: bool, **options: object) -> None:
    """Explain why a delivery is refused: each check, what it expects, what was found, and the likely cause.

    REQUEST.http is what `hookonce capture` writes. Neither a secret nor a right signature is ever shown. Exit 1 if
    it is refused.
    """
    settings = configured()
    source, found = _explained(settings, **options)  # type: ignore[arg-type]
    if as_json:
        print_json({"source": source.name, **asdict(found)})
    else:
        _print(found)
    if found.reason:
        sys.exit(Exit.FAILURE)


@click.command()
@_FILE
@proofs.SOURCE
@_PROVIDER
@proofs.SECRET
@_AT
@_JSON
def verify(*, as_json: bool, **options: object) -> None:
    """Verify a captured delivery with a source's secrets, or a provider's given by reference; exit 1 if it is forged.

    Prints the events it holds. `hookonce explain` says more about one that is refused.
    """
    settings = configured()
    source, found = _explained(settings, **options)  # type: ignore[arg-type]
    if found.reason:
        click.echo(f"hookonce: refused, {found.reason}: {clean(found.detail)}", err=True)
        sys.exit(Exit.FAILURE)
    sent = proofs.delivery(proofs.request(options["file"]), source)  # type: ignore[arg-type]
    opened = source.provider.opened
    events = source.provider.events(opened(sent, source.secrets) if opened else sent)
    slot = f" under secret {found.slot}" if found.slot else ""
    click.echo(f"genuine{slot}, {len(events)} event{'' if len(events) == 1 else 's'}", err=True)
    rows = [(event.id, event.type, event.account, event.occurred_at) for event in events]
    columns = ("event_id", "type", "account", "occurred_at")
    if as_json:
        for row in rows:
            print_json(dict(zip(columns, row, strict=True)))
    else:
        show([name.replace("_", " ") for name in columns], rows)


def _explained(  # noqa: PLR0913  options
    settings: Settings,
    *,
    file: Path,
    source: str | None,
    provider: str | None,
    references: tuple[str, ...],
    at: datetime | None,
) -> tuple[Source, Explanation]:
    proved = proofs.prover(settings, source, provider, references)
    sent = proofs.request(file)
    keys = Keys()
    case = Case(
        provider=proved.provider,
        delivery=proofs.delivery(sent, proved),
        secrets=proved.secrets,
        now=at or sent.at or datetime.now(UTC),
        others={
            name: (each.provider, each.secrets)
            for name, each in local.sources(settings).items()
            if name != proved.name and not each.provider.takes_keys
        },
        verify=lambda delivery, secrets, now: keys.call(
            proved, proved.provider.verify, delivery, secrets, now
        ),
    )
    return proved, explained(case)


def _print(found: Explanation) -> None:
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
