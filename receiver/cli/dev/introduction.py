"""The introduction of `hookonce dev`: who may send where, with which secret, and how to try it."""

from collections.abc import Iterator, Sequence

import click

from hookonce.receiver.cli.output.printing import put
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.config.commands import Command
from hookonce.receiver.dashboard.sessions import Sessions
from hookonce.receiver.dev.generated_secrets import STATE
from hookonce.receiver.dev.stack import Stack
from hookonce.receiver.samples import files
from hookonce.receiver.source import Source

_NO_HANDLERS = """\
no handlers yet, so every event ends as `ignored`. `hookonce init` writes one; or write it in handlers.py here:

    from hookonce import on

    @on("stripe", "invoice.paid")
    def paid(event, tx):
        print(event.data["id"])

and name the module in hookonce.toml, which is read again when it changes:

    [receiver]
    handlers = ["handlers"]
"""
FETCHERS = {
    "stripe": "stripe listen --forward-to {url}",
    "github": "gh webhook forward --repo=OWNER/REPO --events=push --url={url} --secret=THE_SECRET",
}
"""Programs of senders that bring real events to this machine, by provider (docs/how-to/tunnels.md)."""
TUNNEL = "cloudflared tunnel --url {url}"
_INDENT = " " * 14


def introduce(running: Stack, worker: Sequence[str]) -> None:
    """Print all of it but the last lines; `worker` is the command of a worker of the user's own."""
    for source in running.settings.sources.values():
        introduce_source(running, source)
    for command in running.settings.commands.values():
        _echo_all(_command(running, command))
    if any(
        each.broker is None and each.provider.name not in FETCHERS
        for each in running.settings.sources.values()
    ):
        click.echo(
            f"\ntunnel        {TUNNEL.format(url=running.url)}\n{_INDENT}gives the senders an address: https://…/hooks/NAME"
        )
    link = Sessions(running.settings.admin.token).link()
    click.echo(f"\nconsole       {running.url}/admin/sign-in#link={link}")
    click.echo(f"{_INDENT}(works once; later use the admin_token in {running.settings.data / STATE})")
    handlers = " ".join(worker) or ", ".join(running.settings.handlers)
    if handlers:
        click.echo(f"\nhandlers: {handlers}\n")
    else:
        click.echo("" if running.settings.commands and not running.settings.sources else f"\n{_NO_HANDLERS}")


def introduce_source(running: Stack, source: Source) -> None:
    """Print where a source is reached, with which secret, and how from outside."""
    _echo_all(_source(running, source))


def trigger_line(running: Stack) -> str | None:
    """Return the command that sends the first source a sample; None without a source."""
    for source in (each for each in running.settings.sources.values() if each.broker is None):
        kind = next(iter(files.types(source.provider.name)), "")
        return f"hookonce trigger {source.name} {kind}".rstrip()
    return None


def _source(running: Stack, source: Source) -> Iterator[str]:
    if source.broker is not None:
        yield f"{source.name:<12}  taken from {source.shown_url}"
        yield f"{_INDENT}by `hookonce consume {source.name}`, in another terminal here"
        return
    url = running.hook(source.name)
    yield f"{source.name:<12}  {url}"
    if source.name in running.made_up:
        yield f"{_INDENT}secret {source.secrets[0]}"
        yield f"{_INDENT}(made up, since {running.made_up[source.name]} is not set)"
    elif source.secrets:
        yield f"{_INDENT}secret as configured"
    if fetcher := FETCHERS.get(source.provider.name):
        yield f"{_INDENT}from outside: {fetcher.format(url=url)}"
    else:
        yield f"{_INDENT}from outside: by a tunnel, https://…/hooks/{source.name}"


def _command(running: Stack, command: Command) -> Iterator[str]:
    yield f"{command.name:<12}  POST {running.url}/commands/{command.name}"
    yield f"{_INDENT}command of {', '.join(command.auth)}, done by {command.handler}"


def _echo_all(lines: Iterator[str]) -> None:
    for line in lines:
        put(clean(line), "  " if line.startswith(" ") else _INDENT)
