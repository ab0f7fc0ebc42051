"""Which claims a worker holds, kept where it outlives the worker: the next one takes them over at once, and says why.

Their leases alone would tell that the worker has gone, half a minute later, and not how. The exit status and the signal
are the supervisor's to know, and the claims the worker's. Both are written to files for which the supervisor makes a
place, one pair for each worker.
"""

import os
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hookonce.jobs.attempts.own_claims import OwnClaims


class Lost(NamedTuple):
    """The claims that a worker held when it ended, by their tokens."""

    how: str
    tokens: Sequence[uuid.UUID]


class LastClaims:
    """The claims that a worker holds; `place` is a path without suffix that nobody else uses."""

    def __init__(self, place: Path) -> None:
        self._held, self._ended = place.with_suffix(".held"), place.with_suffix(".ended")
        self._file: int | None = None
        self._lock = threading.Lock()

    def hold(self, held: OwnClaims) -> None:
        """Write down all claims held, a new one among them; where that can't be done, work goes on."""
        with self._lock, suppress(OSError):
            line = " ".join(token.hex for token in held.tokens) + "\n"
            if self._file is None:
                self._file = os.open(self._held, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._file, line.encode(), 0)

    def ended(self, how: str) -> bool:
        """Write down how the worker has ended; return whether it had claimed anything. The supervisor's."""
        try:
            held = self._held.read_bytes().partition(b"\n")[0]
            self._held.unlink()
            if (left := self.left()) is not None:  # of the worker before, which nobody has taken over
                held = b" ".join([held, *(token.hex.encode() for token in left.tokens)])
            self._ended.write_bytes(held + b"\n" + how.encode())
        except FileNotFoundError:
            return False
        except OSError:  # no room, for one: then nobody says it
            return True
        return True

    def let_go(self) -> None:
        """Note that no claim is held any more: nothing is left to be taken over."""
        with suppress(OSError):
            self._held.unlink()

    @property
    def is_left(self) -> bool:
        """Whether the worker before has left something to be taken."""
        return self._ended.exists()

    def left(self) -> Lost | None:
        """Return what the worker before held, and how that one ended, if it had claimed anything."""
        try:
            tokens, _, how = self._ended.read_text(encoding="utf-8").partition("\n")
            return Lost(how, [uuid.UUID(token) for token in tokens.split()])
        except (OSError, ValueError):
            return None

    def forget(self) -> None:
        """Forget what the worker before held, which is taken over."""
        with suppress(OSError):
            self._ended.unlink()
