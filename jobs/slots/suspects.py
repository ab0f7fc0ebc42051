"""What may have been under way when a process died, run in children of this one with nothing beside it.

Any run that was under way when a process died may have killed it: none of them is charged, and each becomes a suspect
(`receiver.ledger.runs.takeover`). A child runs them one
after the other, and dies of the one that kills; that one was alone then, and has used an attempt up. A child whose
parent is gone ends after the suspect that it is at, and takes one in any case: however often a process dies, each of
its starts brings the suspects on by one.
"""

import contextlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import psycopg

from hookonce.jobs.claimer import AWAY, WORKER_ENDED
from hookonce.jobs.slots.suspect_child import SuspectChild
from hookonce.jobs.stopping import hurrying
from hookonce.receiver.ledger.runs import due_rows, takeover
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.processes.child import how_ended

log = logging.getLogger(__name__)

MOST = 4
"""Children at once, those that a process before has left behind among them."""
LONG = timedelta(seconds=10)
"""How long one suspect may keep the others waiting: then another child is started for them."""
STOPS_WITHIN = timedelta(seconds=19)
"""How long the suspects under way may go on when the process is told to stop; the slots have a little longer."""


class Suspects:
    """The children of one process, started when there is something for them; for one thread."""

    def __init__(
        self,
        command: Sequence[str],
        place: Path | None = None,
        *,
        most: int = MOST,
        long: timedelta = LONG,
        stops_within: timedelta = STOPS_WITHIN,
    ) -> None:
        """Start them by `command`; `place`: a path without suffix that whoever comes after this process has, too."""
        self.handlers: takeover.Handlers | None = None
        """What is known of the handlers that suspects are of."""
        self._command = command
        self._long, self._stops_within = long.total_seconds(), stops_within.total_seconds()
        self._directory = (
            tempfile.TemporaryDirectory(prefix="hookonce-", ignore_cleanup_errors=True)
            if place is None
            else None
        )
        base = Path(self._directory.name, "0") if self._directory else place or Path()
        self._children = [SuspectChild(base.with_name(f"{base.name}-suspects-{n}")) for n in range(most)]

    def tend(self, connection: psycopg.Connection, handlers: Sequence[str]) -> bool:
        """Note how children have ended, and start one if a suspect of these handlers is due and none will take it.

        Return whether any of ours is at work.
        """
        for child in self._children:
            if status := child.take_status():
                self._note_end(connection, child, status)
        if any(child.is_ours and not child.is_at_one_for(self._long) for child in self._children):
            return True
        free = next((child for child in self._children if not child.is_there), None)
        if free is not None and due_rows.is_suspect_due(connection, handlers):
            try:
                free.start(self._command)
            except OSError as error:  # out of processes, memory or room
                log.warning("what is to be run alone waits: %s", error.strerror)
        return self.count() > 0

    def count(self) -> int:
        """Return how many of our children are at work."""
        return sum(child.is_ours for child in self._children)

    def stop(self, connect: Callable[[], AbstractContextManager[psycopg.Connection]]) -> None:
        """Have the children end after what they are at, or end them, and give that back, uncounted."""
        told = [child for child in self._children if child.is_there]
        for child in told:
            child.tell_to_end()
        until = time.monotonic() + self._stops_within
        for child in told:
            if child.wait(until, unless=hurrying) or (attempt := child.kill()) is None:
                continue
            try:
                with connect() as connection:
                    if takeover.give_back(connection, attempt.token):
                        log.warning("given back, not counted: event %d, which was run alone", attempt.event)
            except AWAY as error:  # its lease's end charges it
                log.warning("what was run alone was not given back: %s", type(error).__name__)
        if self._directory is not None:
            self._directory.cleanup()

    def _end(self, how: str) -> WorkerEnd:
        return WorkerEnd(f"{WORKER_ENDED}: {how}", self.handlers)

    def _note_end(self, connection: psycopg.Connection, child: SuspectChild, status: int) -> None:
        how = how_ended(status)
        if attempt := child.take_attempt():
            with contextlib.suppress(psycopg.Error):  # its lease's end says as much
                if status == os.EX_UNAVAILABLE:  # it ended because the ledger was away
                    takeover.give_back(connection, attempt.token)
                elif takeover.take_over_of(connection, [attempt.token], self._end(how)):
                    log.warning(
                        "what was run by itself has ended its process (%s)",
                        how,
                        extra={"event": attempt.event},
                    )
