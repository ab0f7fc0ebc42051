"""Start a program that cannot outlive us: killed with the process that started it, however that one ended.

Linux can send a process a signal when its parent dies (`PR_SET_PDEATHSIG`). Three things surprise:

- a change of user id clears the wish, so it is made after the change, just before the program takes over;
- the "parent" is the *thread* that started the program: start long-lived programs from the main thread;
- it cannot be asked for from outside. A `preexec_fn` could, but is not safe beside threads (and Python 3.12
  warns), so this file is also a script: a short-lived Python that asks, then becomes the program. The process
  id stays the same.

Elsewhere (macOS) there is no such signal and a program may outlive a parent that was killed with SIGKILL.
See prctl(2).
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
NOT_FOUND = 127  # what a shell answers when a program cannot be run


class Account(NamedTuple):
    """The user and group a program runs as."""

    uid: int
    gid: int


def command(argv: Sequence[str], *, on_death: signal.Signals, account: Account | None = None) -> list[str]:
    """Return the command that runs `argv` and sends it `on_death` when the calling thread's process dies.

    With an `account`, which only root can ask for, the program runs as that user, in no other groups. A
    program that cannot be run exits with 127 and a line on stderr.
    """
    user = f"{account.uid}:{account.gid}" if account else ""
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
    return [*launcher, str(int(on_death)), str(os.getpid()), user, *argv]


def started(pid: int) -> str | None:
    """Return what tells this process from a later one with the same id; None if there is no such process.

    On Linux that is its start time in clock ticks since boot, elsewhere a constant.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None if Path("/proc/self/stat").exists() else _signalable(pid)
    fields = stat.rpartition(")")[2].split()  # the name, in brackets, may hold spaces and brackets
    return None if fields[0] in "ZX" else fields[19]


def _signalable(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "alive"


def end_with_parent(parent: int, on_death: int) -> None:
    """Have this process be sent a signal when `parent`, which has started it, ends; it ends now if that has ended."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, on_death, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked, so no signal will come
            sys.exit(NOT_FOUND)


def name_process(name: str) -> None:
    """Give the calling thread a name, of which Linux keeps 15 bytes; elsewhere it has none."""
    if prctl := getattr(ctypes.CDLL(None), "prctl", None):
        prctl(PR_SET_NAME, ctypes.create_string_buffer(name.encode()), 0, 0, 0)


def _become(on_death: int, parent: int, user: str, argv: list[str]) -> None:
    if user:
        uid, gid = map(int, user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    end_with_parent(parent, on_death)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, for itself
        signal.signal(ignored, signal.SIG_DFL)
    os.execvp(argv[0], argv)  # noqa: S606  # no shell is the point


if __name__ == "__main__":
    try:
        _become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
    except OSError as error:
        sys.stderr.write(f"could not run {sys.argv[4]}: {error.strerror}\n")
        sys.exit(NOT_FOUND)
