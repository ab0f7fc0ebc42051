"""`hookonce dev`: everything on this machine, until Ctrl-C."""

import logging
import shlex
import sys
import threading

import click

from hookonce.receiver.cli.dev import reloading
from hookonce.receiver.cli.dev.screen import Screen
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.dev import file_watch
from hookonce.receiver.dev.stack import stack


def _words(_context: click.Context, parameter: click.Parameter, command: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command or ""))
    except ValueError as error:
        raise click.BadParameter(f"{command!r} is no command of a shell: {error}", param=parameter) from None


@click.command(
    epilog=examples(
        "hookonce dev", "hookonce dev --port 8080", "hookonce dev --worker 'python manage.py hookonce_worker'"
    )
)
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Where to listen."
)
@click.option(
    "--worker",
    metavar="COMMAND",
    callback=_words,
    help="What to run as the worker instead of `hookonce worker`: 'python manage.py hookonce_worker'.",
)
@click.option(
    "--reload/--no-reload",
    "is_reloading",
    default=True,
    help="Load what is saved at once, or not until a restart.",
)
def dev(port: int, worker: tuple[str, ...], *, is_reloading: bool) -> None:
    """Run the whole stack here until Ctrl-C, with a line per delivery and per run.

    PostgreSQL and Valkey run from wheels, their data in .hookonce/ (or HOOKONCE_DATA), unless DATABASE_URL
    or REDIS_URL name others. Sources without a secret get a generated one; with no source configured there
    are `stripe` and `github`. Handlers, providers, hookonce.toml and .env are loaded again when they change.
    """
    logging.basicConfig(format="hookonce: %(message)s", level=logging.WARNING)
    if is_reloading and not file_watch.can_watch():
        click.echo(
            "hookonce: files are not watched; pip install 'hookonce[embedded]' brings what can", err=True
        )
        is_reloading = False
    with stack(port) as running:
        screen = Screen(running, worker, is_watching=is_reloading)

        def beside(ended: threading.Event) -> None:
            if is_reloading:
                threading.Thread(target=reloading.follow, args=(running, ended), daemon=True).start()
            screen.begin(ended)

        status = running.run(screen.show, beside, worker=worker, patient=is_reloading)
    click.echo("stopped")
    sys.exit(status)
