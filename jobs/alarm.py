"""A time limit for the main thread, by SIGALRM: the one alarm clock a process has, put back as it was found."""

import faulthandler
import signal
import threading
import time
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Self

GRACE = timedelta(seconds=5)
_AGAIN = 1.0  # seconds: rings on, so that a handler that swallows the first is cut all the same


class TimeUp(BaseException):
    """The time limit is over. Not an `Exception`, so that `except Exception` in a handler lets it through."""


class Alarm:
    """Raises `TimeUp` inside the `with` block after `limit`; does nothing outside the main thread.

    What no exception ends (a handler that swallows everything, a long call in C) ends with the process, `GRACE`
    later: the lease brings the run back, and its attempts run out. RQ keeps its own limit on the same signal:
    handler and remaining time are restored on leaving.
    """

    def __init__(self, limit: timedelta) -> None:
        self._limit = limit.total_seconds()
        self._is_set = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._began = time.monotonic()
            self._was_handler = signal.signal(signal.SIGALRM, self._ring)
            self._was_left, _ = signal.setitimer(signal.ITIMER_REAL, self._limit, _AGAIN)
            self._is_set = True
            faulthandler.dump_traceback_later(self._limit + GRACE.total_seconds(), exit=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_set:
            return
        self._is_set = False
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._was_handler)
        if self._was_left:
            left = self._was_left - (time.monotonic() - self._began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))

    def _ring(self, _signal: int, frame: FrameType | None) -> None:
        is_leaving = frame is not None and frame.f_code is Alarm.__exit__.__code__  # it must get to the end
        if self._is_set and not is_leaving:
            raise TimeUp
