"""Which claims a worker holds, kept where it outlives the worker: the next one takes them over at once, and says why.

Their leases alone would tell that the worker has gone, half a minute later, and not how. The exit status and the signal
are the supervisor's to know, and the claims the worker's. Both are written to files for which the supervisor makes a
place, one pair for each worker.
"""

import json
import os
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.receiver.ledger.runs.claimed import ClaimedRun, RunKey


class Lost(NamedTuple):
    """What a worker held when it ended: `at`, the first run of its last claim, and the tokens of all its claims."""

    how: str
    at: RunKey
    tokens: Sequence[uuid.UUID]


class LastClaims:
    """The claims that a worker holds; `place` is a path without suffix that nobody else uses."""

    def __init__(self, place: Path) -> None:
        self._held, self._ended = place.with_suffix(".held"), place.with_suffix(".ended")
        self._file: int | None = None
        self._lock = threading.Lock()

    def hold(self, first: ClaimedRun, held: OwnClaims) -> None:
        """Write down the first run of a new claim, and all claims held; where that can't be done, work goes on."""
        with self._lock, suppress(OSError):
            others = [token.hex for token in held.tokens if token != first.token]
            line = json.dumps([first.event.id, first.n, first.token.hex, *others]) + "\n"
            if self._file is None:
                self._file = os.open(self._held, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._file, line.encode(), 0)

    def current(self) -> RunKey | None:
        """Return the first run of the last claim, if there was any; whether it has ended nobody says here."""
        lost = self._read(self._held, "")
        return lost.at if lost else None

    def ended(self, how: str) -> bool:
        """Write down how the worker has ended; return whether it had claimed anything. The supervisor's."""
        try:
            held = self._held.read_bytes()
            self._held.unlink()
            self._ended.write_bytes(held.partition(b"\n")[0] + b"\n" + how.encode())
        except FileNotFoundError:
            return False
        except OSError:  # no room, for one: then nobody says it
            return True
        return True

    def take(self) -> Lost | None:
        """Return what the worker before held, and how that one ended, if it had claimed anything; once."""
        try:
            _, _, how = self._ended.read_text(encoding="utf-8").partition("\n")
            lost = self._read(self._ended, how)
            self._ended.unlink()
        except (OSError, ValueError):
            return None
        return lost

    def forget(self) -> None:
        """Forget what the worker before held, and how it has ended."""
        for file in (self._held, self._ended):
            file.unlink(missing_ok=True)

    @staticmethod
    def _read(file: Path, how: str) -> Lost | None:
        try:
            line, _, _ = file.read_bytes().partition(b"\n")
            event, n, *tokens = json.loads(line)
            held = [uuid.UUID(token) for token in tokens]
            return Lost(how, RunKey(int(event), int(n), held[0]), held)
        except (OSError, ValueError, IndexError):
            return None
