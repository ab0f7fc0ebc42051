"""How many runs a second the slots of a process end, so that as many are leased ahead as will be started soon."""

import time

_SPAN = 0.25
"""Seconds over which it is measured, at least."""


class Pace:
    """Counts; `note` is for all threads, and may lose one now and then, `rate` for one."""

    def __init__(self) -> None:
        self._count = 0
        self._since = time.monotonic()
        self._rate = 0.0

    def note(self) -> None:
        """Count a run."""
        self._count += 1

    def rate(self) -> float:
        """Return runs per second, lately."""
        passed = time.monotonic() - self._since
        if passed >= _SPAN:
            self._rate, self._count = self._count / passed, 0
            self._since += passed
        return self._rate
