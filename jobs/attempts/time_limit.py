"""A time limit for the main thread, by SIGALRM: the one alarm clock a process has, put back as it was found."""

import faulthandler
import signal
import threading
import time
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Self

GRACE_PERIOD = timedelta(seconds=5)
_STDERR = 2  # the descriptor: what handlers put in the place of `sys.stderr` may have none
_AGAIN = 1.0  # seconds: rings on, so that a handler that swallows the first is cut all the same


class TimeUp(BaseException):
    """The time limit is over. Not an `Exception`, so that `except Exception` in a handler lets it through."""


class TimeLimit:
    """The alarm clock of a batch of attempts: `with alarm:` around them all, `with alarm.limit(…):` around each.

    Does nothing outside the main thread. What no exception ends (a handler that swallows everything, a long call
    in C) ends with the process, one or two `grace` later: the lease brings the run back, and its attempts run out.
    RQ keeps its own limit on the same signal: handler and remaining time are restored on leaving.
    """

    def __init__(self, grace: timedelta = GRACE_PERIOD) -> None:
        self._grace = grace.total_seconds()
        self._is_ours = False
        self._is_set = False
        self._limit = 0.0
        self._ends_at = 0.0
        self._warn: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        self._is_ours = threading.current_thread() is threading.main_thread()
        if self._is_ours:
            self._began = time.monotonic()
            self._was_left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
            self._ringer = self._ring
            self._was_handler = signal.signal(signal.SIGALRM, self._ringer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_ours:
            return
        self._is_ours = False
        if self._ends_at:
            faulthandler.cancel_dump_traceback_later()
            self._ends_at = 0.0
        signal.signal(signal.SIGALRM, self._was_handler)
        if self._was_left:
            left = self._was_left - (time.monotonic() - self._began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))

    def start(self, limit: timedelta) -> None:
        """Raise `TimeUp` after `limit`, unless the time is `unset` before."""
        self._limit = limit.total_seconds()
        self.set()

    def limit(self, limit: timedelta) -> "_Limit":
        """Raise `TimeUp` in the block after `limit`."""
        self._limit = limit.total_seconds()
        return _Limit(self)

    @contextmanager
    def warning(self, warn: Callable[[], None]) -> Iterator[None]:
        """Call `warn` when the limit of the block around is over; `TimeUp` is raised a second later."""
        self._warn = warn
        try:
            yield
        finally:
            self._warn = None

    def time_up(self) -> TimeUp:
        """Return what says that the limit in force is over."""
        return TimeUp(f"took longer than {self._limit:g} s")

    def set(self) -> None:
        """Start the time; for `_Limit`."""
        if self._is_ours:
            self._end_process_after(self._limit)
            # The handler of an attempt before may have put its own there. `signal.getsignal` looks for an enum first,
            # 9 µs a run; `tests/jobs/attempts/test_time_limit.py` notices if this one changes.
            if getsignal(signal.SIGALRM) is not self._ringer:
                signal.signal(signal.SIGALRM, self._ringer)
            self._is_set = True
            signal.setitimer(signal.ITIMER_REAL, self._limit, _AGAIN)

    def unset(self) -> None:
        """Stop the time; for `_Limit`."""
        if self._is_set:
            self._is_set = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _end_process_after(self, limit: float) -> None:
        """Have the process end, unless what is set already does for this limit: it takes a thread each time."""
        grace, left = self._grace, self._ends_at - time.monotonic()
        if not limit + grace <= left <= limit + 2 * grace:
            self._ends_at = time.monotonic() + limit + 2 * grace
            faulthandler.dump_traceback_later(limit + 2 * grace, exit=True, file=_STDERR)

    def _ring(self, _signal: int, frame: FrameType | None) -> None:
        is_ours = frame is not None and frame.f_code in _TO_THE_END
        if self._is_set and not is_ours:
            warn, self._warn = self._warn, None
            if warn is None:
                raise self.time_up()
            warn()


class _Limit:
    """The block in which one limit holds."""

    def __init__(self, alarm: TimeLimit) -> None:
        self._alarm = alarm

    def __enter__(self) -> None:
        self._alarm.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alarm.unset()


_TO_THE_END = {f.__code__ for f in (_Limit.__enter__, _Limit.__exit__, TimeLimit.set, TimeLimit.unset)}
"""What must not be cut short; the alarm rings again."""
