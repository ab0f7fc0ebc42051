"""`hookonce sign`: what a sender would send with a body, or a ready curl."""

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO

import click

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit import SignOptions
from hookonce.receiver.cli import local_sources, signing_sources
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.desk.models import as_text


@click.command()
@click.argument("names", nargs=-1, metavar="[PROVIDER] BODYFILE", shell_complete=completion_types.PROVIDERS)
@signing_sources.SOURCE
@signing_sources.SECRET
@click.option("--event-id", help="The sender's id, where it is in a header.")
@click.option("--type", "kind", help="The type, where it is in a header.")
@click.option("--at", type=SINCE, help="Sign as of this time; default is now.")
@click.option("--url", help="The URL it is sent to; default is the receiver on this machine.")
@click.option("--curl", is_flag=True, help="Print a curl command that sends it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def sign(  # noqa: PLR0913, PLR0917  its options
    names: tuple[str, ...],
    source: str | None,
    references: tuple[str, ...],
    event_id: str | None,
    kind: str | None,
    at: datetime | None,
    url: str | None,
    *,
    curl: bool,
    as_json: bool,
) -> None:
    """Sign a body as a sender would: with a source's first secret, or a provider's given as --secret env:NAME.

    Prints the headers and, where the sender signs in it, the body; BODYFILE may be - for stdin. What it prints is a
    valid signature: treat it as such.
    """
    if len(names) != (1 if source else 2):
        raise click.UsageError("expected PROVIDER BODYFILE, or --source NAME BODYFILE")
    settings = configured()
    signer = signing_sources.prover(settings, source, None if source else names[0], references)
    if not signer.secrets:
        where = "set one for the source" if source else "name it with --secret env:NAME"
        raise click.ClickException(f"there is no secret to sign with; {where}")
    target = url or f"{local_sources.base_url(settings)}/hooks/{signer.name}"
    said: SignOptions = {"url": target}
    if event_id is not None:
        said["event_id"] = event_id
    if kind is not None:
        said["type"] = kind
    body = _body(names[-1])
    try:
        made = signer.provider.delivery(body, signer.secrets[0], at or datetime.now(UTC), **said)
    except ValueError as error:
        raise click.ClickException(f"nothing to sign with: {error}") from None
    except Rejected as refused:
        raise click.ClickException(f"this body can't be signed: {refused.detail}") from None
    made = replace(made, url=local_sources.addressed(made.url, made))
    _print(made, None if made.body != body else names[-1], curl=curl, as_json=as_json)


def _body(name: str) -> bytes:
    try:
        file: IO[bytes]
        with click.open_file(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise click.ClickException(f"{name} can't be read: {error.strerror}") from None


def _print(made: Delivery, name: str | None, *, curl: bool, as_json: bool) -> None:
    """Print what is sent; the body only if it is no longer that of the file `name`, which is None then."""
    if as_json:
        document = {"method": made.method, "url": made.url, "headers": dict(made.headers)}
        print_json(document if name else document | as_text(made.body))
        return
    text = "" if name else made.body.decode(errors="backslashreplace")
    if curl:
        headers = [part for key, value in made.headers.items() for part in ("-H", f"{key}: {value}")]
        data = ["--data-binary", f"@{name}"] if name else ["--data-raw", text]
        click.echo(shlex.join(["curl", "-X", made.method, *headers, *data, made.url]))
        return
    for key, value in made.headers.items():
        click.echo(f"{clean(key)}: {clean(value)}")
    if not name:
        click.echo(f"\n{clean(text, lines=True)}")
