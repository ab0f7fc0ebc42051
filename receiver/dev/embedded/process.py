"""One server process, its log and its lock: what PostgreSQL and Valkey need alike.

The lock is an flock on a file in the data directory, and the server inherits it. So it is held exactly as
long as the starter or any process of the server lives: whoever gets it knows that nobody else uses the data,
without looking at process ids, which are reused.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, ClassVar, Self

from hookonce.receiver.dev.embedded.errors import EmbeddedError
from hookonce.receiver.processes import spawn

ORPHANS_END = timedelta(seconds=15)  # servers of a killed parent shut down by themselves; so long we wait
START_TIMEOUT = timedelta(seconds=60)  # recovery after a crash can take long on a slow disk
POLL_INTERVAL = timedelta(milliseconds=10)
MAX_LOG_SIZE = 5 * 1024 * 1024  # bytes; a longer log is put aside at the next start
LOG_TAIL_LINES = 12  # lines shown when a start fails
INHERITED = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "NSS_WRAPPER_PASSWD",  # what gives a user of OpenShift a name
    "NSS_WRAPPER_GROUP",
)
"""What a server gets of our environment. The rest is not its business, and may be read by whoever it runs as."""


def prepare(directory: Path) -> Path:
    """Make the data directory if need be and return its absolute path. Raises `EmbeddedError` if that can't be."""
    directory = directory.resolve()
    try:
        directory.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(
            f"the data directory {directory} can't be made: {error.strerror}; work in a directory "
            "where you may write, or name another in HOOKONCE_DATA"
        ) from None
    return directory


class Lock:
    """The right to run one server on one directory; held by the server too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.acquire()

    def acquire(self) -> None:
        """Take the lock; wait for servers of ours, or of a killed process, that are still ending.

        Raises:
            EmbeddedError: a living process (named) holds it.

        """
        self._file = self._path.open("a+", encoding="ascii")
        try:
            self._path.chmod(0o600)  # who may read a file may lock it
            self._wait()
        except BaseException:
            self._file.close()
            raise
        self._file.truncate(0)
        self._file.write(f"{os.getpid()} {spawn.started(os.getpid())}")
        self._file.flush()

    def fileno(self) -> int:
        """Return the file descriptor, to be inherited by the server."""
        return self._file.fileno()

    def release(self) -> None:
        """Let go; the lock is free as soon as the last process of the server has gone too."""
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()

    def _wait(self) -> None:
        deadline = time.monotonic() + ORPHANS_END.total_seconds()
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid, alive = self._holder()
                if alive or time.monotonic() > deadline:
                    raise EmbeddedError(
                        f"{self._path.parent} is in use by process {pid} ({self._path.stem}); "
                        "stop it, or name another directory in HOOKONCE_DATA"
                    ) from None
                time.sleep(POLL_INTERVAL.total_seconds())
            else:
                return

    def _holder(self) -> tuple[str, bool]:
        self._file.seek(0)
        pid, _, start = self._file.read().partition(" ")
        return pid or "unknown", pid.isdigit() and spawn.started(int(pid)) == start


class Process:
    """A running server that we started; it ends when we end."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        lock: Lock,
        on_death: signal.Signals,
        account: spawn.Account | None = None,
    ) -> None:
        self.name = log.stem
        self._log = log
        self._lock = lock
        with _open_log(log) as output:
            self._log_start = output.tell()
            self._popen = subprocess.Popen(  # noqa: S603  # a program we looked up ourselves
                spawn.command(argv, on_death=on_death, account=account),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",  # the account may not be able to enter ours
                env=_environment(),
                start_new_session=True,  # Ctrl-C in a terminal is for us, not for the server
                pass_fds=(lock.fileno(),),
            )

    @property
    def pid(self) -> int:
        """The process id of the server (of PostgreSQL: the postmaster)."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._popen.poll() is None

    def wait_until(self, ready: Callable[[], bool]) -> Self:
        """Return when `ready` says so.

        Raises:
            EmbeddedError: the server ended or took too long; with the last lines of its log.

        """
        deadline = time.monotonic() + START_TIMEOUT.total_seconds()
        try:
            while not ready():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._fail(
                        f"did not start (exit status {self._popen.wait(POLL_INTERVAL.total_seconds())})"
                    )
                if time.monotonic() > deadline:
                    self._fail(f"was not ready after {START_TIMEOUT.total_seconds():.0f} s")
        except BaseException:  # Ctrl-C too
            self.kill(signal.SIGKILL)
            raise
        return self

    def run(self) -> None:
        """Wait for a program that does its work and ends.

        Raises:
            EmbeddedError: it failed; with the last lines of its log.

        """
        if self._popen.wait():
            self._fail(f"failed (exit status {self._popen.returncode})")

    def stop(self, steps: Iterable[tuple[signal.Signals, timedelta]]) -> None:
        """Send each signal in turn until the server has ended, waiting after each as long as it says."""
        for each, patience in steps:
            self._popen.send_signal(each)
            self._popen.send_signal(signal.SIGCONT)  # a frozen one would never hear of it
            try:
                self._popen.wait(patience.total_seconds())
            except subprocess.TimeoutExpired:
                continue
            return

    def kill(self, which: signal.Signals) -> None:
        """Send SIGKILL, SIGSTOP or SIGCONT to all processes of the server, any other signal to the first."""
        if self.alive and which in {signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT}:
            self._popen.send_signal(signal.SIGSTOP)  # now it starts and buries no more children
            for child in children(self.pid):
                os.kill(child, which)
        self._popen.send_signal(which)
        if which == signal.SIGKILL:
            self._popen.wait()

    def _fail(self, what: str) -> None:
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        raise EmbeddedError("\n    ".join([f"{self.name} {what}; the end of {self._log}:", *lines]))


class Server:
    """A server that was started, PostgreSQL or Valkey; whoever starts one sets the attributes."""

    SHUTDOWN_STEPS: ClassVar[Sequence[tuple[signal.Signals, timedelta]]]
    _process: Process
    _lock: Lock
    _short: Path | None = None
    """A directory of the socket's own, where the path in the data directory is too long for one."""

    @property
    def pid(self) -> int:
        """The process id of the server (of PostgreSQL: the postmaster)."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._process.alive

    def stop(self) -> None:
        """Shut down: open transactions are rolled back, what Valkey held is gone; what then still runs is killed."""
        self._process.stop(self.SHUTDOWN_STEPS)
        self._leave()

    def kill(self, which: signal.Signals = signal.SIGKILL) -> None:
        """Crash (SIGKILL), freeze (SIGSTOP) or thaw (SIGCONT) all of the server; else signal its first process."""
        self._process.kill(which)

    def _leave(self) -> None:
        self._lock.release()
        if self._short:
            shutil.rmtree(self._short, ignore_errors=True)


def children(pid: int) -> list[int]:
    """Return the process ids of the children of a process."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(each) for each in listed.split()]


def _open_log(log: Path) -> IO[bytes]:
    if log.exists() and log.stat().st_size > MAX_LOG_SIZE:
        log.replace(log.with_suffix(".log.1"))
    output = log.open("ab")
    log.chmod(0o600)  # a server's errors quote the statements that failed
    return output


def _environment() -> dict[str, str]:
    """Return the environment of a server: no secret of ours, no PGPORT, no locale that it has not got."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}  # with TZ set, initdb does not search for the time zone
