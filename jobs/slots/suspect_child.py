"""A child that runs suspects, and the place where its parent, or whoever comes after that one, finds it.

It outlives its parent: a process that other runs kill must not charge the one that is run alone. So that it is known
all the same, it holds a file locked for as long as it lives, which says who it is; another says what it is at. What a
handler forks there holds the lock as well, and may stay: who has gone by what the file says holds no place.
"""

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.receiver.ledger.runs.claimed import RunKey
from hookonce.receiver.processes import spawn

_POLL = 0.05
_GONE_WITHIN = 5.0
"""Seconds that the kernel may take to end what was killed."""


class SuspectChild:
    """The place of one child; `path` is one without suffix that nobody else uses."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._home = Path.cwd()  # a handler may go elsewhere, where no configuration is found
        self._last = LastClaims(path)
        self._lock = path.with_suffix(".pid")
        self._process: subprocess.Popen[bytes] | None = None
        self._began: RunKey | None = None
        self._seen_at = 0.0

    @property
    def is_ours(self) -> bool:
        """Whether we have started it, and it is at work."""
        process = self._process  # which the thread that tends it may let go of now
        return process is not None and process.poll() is None

    @property
    def is_there(self) -> bool:
        """Whether there is one, ours or left by the process before."""
        if self.is_ours:
            return True
        with suppress(OSError):  # no place, no child
            descriptor = self._locked()
            if descriptor is None:
                return True
            os.close(descriptor)
        return False

    def start(self, command: Sequence[str]) -> bool:
        """Start it by `command`, with its place and who its parent is; return False if there is one already.

        Raises: OSError where no process can be started, or nothing be written.
        """
        descriptor = self._locked()
        if descriptor is None:
            return False
        try:
            os.ftruncate(descriptor, 0)
            self._last.forget()
            self._began = None
            whole = [*command, "--place", str(self._path), "--parent", str(os.getpid())]
            # A group of its own: with its parent's the supervisor ends all that is left there.
            self._process = subprocess.Popen(  # noqa: S603  our own command
                whole, cwd=self._home, stdin=subprocess.DEVNULL, pass_fds=[descriptor], process_group=0
            )
            pid = self._process.pid
            os.pwrite(descriptor, f"{pid} {spawn.started(pid)}".encode(), 0)
        finally:
            os.close(descriptor)  # the child's copy keeps the lock
        return True

    def take_status(self) -> int | None:
        """Return how ours has ended, once; None if it has not."""
        if self._process is None or (status := self._process.poll()) is None:
            return None
        self._process = None
        return status

    def take_attempt(self) -> RunKey | None:
        """Return what it was at when it ended, once."""
        attempt = self._last.current()
        self._last.forget()
        return attempt

    def is_at_one_for(self, seconds: float) -> bool:
        """Return whether it has been seen at one and the same suspect for so long."""
        now, began = time.monotonic(), self._last.current()
        if began != self._began:
            self._began, self._seen_at = began, now
        return began is not None and now - self._seen_at >= seconds

    def tell_to_end(self) -> None:
        """Have it end after the suspect that it is at."""
        self._send(signal.SIGTERM)

    def wait(self, until: float, unless: threading.Event | None = None) -> bool:
        """Wait until it is gone, for so long by the monotonic clock and `unless` is set; return whether it is."""
        while self.is_there:
            if time.monotonic() >= until or (unless is not None and unless.is_set()):
                return False
            time.sleep(_POLL)
        return True

    def kill(self) -> RunKey | None:
        """End it; return what it was at, unless it stays."""
        self._send(signal.SIGKILL)
        return self._last.current() if self.wait(time.monotonic() + _GONE_WITHIN) else None

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            return
        with suppress(OSError, ValueError):
            pid, started = self._named()
            if spawn.started(pid) == started:
                os.kill(pid, number)

    def _locked(self) -> int | None:
        """Lock the place; None while a child holds it."""
        self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # who tidies up may have taken it
        descriptor = self._lock_file()
        if descriptor is None and self._has_gone():
            self._lock.unlink(missing_ok=True)
            descriptor = self._lock_file()
        return descriptor

    def _has_gone(self) -> bool:
        """Return whether the child that is named has ended; one that is not named yet, or was cut off then, has not."""
        try:
            pid, started = self._named()
        except (OSError, ValueError):
            return False
        return spawn.started(pid) != started

    def _named(self) -> tuple[int, str]:
        """Return the child's process id, and what tells it from others by the same. Raises: OSError, ValueError."""
        pid, started = self._lock.read_text(encoding="ascii").split()
        return int(pid), started

    def _lock_file(self) -> int | None:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor
