"""What was under way beside others when a process died, run in a child of this one with nothing beside it.

Whoever kills a process may be any of those that were under way in it: none of them is charged. The child runs them one
after the other, and dies of the one that kills; that one was alone then, and has used an attempt up.
"""

import contextlib
import logging
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from hookonce.jobs.drain import WORKER_ENDED
from hookonce.jobs.last_attempt import LastAttempt
from hookonce.jobs.stopping import hurrying
from hookonce.receiver.ledger.runs import due_events, transitions
from hookonce.receiver.processes import spawn

log = logging.getLogger(__name__)

STOPS_WITHIN = 19.0
"""Seconds; what the slots are at has a little longer."""


_POLL = 0.05  # seconds


class Suspects:
    """The child of one process, started when there is something for it; for one thread, which it does not outlive."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it by `command`, with `--place` and a path for what it is at."""
        self._command = command
        self._directory = tempfile.TemporaryDirectory(prefix="hookonce-", ignore_cleanup_errors=True)
        self._place = Path(self._directory.name, "suspects")
        self._child: subprocess.Popen[bytes] | None = None

    def tend(self, connection: psycopg.Connection, handlers: Sequence[str]) -> None:
        """Note how the child has ended, or start it if a suspect of these handlers is due."""
        if self._child is not None:
            status = self._child.poll()
            if status is None:
                return
            self._child = None
            if status:
                self._note_end(connection, status)
        if due_events.is_suspect_due(connection, handlers):
            command = [*self._command, "--place", str(self._place)]
            self._child = subprocess.Popen(  # noqa: S603  our own command
                spawn.command(command, on_death=signal.SIGKILL), stdin=subprocess.DEVNULL
            )

    def count(self) -> int:
        """Return how many runs are under way in the child, as of when it was tended last."""
        return int(self._child is not None)

    def stop(self) -> None:
        """Have the child end after the attempt under way, or end it."""
        if self._child is not None:
            self._child.terminate()
            until = time.monotonic() + STOPS_WITHIN
            while self._child.poll() is None and time.monotonic() < until:
                if hurrying.wait(_POLL):
                    break
            self._child.kill()
            self._child.wait()
        self._directory.cleanup()

    def _note_end(self, connection: psycopg.Connection, status: int) -> None:
        how = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
        last = LastAttempt(self._place)
        last.ended(how)
        if found := last.take():
            log.warning(
                "what was run by itself has ended its process (%s)", how, extra={"event": found[0].event}
            )
            with contextlib.suppress(psycopg.Error):  # its lease's end says as much
                transitions.note_end_of_worker(connection, found[0], f"{WORKER_ENDED}: {how}")
