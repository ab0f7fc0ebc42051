"""A circuit breaker: after a few failures in a row, stop asking for a while.

It turns a hung Redis from a timeout per batch into one timeout every `pause`.
"""

import time
from collections.abc import Callable
from datetime import timedelta


class CircuitBreaker:
    """Counts failures in a row; open after `limit` of them, for `pause`, then one try decides."""

    def __init__(
        self,
        limit: int = 3,
        pause: timedelta = timedelta(seconds=2),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._pause = pause.total_seconds()
        self._clock = clock
        self._failures = 0
        self._closed_from = 0.0

    @property
    def is_open(self) -> bool:
        """Whether asking is pointless just now."""
        return self._failures >= self._limit and self._clock() < self._closed_from

    def succeeded(self) -> None:
        """Note an answer: close."""
        self._failures = 0

    def failed(self) -> None:
        """Note a failure; from the `limit`-th on, each opens for another `pause`."""
        self._failures += 1
        if self._failures >= self._limit:
            self._closed_from = self._clock() + self._pause
