"""Keeps child processes alive: what dies comes back, what cannot work says so, and nothing is left behind.

RQ's worker exits when Redis is away for 25 s, a poison event may kill its process: both are normal, so a
child that died is started again, after a pause that grows. Only exit status 78 (bad configuration, schema
behind) is final: starting again would not help.

No threads: one selector waits for signals, output and time. Signals reach it through `signal.set_wakeup_fd`,
so that one which comes just before the wait is not missed.
"""

import contextlib
import logging
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from receiver.child import Child, ChildProcess, OnLine

__all__ = ["Child", "Pauses", "Supervisor"]

CONFIGURATION = 78  # EX_CONFIG of sysexits.h
GRACE = timedelta(seconds=30)
FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(seconds=30)
HEALTHY = timedelta(seconds=60)  # who ran so long is started again at once, and its next pause is the first

log = logging.getLogger(__name__)


@dataclass
class Pauses:
    """How long to wait before a child is started again."""

    next: timedelta = FIRST_PAUSE

    def after(self, ran: timedelta) -> timedelta:
        """Return the pause after a run of this length: none if it was healthy, else 1, 2, 4 … 30 s."""
        if ran >= HEALTHY:
            self.next = FIRST_PAUSE
            return timedelta()
        pause, self.next = self.next, min(2 * self.next, LONGEST_PAUSE)
        return pause


@dataclass
class _Kept:
    """A child and its process; if there is none, when it is to be started."""

    child: Child
    process: ChildProcess | None = None
    started: float = 0.0
    due: float = float("-inf")
    pauses: Pauses = field(default_factory=Pauses)


class Supervisor:
    """Runs children until SIGTERM, SIGINT, SIGHUP or `stop()`, or until one exits with status 78.

    `on_line(name, line)` is given every line that a child without a `stdout` of its own writes to stdout or
    stderr. `grace` is how long a child may take to end after SIGTERM; a second SIGINT cuts it short.
    """

    def __init__(
        self,
        children: Sequence[Child],
        *,
        on_line: OnLine | None = None,
        grace: timedelta = GRACE,
        clock: Callable[[], float] = time.monotonic,
        selector: selectors.BaseSelector | None = None,
    ) -> None:
        self._kept = [_Kept(child) for child in children]
        self._on_line = on_line
        self._grace = grace
        self._clock = clock
        self._selector = selector or selectors.DefaultSelector()
        self._signals: deque[int] = deque()
        self._wake, self._awake = socket.socketpair()
        self._wake.settimeout(0)
        self._awake.settimeout(0)
        self._kill_at: float | None = None  # set: we are stopping
        self._status = 0

    def run(self) -> int:
        """Keep the children alive, once; return 0 when told to stop, 78 when a child cannot work.

        To be called from the main thread, which alone hears signals. What `on_line` raises ends it, with all
        children killed.
        """
        self._selector.register(self._awake, selectors.EVENT_READ, self._sleep_off)
        try:
            with _handled(self._on_signal, self._wake):
                while not self._step():
                    for key, _ in self._selector.select(self._timeout()):
                        key.data()
        finally:
            for kept in self._kept:
                if kept.process:
                    kept.process.end(listen=False)
            self._selector.close()
            self._wake.close()
            self._awake.close()
        return self._status

    def stop(self) -> None:
        """Ask `run` to end as SIGTERM does; may be called from another thread or from `on_line`."""
        self._signals.append(signal.SIGTERM)
        with contextlib.suppress(OSError):  # full: it wakes up anyway; closed: it has ended
            self._wake.send(b"\0")

    def _step(self) -> bool:
        """Do what is due; return whether all is over."""
        while self._signals:
            self._heed(self._signals.popleft())
        for kept in self._kept:
            self._look_after(kept)
        if self._kill_at is not None and self._clock() >= self._kill_at:
            self._kill_rest()
        return self._kill_at is not None and not any(kept.process for kept in self._kept)

    def _heed(self, signum: int) -> None:
        if signum == signal.SIGCHLD:
            return
        if self._kill_at is None:
            self._shut_down()
        elif signum == signal.SIGINT:
            self._kill_at = self._clock()

    def _shut_down(self) -> None:
        self._kill_at = self._clock() + self._grace.total_seconds()
        for kept in self._kept:
            if kept.process:
                kept.process.terminate()

    def _kill_rest(self) -> None:
        for kept in self._kept:
            if kept.process:
                log.warning("%s did not end in time and is killed", kept.child.name)
                kept.process.end()
                kept.process = None

    def _look_after(self, kept: _Kept) -> None:
        if kept.process and (status := kept.process.status()) is not None:
            kept.process.end()
            kept.process = None
            if self._kill_at is None:
                self._after_death(kept, status)
        if kept.process is None and self._kill_at is None and self._clock() >= kept.due:
            self._start(kept)

    def _start(self, kept: _Kept) -> None:
        kept.started = self._clock()
        try:
            kept.process = ChildProcess(kept.child, self._selector, self._on_line)
        except OSError as error:  # out of processes or memory
            self._put_off(kept, f"could not be started: {error.strerror}")

    def _after_death(self, kept: _Kept, status: int) -> None:
        if status == CONFIGURATION:
            log.error("%s cannot work as it is configured (exit status 78); stopping", kept.child.name)
            self._status = CONFIGURATION
            self._shut_down()
        else:
            how = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
            self._put_off(kept, f"ended ({how})")

    def _put_off(self, kept: _Kept, why: str) -> None:
        now = self._clock()
        pause = kept.pauses.after(timedelta(seconds=now - kept.started)).total_seconds()
        kept.due = now + pause
        log.warning("%s %s; starts again %s", kept.child.name, why, f"in {pause:g} s" if pause else "now")

    def _timeout(self) -> float | None:
        """Return the seconds until something is due; None if only a signal or output can bring news."""
        if self._kill_at is not None:
            times = [self._kill_at]
        else:
            times = [kept.due for kept in self._kept if kept.process is None]
        return max(0.0, min(times) - self._clock()) if times else None

    def _on_signal(self, signum: int, _frame: object) -> None:
        self._signals.append(signum)

    def _sleep_off(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._awake.recv(4096):
                pass


@contextmanager
def _handled(handler: Callable[[int, object], None], wake: socket.socket) -> Iterator[None]:
    """Let the handler have the signals that concern us, and `wake` a byte for each."""
    handled = [signal.SIGCHLD, signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        handled.append(signal.SIGHUP)
    wake_before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    before = {each: signal.signal(each, handler) for each in handled}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)
        signal.set_wakeup_fd(wake_before)
