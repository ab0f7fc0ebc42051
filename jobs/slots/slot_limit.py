"""A time limit for one thread: a thread can't be killed, so it is told in steps, each stronger than the one before.

At the limit `TimeUp` is raised in it and its statement is cancelled; every second again, for handlers that swallow it.
After `Timeouts.grace` its socket is shut down. A handler that stays even then, in a call into C that waits for others,
has lost its slot: its run is ended for it. The watchdog rings, a thread that does nothing else and waits for nobody.
"""

import ctypes
import faulthandler
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from types import TracebackType
from typing import Self

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.time_limit import GRACE_PERIOD, TimeLimit, TimeUp
from hookonce.jobs.slots.slot import Slot

_raise_in = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)
_clear_in = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


@dataclass(frozen=True)
class Timeouts:
    """The waits of one process; nothing else is different where they are shorter."""

    again: timedelta = timedelta(seconds=1)
    """How long a thread that goes on after its time limit goes on until it is told again."""
    grace: timedelta = GRACE_PERIOD
    """How long after the limit its socket is shut down; a step later, its slot is lost."""
    cancellation: timedelta = timedelta(seconds=2)
    """How long the cancellation of a statement may take."""
    stop: timedelta = timedelta(seconds=20)
    """How long runs under way may go on when the process is told to stop; then they are given back, not counted."""
    broken: timedelta = timedelta(seconds=5)
    """How long runs under way may go on when too many slots are lost."""


USUAL = Timeouts()


class Step(Enum):
    """The measure that has just become necessary."""

    NONE = auto()
    CANCEL = auto()
    CUT = auto()
    LOST = auto()


class SlotLimit(TimeLimit):
    """The limit of one slot's attempts; `ring` is called by another thread, everything else by the slot's."""

    def __init__(self, connection: AttemptConnection | None = None, timeouts: Timeouts = USUAL) -> None:
        """Limit what is done on a connection."""
        super().__init__()
        self._connection = connection
        self._timeouts = timeouts
        self._lock = threading.Lock()
        self._thread = 0
        self._deadline: float | None = None
        self._ring_at = 0.0
        self._has_rung = False
        self._is_cut = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unset()

    def set(self) -> None:
        """Start the time."""
        with self._lock:
            self._thread = threading.get_ident()
            self._deadline = self._ring_at = time.monotonic() + self._limit
            self._has_rung = self._is_cut = False

    def unset(self) -> None:
        """Stop the time; what was raised in this thread and has not come yet never comes."""
        with self._lock:
            self._deadline = None
            if self._has_rung:
                self._has_rung = False
                _clear_in(self._thread, None)
        if self._connection is not None:
            self._connection.await_cancellation()

    def ring(self, now: float) -> Step:
        """Do what is due by the monotonic clock; return what that was.

        Only while the limit is set: what is cancelled, and what is cut, is never what comes after it.
        """
        with self._lock:
            if self._deadline is None or now < self._ring_at:
                return Step.NONE
            self._ring_at = now + self._timeouts.again.total_seconds()
            late = now - self._deadline
            if late >= self._timeouts.grace.total_seconds():
                if self._is_cut:
                    return Step.LOST
                self._is_cut = True
            warn, self._warn = self._warn, None
            if warn is None:
                self._has_rung = True
                _raise_in(self._thread, TimeUp)
            else:
                warn()
            if self._connection is not None:
                if self._is_cut:
                    self._connection.cut()
                else:
                    self._connection.cancel_statement(self._timeouts.cancellation)
            return Step.CUT if self._is_cut else Step.CANCEL


TICK = 0.1
INTERPRETER_HELD = timedelta(seconds=60)
"""A call into C that lets no other thread run for so long ends the process: nobody could end that call."""
_REARM = timedelta(seconds=10)
_STDERR = 2  # the descriptor: what handlers put in the place of `sys.stderr` may have none


class Watchdog:
    """Looks at all slots ten times a second; `on_lost` is told of each that nothing has ended, again and again."""

    def __init__(
        self, slots: Sequence[tuple[Slot | None, SlotLimit]], on_lost: Callable[[Slot], None]
    ) -> None:
        """Look at limits, with the slots that they are of; of what is no slot nothing is told."""
        self._slots = slots
        self._on_lost = on_lost
        self._end = threading.Event()
        self._armed_at = 0.0
        self._thread = threading.Thread(target=self._watch_on, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """End it."""
        self._end.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def _watch_on(self) -> None:
        while not self._end.wait(TICK):
            now = time.monotonic()
            if now > self._armed_at:  # it takes a thread each time
                self._armed_at = now + _REARM.total_seconds()
                held = (INTERPRETER_HELD + _REARM).total_seconds()
                faulthandler.dump_traceback_later(held, exit=True, file=_STDERR)
            for slot, limit in self._slots:
                if limit.ring(now) is Step.LOST and slot is not None:
                    self._on_lost(slot)
