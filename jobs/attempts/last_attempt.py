"""Which attempt a worker is at, kept where it outlives the worker, so that the next one can say what became of it.

The lease alone would tell that the worker has gone, and not how: the exit status and the signal are the supervisor's to
know, and the attempt the worker's. Both are written to files that the supervisor makes, one pair for each worker.
"""

import json
import os
import uuid
from contextlib import suppress
from pathlib import Path

from hookonce.receiver.ledger.runs.claimed import Attempt, ClaimedRun


class LastAttempt:
    """The attempt that a worker began last; `place` is a path without suffix that nobody else uses."""

    def __init__(self, place: Path) -> None:
        self._began, self._ended = place.with_suffix(".began"), place.with_suffix(".ended")
        self._file: int | None = None

    def begin(self, run: ClaimedRun) -> None:
        """Write down that an attempt begins; where that can't be written, it goes on all the same."""
        attempt = json.dumps([run.event.id, run.n, run.token.hex]).encode()
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self._began, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._file, attempt + b"\n", 0)

    def ended(self, how: str) -> None:
        """Write down how the worker has ended; the supervisor's."""
        with suppress(OSError):  # no room, for one: then nobody says it
            self._ended.write_text(how, encoding="utf-8")

    def current(self) -> Attempt | None:
        """Return the attempt that was begun last, if any was; whether it has ended nobody says here."""
        try:
            line, _, _ = self._began.read_bytes().partition(b"\n")
            event, n, token = json.loads(line)
            return Attempt(int(event), int(n), uuid.UUID(token))
        except (OSError, ValueError):
            return None

    def forget(self) -> None:
        """Forget what the worker before was at, and how it has ended."""
        for file in (self._began, self._ended):
            file.unlink(missing_ok=True)

    def take(self) -> tuple[Attempt, str] | None:
        """Return the attempt of the worker before, and how that one ended, if it began any; once."""
        try:
            how = self._ended.read_text(encoding="utf-8")
            if (attempt := self.current()) is None:
                return None
            self._ended.unlink()
        except (OSError, ValueError):
            return None
        return attempt, how
