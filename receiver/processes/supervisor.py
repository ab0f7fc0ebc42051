"""Keeps child processes alive: what dies comes back, what cannot work says so, and nothing is left behind.

RQ's worker exits when Redis is away for 25 s, a poison event may kill its process: both are normal, so a child that
died is started again: at once if it had done anything, else after a pause that grows. A child that does something and
dies soon, five times in a row, has a short pause too: its environment may kill it at each run, and without a pause it
would use up the backlog in a hot loop. Two things are final, since starting again would not help: exit status 78 (bad
configuration, schema behind), and one and the same crash five times in a row of a child that did nothing, as of a
package that is missing. What a child says of a crash that it repeats is shown once. In development, where somebody is
about to mend it, such a child waits for `restart` instead.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from hookonce.receiver.processes.child import Child, ChildProcess, OnLine, how_ended
from hookonce.receiver.processes.forked import ForkedProcess

__all__ = ["Child", "RestartDelays", "Supervisor"]

BAD_CONFIGURATION = 78  # EX_CONFIG of sysexits.h
STOP_TIMEOUT = timedelta(seconds=30)
HURRY_TIMEOUT = timedelta(seconds=5)
"""How long a child may take when Ctrl-C was pressed again."""
MIN_RESTART_DELAY = timedelta(seconds=1)
MAX_RESTART_DELAY = timedelta(seconds=30)
SAME_CRASHES = 5
"""So many in a row are final."""
CRASHED_WITHIN = timedelta(seconds=5)
"""Of its start: who ran for longer was at work, and may die of what it worked on."""
SHORT_RUNS = 5
"""So many in a row, each `CRASHED_WITHIN` long at most, and a child that has worked is started again after a pause."""
MAX_WORKED_DELAY = timedelta(seconds=5)
"""The longest pause of a child that has worked."""
UNCAUGHT = 1
"""Python's exit status for an exception that nobody caught."""
HEALTHY_AFTER = timedelta(
    seconds=60
)  # who ran so long is started again at once, and its next pause is the first

log = logging.getLogger(__name__)


@dataclass
class RestartDelays:
    """How long to wait before a child is started again: the delay doubles from the shortest up to the longest one."""

    shortest: timedelta | None = None
    longest: timedelta | None = None
    _next: timedelta | None = None
    _short_runs: int = 0

    def after(self, ran: timedelta, *, has_worked: bool = False) -> timedelta:
        """Return the pause after a run: none if it took long enough, or has done anything, else 1, 2, 4 … 30 s.

        From the fifth short run in a row on, a run that has done something is followed by a pause too: 1, 2, 4, 5 s.
        """
        shortest, longest = self.shortest or MIN_RESTART_DELAY, self.longest or MAX_RESTART_DELAY
        self._short_runs = self._short_runs + 1 if ran < CRASHED_WITHIN else 0
        if ran >= HEALTHY_AFTER or (has_worked and self._short_runs < SHORT_RUNS):
            self._next = shortest
            return timedelta()
        pause = self._next or shortest
        self._next = min(2 * pause, longest)
        return min(pause, MAX_WORKED_DELAY) if has_worked else pause

    def begun_anew(self) -> "RestartDelays":
        """Return the same delays for a child that has not failed yet."""
        return RestartDelays(self.shortest, self.longest)


@dataclass
class Crashes:
    """How often in a row a child has crashed soon after its start, each time with the same last line."""

    within: timedelta = CRASHED_WITHIN
    number: int = 0
    reason: str = ""
    _last: str = ""
    _held: list[str] = field(default_factory=list)

    def hold(self, line: str) -> bool:
        """Hear a line; return whether it is held back, for the run may end like the one before."""
        self._last = line if line.strip() else self._last
        if self.number:
            self._held.append(line)
        return self.number > 0

    def release(self) -> list[str]:
        """Return what was held back, and hold no more: the run has got further than the one before."""
        held, self._held = self._held, []
        self.number = 0
        return held

    def note(self, status: int, ran: timedelta, *, has_worked: bool) -> list[str]:
        """Note how a run has ended; return what was held back of it and is not what the one before had said."""
        last, self._last = self._last, ""
        if status != UNCAUGHT or has_worked or ran >= self.within:
            return self.release()
        if self.number and last == self.reason:
            self.number += 1
            self._held.clear()
            return []
        held = self.release()
        self.number, self.reason = 1, last
        return held


@dataclass
class _SupervisedChild:
    """A child and its process; if there is none, when it is to be started."""

    child: Child
    process: ChildProcess | ForkedProcess | None = None
    started: float = 0.0
    due: float = float("-inf")
    kill_at: float | None = None
    """Set: it was told to end, to be started again."""
    pauses: RestartDelays = field(default_factory=RestartDelays)
    crashes: Crashes = field(default_factory=Crashes)

    @property
    def told_at(self) -> float:
        """When what it says is told, if it is held back until then."""
        is_held = self.process is not None and self.crashes.number
        return self.started + self.crashes.within.total_seconds() if is_held else float("inf")


class Supervisor:
    """Runs children until SIGTERM, SIGINT, SIGHUP or `stop()`, or until starting one again would not help.

    `on_line(name, line)` is given every line that a child without a `stdout` of its own writes to stdout or
    stderr. `grace` is how long a child may take to end after SIGTERM. A second SIGINT is handed on, and leaves them
    `hurry`; a third kills them. `delays` come before a child is started again; a run that failed within
    `crashed_within` of its start is a crash. With `patient` a child that can't work waits for `restart`, and SIGHUP
    is one of all, if `restarts_on_hangup`.
    """

    def __init__(  # noqa: PLR0913  all but one by keyword
        self,
        children: Sequence[Child],
        *,
        on_line: OnLine | None = None,
        grace: timedelta = STOP_TIMEOUT,
        hurry: timedelta = HURRY_TIMEOUT,
        delays: RestartDelays | None = None,
        crashed_within: timedelta = CRASHED_WITHIN,
        clock: Callable[[], float] = time.monotonic,
        selector: selectors.BaseSelector | None = None,
        patient: bool = False,
        restarts_on_hangup: bool = False,
    ) -> None:
        self._delays = delays or RestartDelays()
        self._crashed_within = crashed_within
        self._kept = [
            _SupervisedChild(child, pauses=self._delays.begun_anew(), crashes=Crashes(crashed_within))
            for child in children
        ]
        self._on_line = on_line
        self._grace = grace
        self._hurry_timeout = hurry
        self._clock = clock
        self._selector = selector or selectors.DefaultSelector()
        self._patient = patient
        self._restarts_on_hangup = restarts_on_hangup
        self._restarts: deque[str] = deque()
        self._signals: deque[int] = deque()
        self._wake, self._awake = socket.socketpair()
        self._wake.settimeout(0)
        self._awake.settimeout(0)
        self._kill_at: float | None = None  # set: we are stopping
        self._is_hurried = False
        self._status = 0

    def run(self) -> int:
        """Keep the children alive, once; return 0 when told to stop, 78 or 1 when a child cannot work.

        To be called from the main thread, which alone hears signals. What `on_line` raises ends it, with all
        children killed.
        """
        self._selector.register(self._awake, selectors.EVENT_READ, self._clear_wakeups)
        try:
            with _handled(self._on_signal, self._wake, hears_hangup=self._restarts_on_hangup):
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
        self._wake_up()

    def restart(self, *names: str) -> None:
        """End these children and start them again at once, without a pause; may be called from another thread."""
        self._restarts.extend(names)
        self._wake_up()

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):  # full: it wakes up anyway; closed: it has ended
            self._wake.send(b"\0")

    def _step(self) -> bool:
        """Do what is due; return whether all is over."""
        while self._signals:
            self._handle_signal(self._signals.popleft())
        while self._restarts and self._kill_at is None:
            name = self._restarts.popleft()
            for kept in self._kept:
                if kept.child.name == name:
                    self._restart(kept)
        for kept in self._kept:
            self._check_on(kept)
        if self._kill_at is not None and self._clock() >= self._kill_at:
            self._kill_rest()
        return self._kill_at is not None and not any(kept.process for kept in self._kept)

    def _handle_signal(self, signum: int) -> None:
        if signum == signal.SIGCHLD:
            return
        if signum == signal.SIGHUP and self._restarts_on_hangup:
            self._restarts.extend(kept.child.name for kept in self._kept)
        elif self._kill_at is None:
            self._shut_down()
        elif signum == signal.SIGINT:
            self._hurry()

    def _hurry(self) -> None:
        """Leave the children less time; the next time none."""
        is_first, self._is_hurried = not self._is_hurried, True
        span = self._hurry_timeout.total_seconds() if is_first else 0
        until = self._clock() + span
        self._kill_at = until if self._kill_at is None else min(self._kill_at, until)
        for kept in self._kept:
            if kept.process and is_first:
                kept.process.interrupt()

    def _restart(self, kept: _SupervisedChild) -> None:
        """Have a child begin again: what it did before is no reason to wait any more."""
        kept.pauses, kept.crashes = self._delays.begun_anew(), Crashes(self._crashed_within)
        if kept.process is None:
            kept.due = self._clock()
        elif kept.child.hangs_up and isinstance(kept.process, ChildProcess):
            kept.process.hang_up()
        elif kept.kill_at is None:
            kept.kill_at = self._clock() + self._grace.total_seconds()
            kept.process.terminate()

    def _shut_down(self) -> None:
        self._kill_at = self._clock() + self._grace.total_seconds()
        for kept in self._kept:
            if kept.process:
                kept.process.terminate()

    def _kill_rest(self) -> None:
        for kept in self._kept:
            if kept.process:
                why = (
                    "still at work though Ctrl-C was pressed again"
                    if self._is_hurried
                    else "did not end in time"
                )
                log.warning("%s is killed: %s", kept.child.name, why)
                kept.process.end()
                kept.process = None

    def _check_on(self, kept: _SupervisedChild) -> None:
        if kept.process and (status := kept.process.status()) is not None:
            kept.process.end()
            kept.process = None
            has_worked = self._has_worked(kept, status)
            ran = timedelta(seconds=self._clock() - kept.started)
            self._tell(kept, kept.crashes.note(status, ran, has_worked=has_worked))
            if kept.kill_at is not None:
                kept.kill_at, kept.due = None, self._clock()
            elif self._kill_at is None:
                self._after_death(kept, status, has_worked=has_worked)
        if kept.process and kept.kill_at is not None and self._clock() >= kept.kill_at:
            log.warning("%s is killed: did not end in time", kept.child.name)
            kept.process.end()
        if self._clock() >= kept.told_at:
            self._tell(kept, kept.crashes.release())
        if kept.process is None and self._kill_at is None and self._clock() >= kept.due:
            self._start(kept)

    def _start(self, kept: _SupervisedChild) -> None:
        kept.started = self._clock()
        try:
            hear = partial(self._hear, kept) if self._on_line else None
            child = kept.child
            kept.process = (
                ForkedProcess(child.run, child.name, child.on_death)
                if child.run
                else ChildProcess(child, self._selector, hear)
            )
        except OSError as error:  # out of processes or memory
            self._schedule_restart(kept, f"could not be started: {error.strerror}")

    def _hear(self, kept: _SupervisedChild, _name: str, line: str) -> None:
        if not kept.crashes.hold(line):
            self._tell(kept, [line])

    def _tell(self, kept: _SupervisedChild, lines: Iterable[str]) -> None:
        for line in lines:
            if self._on_line:
                self._on_line(kept.child.name, line)

    def _has_worked(self, kept: _SupervisedChild, status: int) -> bool:
        """Tell whoever wants to know how a child has ended; return whether it had done anything."""
        is_over = self._kill_at is not None or status == BAD_CONFIGURATION
        return not is_over and kept.child.on_end is not None and kept.child.on_end(how_ended(status))

    def _after_death(self, kept: _SupervisedChild, status: int, *, has_worked: bool) -> None:
        if status == 0 and kept.child.may_end:
            kept.due = float("inf")
        elif status == BAD_CONFIGURATION:
            self._give_up(kept, BAD_CONFIGURATION, "cannot work as it is configured (exit status 78)")
        elif kept.crashes.number >= SAME_CRASHES:
            why = f": {kept.crashes.reason}" if kept.crashes.reason else ""
            self._give_up(kept, UNCAUGHT, f"crashed {SAME_CRASHES} times in a row in the same way{why}")
        else:
            self._schedule_restart(kept, f"ended ({how_ended(status)})", has_worked=has_worked)

    def _give_up(self, kept: _SupervisedChild, status: int, why: str) -> None:
        """Stop everything, for starting this child again would not help; or wait for who mends it."""
        if self._patient:
            kept.due = float("inf")
            log.error("%s %s; it is started again when that is fixed", kept.child.name, why)
            return
        log.error("%s %s; stopping", kept.child.name, why)
        self._status = status
        self._shut_down()

    def _schedule_restart(self, kept: _SupervisedChild, why: str, *, has_worked: bool = False) -> None:
        now = self._clock()
        ran = timedelta(seconds=now - kept.started)
        pause = kept.pauses.after(ran, has_worked=has_worked).total_seconds()
        kept.due = now + pause
        log.warning("%s %s; starts again %s", kept.child.name, why, f"in {pause:g} s" if pause else "now")

    def _timeout(self) -> float | None:
        """Return the seconds until something is due; None if only a signal or output can bring news."""
        if self._kill_at is not None:
            times = [self._kill_at]
        else:
            times = [kept.due for kept in self._kept if kept.process is None]
            times += [kept.told_at for kept in self._kept]
            times += [kept.kill_at for kept in self._kept if kept.kill_at is not None]
            times = [each for each in times if each < float("inf")]
        return max(0.0, min(times) - self._clock()) if times else None

    def _on_signal(self, signum: int, _frame: object) -> None:
        self._signals.append(signum)

    def _clear_wakeups(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._awake.recv(4096):
                pass


@contextmanager
def _handled(
    handler: Callable[[int, object], None], wake: socket.socket, *, hears_hangup: bool
) -> Iterator[None]:
    """Pass the signals that concern us to the handler, and a byte for each to `wake`.

    What `nohup` has started ignores SIGHUP, unless SIGHUP is how its parent tells it to restart all.
    """
    handled = [signal.SIGCHLD, signal.SIGTERM, signal.SIGINT]
    if hears_hangup or signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handled.append(signal.SIGHUP)
    wake_before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    before = {each: signal.signal(each, handler) for each in handled}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)
        signal.set_wakeup_fd(wake_before)
