"""Work that a process does again and again beside its runs, in a thread of its own: the main thread is a handler's."""

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Self

log = logging.getLogger(__name__)

_END_PATIENCE = timedelta(seconds=1)
"""How long the end of a process waits for work that is under way; a server may hang."""


class Repeating(AbstractContextManager["Repeating"]):
    """Calls `look` every so often as long as the block lasts, and `at_end` then; what these raise is logged.

    Errors that are `expected`, of a server that is away, are logged by their type alone.
    """

    expected: tuple[type[Exception], ...] = ()

    def __init__(self, name: str, interval: timedelta, what_failed: str) -> None:
        self._interval, self._what_failed = interval.total_seconds(), what_failed
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name=name, daemon=True)

    def look(self) -> None:
        """Do the work once."""
        raise NotImplementedError

    def at_end(self) -> None:
        """Do what is left when the block has ended."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended.set()
        self._thread.join(_END_PATIENCE.total_seconds())

    def _go_on(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are to wake the main thread
        while not self._has_ended.is_set():
            self._try(self.look)
            self._has_ended.wait(self._interval)
        self._try(self.at_end)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except self.expected as error:
            log.info("%s: %s", self._what_failed, type(error).__name__)
        except Exception:
            log.exception("%s", self._what_failed)
