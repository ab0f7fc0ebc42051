"""`hookonce dev`: everything on this machine, until Ctrl-C."""

import logging
import sys

import click

from receiver.admin.sessions import Sessions
from receiver.cli import local
from receiver.stack import Stack, stack
from receiver.stack_lines import readable
from receiver.stack_secrets import STATE

_NO_HANDLERS = """\
no handlers yet, so every event ends as `ignored`. Write one, in handlers.py here:

    from jobs import on

    @on("stripe", "invoice.paid")
    def paid(event, tx):
        print(event.data["id"])

and start again with HOOKONCE_HANDLERS=handlers, or with this in hookonce.toml:

    [receiver]
    handlers = ["handlers"]
"""


@click.command()
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Where to listen."
)
def dev(port: int) -> None:
    """Run the whole stack here until Ctrl-C, with a line per delivery and per run.

    PostgreSQL and Valkey run from wheels, their data in .hookonce/ (or HOOKONCE_DATA), unless DATABASE_URL
    or REDIS_URL name others. Sources without a secret get a generated one; with no source configured there
    are `stripe` and `github`.
    """
    logging.basicConfig(format="hookonce: %(message)s", level=logging.WARNING)
    with stack(port) as running:
        _introduce(running)
        status = running.run(
            _show, lambda _: click.echo(f"ready: listening on {running.url}; Ctrl-C stops all")
        )
    click.echo("stopped")
    sys.exit(status)


def _introduce(running: Stack) -> None:
    generated = local.dev(running.settings.data).secrets
    for source in running.settings.sources.values():
        is_ours = source.secrets[:1] == (generated.get(source.name),)
        secret = f"secret {source.secrets[0]}" if is_ours else "secret as configured"
        click.echo(f"{source.name:<12}  {running.hook(source.name)}\n{'':<12}  {secret}")
    link = Sessions(running.settings.admin_token).link()
    click.echo(f"\ndashboard     {running.url}/admin/sign-in#link={link}")
    click.echo(f"{'':<12}  (once; later, with the admin_token in {running.settings.data / STATE})")
    handlers = ", ".join(running.settings.handlers)
    click.echo(f"\nhandlers: {handlers}\n" if handlers else f"\n{_NO_HANDLERS}")


def _show(_child: str, line: str) -> None:
    shown = readable(line)
    if shown is not None:
        click.echo(shown)
