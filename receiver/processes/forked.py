"""A child that is forked instead of started: it has at once whatever its parent has imported.

The parent must have one thread and no connection open. Like any child it leads a process group of its own and ends
when its parent does; signals reach it as they reach a program that has just begun.
"""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from hookonce.receiver.processes import spawn

_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class ForkedProcess:
    """One run of a function in a process of its own; the supervisor treats it like a `ChildProcess`.

    The function's return ends it with status 0, `SystemExit` with its code, any other exception with 1.
    """

    def __init__(
        self, run: Callable[[], None], name: str = "", on_death: signal.Signals = signal.SIGKILL
    ) -> None:
        """Fork; `name` is what `ps -o comm` and `top` show. It is sent `on_death` when its parent dies."""
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        self._status: int | None = None
        blocked = signal.pthread_sigmask(
            signal.SIG_BLOCK, _HANDLED
        )  # or the child may take one as its parent would
        self._pid = os.fork()
        if self._pid == 0:
            _be_child(partial(spawn.end_with_parent, parent, on_death), run, blocked, name)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        with contextlib.suppress(PermissionError, ProcessLookupError):  # it does the same; who comes first
            os.setpgid(self._pid, self._pid)

    def status(self) -> int | None:
        """Return how it ended (a signal is negative); None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status

    def wait(self) -> int:
        """Return how it has ended, once it has."""
        if self._status is None:
            _, status = os.waitpid(self._pid, 0)
            self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def terminate(self) -> None:
        """Ask it to end."""
        if self.status() is None:
            os.kill(self._pid, signal.SIGTERM)

    def interrupt(self) -> None:
        """Tell it, when it was asked to end, that somebody at a terminal will not wait."""
        if self.status() is None:
            os.kill(self._pid, signal.SIGINT)

    def end(self, *, listen: bool = True) -> None:  # noqa: ARG002  it has no output of its own
        """Kill what still runs of it and its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        self.wait()


def _be_child(
    tie: Callable[[], None], run: Callable[[], None], mask: set[int | signal.Signals], name: str
) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for each in _HANDLED:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if name:
            spawn.name_process(f"hookonce {name}")
        tie()
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:  # noqa: BLE001  the last that can tell
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
