"""The output of `hookonce dev`: a line per delivery and per run, and why attempts failed."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import click
import psycopg

from hookonce.receiver.cli.dev.introduction import introduce, trigger_line
from hookonce.receiver.cli.output import tracebacks
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.printing import echo, put, say
from hookonce.receiver.cli.output.times import soon
from hookonce.receiver.dev import log_lines
from hookonce.receiver.dev.log_lines import FailedRun
from hookonce.receiver.dev.stack import Stack
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries.failures import just_failed

_IMPORT_TIMEOUT = 10.0
"""Seconds; whoever imports for longer is introduced all the same."""
_POLL = 0.05
_INDENT = " " * 10
"""The margin of a line that continues the one before it: as wide as the time."""


class Screen:
    """Shows what the children say, and why attempts failed."""

    def __init__(self, running: Stack, worker: Sequence[str], *, is_watching: bool) -> None:
        """Show what runs; `worker` is the command of a worker of the user's own, who may not say what it imports."""
        self._running = running
        self._worker = worker
        self._is_watching = is_watching
        self._settled = threading.Event()
        self._is_introduced = False
        self._ledger: psycopg.Connection | None = None
        self._shown: dict[str, list[str]] = {}  # by handler

    def begin(self, ended: threading.Event) -> None:
        """Introduce what runs, once the worker has imported its handlers or can't: what is wrong stands alone."""
        says_so = self._running.is_logging_info and not self._worker
        until = time.monotonic() + (_IMPORT_TIMEOUT if says_so else 0)
        while not self._settled.wait(_POLL) and time.monotonic() < until:
            if ended.is_set():
                return
        self._is_introduced = True
        introduce(self._running, self._worker)
        watched = "; what you save is loaded at once" if self._is_watching else ""
        put(f"ready: listening on {self._running.url}{watched}; Ctrl-C stops all")
        if line := trigger_line(self._running):
            click.echo(f"try it, in a second terminal here: {line}")

    def show(self, _child: str, line: str) -> None:
        """Show a line of a child's, unless it is of no interest."""
        if log_lines.handlers_imported(line):
            self._settled.set()
            if self._is_introduced:
                number = log_lines.number_of_handlers(line)
                loaded = paint("ok", f"{'loaded':<9}")
                say(f"{'':<12}  {loaded}  {number} handler{'' if number == 1 else 's'}")
        elif log_lines.waits_to_be_mended(line):
            self._settled.set()
        failed = log_lines.failed_run(line)
        failure = self._failure(failed) if failed else None
        shown = log_lines.readable(line, paint, failure["error"] if failure else None)
        if shown is not None:
            put(shown, _INDENT)
        lines = tracebacks.lines(failure["frames"], failure["unreadable"]) if failure else []
        if failed and lines:
            is_known = self._shown.get(failed.handler) == lines
            self._shown[failed.handler] = lines
            for each in ["(the same traceback as before)"] if is_known else lines:
                put(f"    {each}", _INDENT)
        if failure and failure["next_at"]:
            echo(f"    the next attempt {soon(failure['next_at'])}")

    def _failure(self, failed: FailedRun) -> dict[str, Any] | None:
        """Read a failure from the ledger; a ledger that is away costs no more than that."""
        settings = self._running.settings
        try:
            self._ledger = self._ledger or connections.connect(settings.database_url)
            return just_failed(self._ledger, *failed, settings.keyring)
        except (psycopg.Error, connections.LedgerUnavailable):
            self._ledger = None
            return None
