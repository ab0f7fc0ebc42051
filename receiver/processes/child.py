"""One child process of the supervisor: started, listened to, ended.

A child leads its own process group, so that Ctrl-C in a terminal reaches the supervisor alone, and what a
child leaves in its group can be ended with it. If the supervisor is killed, the kernel kills the child
(hookonce.receiver.processes.spawn); a child's own children must look after that themselves, as gunicorn's workers do.
"""

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from hookonce.receiver.processes import spawn

CHUNK_SIZE = 65536  # bytes read at once; as much as a pipe holds
MAX_LINE_SIZE = 1024 * 1024  # bytes; a longer one is handed on in parts
MAX_LAST_CHUNKS = 16  # chunks read from the pipe of a dead child: one of its kin may write for ever

OnLine = Callable[[str, str], None]


def how_ended(status: int) -> str:
    """Return how a process has ended, by its status as subprocess has it: "exit status 3", "SIGKILL"."""
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


@dataclass(frozen=True)
class Child:
    """A program to keep alive; `env` is added to ours; its output goes to `stdout`, or to ours.

    `env` may be a function, asked at each start. `on_end` is told how it has ended whenever it is to be started again
    ("exit status 3", "SIGKILL"), and returns whether it had done anything: then it is started again at once,
    or a few seconds later if it ends soon each time. It inherits the descriptors of `fds`. With `hangs_up` a restart is
    left to itself: it is sent SIGHUP and goes on. With `run` it is no program but that function, forked off; then the
    rest has no meaning, but for `on_death`: the signal that it is sent when its parent dies. With `may_end` it is not
    started again once it has ended with status 0.
    """

    name: str
    argv: Sequence[str] = ()
    env: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None
    stdout: IO[bytes] | int | None = None
    on_end: Callable[[str], bool] | None = None
    fds: Sequence[int] = ()
    hangs_up: bool = False
    run: Callable[[], None] | None = None
    on_death: signal.Signals = signal.SIGKILL
    may_end: bool = False

    @property
    def environ(self) -> dict[str, str]:
        """The environment that it is started with, as of now."""
        return {**os.environ, **((self.env() if callable(self.env) else self.env) or {})}


class ChildProcess:
    """One run of a child; with `on_line`, the selector calls back to read its stdout and stderr.

    Raises:
        OSError: no process could be started (a program that cannot be run ends with status 127 instead).

    """

    def __init__(self, child: Child, selector: selectors.BaseSelector, on_line: OnLine | None) -> None:
        self._name = child.name
        self._selector = selector
        self._on_line = on_line if child.stdout is None else None
        self._unfinished = b""  # of a line
        self._popen = subprocess.Popen(  # noqa: S603  # our own commands
            spawn.command(child.argv, on_death=child.on_death),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if self._on_line else child.stdout,
            stderr=subprocess.STDOUT if self._on_line else None,
            env=child.environ,
            process_group=0,
            pass_fds=child.fds,
        )
        self._output = self._popen.stdout
        if self._output:  # non-blocking, for `end` reads what is left without asking whether there is any
            os.set_blocking(self._output.fileno(), False)
            selector.register(self._output, selectors.EVENT_READ, self._read)

    def status(self) -> int | None:
        """Return how it ended, as subprocess has it (a signal is negative); None while it runs."""
        return self._popen.poll()

    def terminate(self) -> None:
        """Ask it to end."""
        self._popen.terminate()

    def interrupt(self) -> None:
        """Tell it, when it was asked to end, that somebody at a terminal will not wait."""
        self._popen.send_signal(signal.SIGINT)

    def hang_up(self) -> None:
        """Tell it to read again what it has read at its start."""
        self._popen.send_signal(signal.SIGHUP)

    def end(self, *, listen: bool = True) -> None:
        """Kill what still runs of it and its process group, and hand on the last lines if we still listen."""
        with contextlib.suppress(
            ProcessLookupError, PermissionError
        ):  # macOS: permission, if all are zombies
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        for _ in range(MAX_LAST_CHUNKS if listen else 0):
            if not self._read():
                break
        if listen and self._unfinished:
            self._emit(self._unfinished)
        self._close()

    def _read(self) -> bool:
        """Pass on the lines that have come; return whether more may come."""
        if self._output is None:
            return False
        try:
            chunk = os.read(self._output.fileno(), CHUNK_SIZE)
        except BlockingIOError:
            return False
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        if len(self._unfinished) > MAX_LINE_SIZE:
            lines.append(self._unfinished)
            self._unfinished = b""
        for line in lines:
            self._emit(line)
        if not chunk:
            self._close()
        return bool(chunk)

    def _emit(self, line: bytes) -> None:
        if self._on_line:
            self._on_line(self._name, line.decode(errors="replace").removesuffix("\r"))

    def _close(self) -> None:
        if self._output:
            self._selector.unregister(self._output)
            self._output.close()
            self._output = None
