"""The output of `hookonce dev`: a line per delivery and per run, and why attempts failed."""

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import datetime

import click

from hookonce.receiver.cli.connections import UNREACHABLE
from hookonce.receiver.cli.desk import LocalDesk, own_desk
from hookonce.receiver.cli.dev.introduction import introduce, trigger_line
from hookonce.receiver.cli.output import tracebacks
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.printing import echo, put, say
from hookonce.receiver.cli.output.times import soon
from hookonce.receiver.desk.events import EventPath, get_event
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.rows import Failure
from hookonce.receiver.dev import log_lines
from hookonce.receiver.dev.log_lines import FailedRun
from hookonce.receiver.dev.stack import Stack

_IMPORT_TIMEOUT = 10.0
"""Seconds; whoever imports for longer is introduced all the same."""
_POLL = 0.05
_INDENT = " " * 10
"""The margin of a line that continues the one before it: as wide as the time."""


class Screen:
    """Shows what the children say, and why attempts failed."""

    def __init__(self, running: Stack, worker: Sequence[str], kept: ExitStack, *, is_watching: bool) -> None:
        """Show what runs; `worker` is the command of a worker of the user's own, who may not say what it imports.

        A connection to the ledger is `kept` for what failed runs left.
        """
        self._running = running
        self._worker = worker
        self._kept = kept
        self._here: LocalDesk | None = None
        self._is_watching = is_watching
        self._settled = threading.Event()
        self._is_introduced = False
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
        failure, next_at = self._failure(failed) if failed else (None, None)
        shown = log_lines.readable(line, paint, failure.error if failure else None)
        if shown is not None:
            put(shown, _INDENT)
        lines = tracebacks.lines(failure.frames, failure.unreadable) if failure else []
        if failed and lines:
            is_known = self._shown.get(failed.handler) == lines
            self._shown[failed.handler] = lines
            for each in ["(the same traceback as before)"] if is_known else lines:
                put(f"    {each}", _INDENT)
        if next_at:
            echo(f"    the next attempt {soon(next_at)}")

    def _failure(self, failed: FailedRun) -> tuple[Failure | None, datetime | None]:
        """Return what a failed attempt left, and when the next one is due; a ledger that is away costs no more."""
        with suppress(*UNREACHABLE, NotFound):
            if self._here is None or self._here.connection.closed:
                self._here = self._kept.enter_context(own_desk(self._running.settings))
            found = self._here.ask(get_event, which=EventPath(event=str(failed.event)))
            known = [each for each in found.failures if (each.handler, each.attempt) == failed[1:]]
            due = [run.due_at for run in found.runs if run.handler == failed.handler and not run.lease_until]
            return known[-1] if known else None, due[0] if due else None
        return None, None
