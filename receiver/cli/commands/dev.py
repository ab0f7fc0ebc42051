"""`hookonce dev`: everything on this machine, until Ctrl-C."""

import logging
import os
import shlex
import sys
import threading
import time

import click
import psycopg

from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.output.tracebacks import own_frames_first
from hookonce.receiver.dashboard.sessions import Sessions
from hookonce.receiver.dev.generated_secrets import STATE
from hookonce.receiver.dev.log_lines import FailedRun, failed_run, handlers_imported, readable
from hookonce.receiver.dev.stack import Stack, stack
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries.failures import just_failed

_IMPORT_TIMEOUT = 10.0
"""Seconds; whoever imports for longer is introduced all the same."""
_POLL = 0.05
_NO_HANDLERS = """\
no handlers yet, so every event ends as `ignored`. Write one, in handlers.py here:

    from hookonce import on

    @on("stripe", "invoice.paid")
    def paid(event, tx):
        print(event.data["id"])

and start again with HOOKONCE_HANDLERS=handlers, or with this in hookonce.toml:

    [receiver]
    handlers = ["handlers"]
"""


def _words(_context: click.Context, parameter: click.Parameter, command: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command or ""))
    except ValueError as error:
        raise click.BadParameter(f"{command!r} is no command of a shell: {error}", param=parameter) from None


@click.command()
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Where to listen."
)
@click.option(
    "--worker",
    metavar="COMMAND",
    callback=_words,
    help="What to run as the worker instead of `hookonce worker`: 'python manage.py hookonce_worker'.",
)
def dev(port: int, worker: tuple[str, ...]) -> None:
    """Run the whole stack here until Ctrl-C, with a line per delivery and per run.

    PostgreSQL and Valkey run from wheels, their data in .hookonce/ (or HOOKONCE_DATA), unless DATABASE_URL
    or REDIS_URL name others. Sources without a secret get a generated one; with no source configured there
    are `stripe` and `github`.
    """
    logging.basicConfig(format="hookonce: %(message)s", level=logging.WARNING)
    with stack(port) as running:
        screen = _Screen(running, worker)
        status = running.run(screen.show, screen.begin, worker=worker)
    click.echo("stopped")
    sys.exit(status)


def _introduce(running: Stack, worker: tuple[str, ...]) -> None:
    generated = local_sources.dev(running.settings.data).secrets
    for source in running.settings.sources.values():
        is_ours = source.secrets[:1] == (generated.get(source.name),)
        secret = f"secret {source.secrets[0]}" if is_ours else "secret as configured"
        click.echo(f"{source.name:<12}  {running.hook(source.name)}\n{'':<12}  {secret}")
    link = Sessions(running.settings.admin_token).link()
    click.echo(f"\ndashboard     {running.url}/admin/sign-in#link={link}")
    click.echo(f"{'':<12}  (once; later, with the admin_token in {running.settings.data / STATE})")
    handlers = " ".join(worker) or ", ".join(running.settings.handlers)
    click.echo(f"\nhandlers: {handlers}\n" if handlers else f"\n{_NO_HANDLERS}")


class _Screen:
    """Shows what the children say, and why attempts failed."""

    def __init__(self, running: Stack, worker: tuple[str, ...]) -> None:
        """Show what runs; `worker` is the command of a worker of the user's own, who may not say what it imports."""
        self._running = running
        self._worker = worker
        self._settings = running.settings
        self._has_handlers = threading.Event()
        self._ledger: psycopg.Connection | None = None
        self._shown: dict[str, str] = {}  # by handler

    def begin(self, ended: threading.Event) -> None:
        """Introduce what runs, once the worker has imported its handlers: what is wrong with them stands alone."""
        says_so = self._running.is_logging_info and not self._worker
        until = time.monotonic() + (_IMPORT_TIMEOUT if says_so else 0)
        while not self._has_handlers.wait(_POLL) and time.monotonic() < until:
            if ended.is_set():
                return
        _introduce(self._running, self._worker)
        click.echo(f"ready: listening on {self._running.url}; Ctrl-C stops all")

    def show(self, _child: str, line: str) -> None:
        """Show a line of a child's, unless it is of no interest."""
        if handlers_imported(line):
            self._has_handlers.set()
        shown = readable(line)
        if shown is not None:
            _echo(shown)
        if (failed := failed_run(line)) and (traceback := self._traceback(failed)):
            is_known = self._shown.get(failed.handler) == traceback
            self._shown[failed.handler] = traceback
            _echo("    (the same traceback as before)" if is_known else own_frames_first(traceback))

    def _traceback(self, failed: FailedRun) -> str | None:
        """Read a traceback from the ledger; a ledger that is away costs no more than that."""
        settings = self._settings
        try:
            self._ledger = self._ledger or connections.connect(settings.database_url)
            found = just_failed(self._ledger, *failed, settings.keyring)
        except (psycopg.Error, connections.LedgerUnavailable):
            self._ledger = None
            return None
        return None if found is None else found["traceback"] or found["unreadable"]


def _echo(text: str) -> None:
    """Print in colour where a terminal shows it, and nobody asked for none (https://no-color.org)."""
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)
