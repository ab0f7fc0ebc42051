"""`hookonce dev`: everything on this machine, until Ctrl-C."""

import logging
import shlex
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from hookonce.receiver.cli.dev import reloading
from hookonce.receiver.cli.dev.pulling import Origin, Pulling
from hookonce.receiver.cli.dev.screen import Screen
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.dev import file_watch
from hookonce.receiver.dev.stack import stack
from hookonce.receiver.remote import profiles
from hookonce.receiver.remote.pull import Wanted

USUAL_SPAN = timedelta(days=1)
"""How far back `--from` begins unless one says since when."""


def _origin(options: Mapping[str, Any]) -> Origin | None:
    """Return from where events are pulled. Raises: `click.UsageError`, `RemoteError`."""
    if options["origin"] is None:
        if any(options[name] for name in ("since", "source", "kind", "follow", "as_real")):
            raise click.UsageError(
                "--since, --source, --type, --follow and --as-real say what --from pulls; name it"
            )
        return None
    profile = profiles.find(options["origin"])
    since = options["since"] or datetime.now(UTC) - USUAL_SPAN
    wanted = Wanted(since, options["source"], options["kind"])
    return Origin(profile, wanted, follows=options["follow"], is_test=not options["as_real"])


def _words(_context: click.Context, parameter: click.Parameter, command: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command or ""))
    except ValueError as error:
        raise click.BadParameter(f"{command!r} is no command of a shell: {error}", param=parameter) from None


@click.command(
    epilog=examples(
        "hookonce dev",
        "hookonce dev --port 8080",
        "hookonce dev --worker 'python manage.py hookonce_worker'",
        "hookonce dev --from https://inbox.example --since 2h --type 'invoice.*' --follow",
    )
)
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen at."
)
@click.option(
    "--worker",
    metavar="COMMAND",
    callback=_words,
    help="Command to run as the worker instead of `hookonce worker`: 'python manage.py hookonce_worker'.",
)
@click.option(
    "--reload/--no-reload",
    "is_reloading",
    default=True,
    help="Load what is saved at once, or not until a restart.",
)
@click.option(
    "--from", "origin", metavar="URL|NAME", help="Pull events of this inbox; `hookonce login` first."
)
@click.option(
    "--since", type=SINCE, help="With --from: what came since then (2h, yesterday); default: a day."
)
@click.option("--source", help="With --from: only of this source.")
@click.option("--type", "kind", help="With --from: only of this type; * stands for any text (invoice.*).")
@click.option("--follow", is_flag=True, help="With --from: continue with what comes there later.")
@click.option("--as-real", is_flag=True, help="With --from: not as test events.")
def dev(port: int, worker: tuple[str, ...], *, is_reloading: bool, **pulled: Any) -> None:  # noqa: ANN401  options
    """Run the whole stack here until Ctrl-C, with a line per delivery and per run.

    PostgreSQL and Valkey run from wheels, their data in .hookonce/ (or HOOKONCE_DATA), unless DATABASE_URL
    or REDIS_URL name others. Sources without a secret get a generated one; with no source configured there
    are `stripe` and `github`. Handlers, providers, hookonce.toml and .env are loaded again when they change.
    With --from, events of another inbox come here, once each and in order, and go on where they stopped the last time.
    """
    origin = _origin(pulled)
    logging.basicConfig(format="hookonce: %(message)s", level=logging.WARNING)
    if is_reloading and not file_watch.can_watch():
        tell("hookonce: files are not watched; pip install 'hookonce[embedded]' brings what can")
        is_reloading = False
    began = time.time()
    with stack(port) as running, ExitStack() as kept:
        screen = Screen(running, worker, kept, is_watching=is_reloading)

        def beside(ended: threading.Event) -> None:
            if is_reloading:
                threading.Thread(target=reloading.follow, args=(running, ended, began), daemon=True).start()
            screen.begin(ended)
            if origin is not None:
                Pulling(running, origin).follow(ended)

        status = running.run(screen.show, beside, worker=worker, patient=is_reloading)
    click.echo("stopped")
    sys.exit(status)
