"""How many slow runs a second the slots of a process end, so that as many are leased ahead as will be started soon."""

import time

_SPAN = 0.25
"""Seconds over which it is measured, at least."""


class Pace:
    """Counts, for all threads; one of them in a while may be lost, or the rate be told twice alike."""

    def __init__(self) -> None:
        self._count = 0
        self._since = time.monotonic()
        self._rate = 0.0

    def note(self) -> None:
        """Count a run."""
        self._count += 1

    def rate(self) -> float:
        """Return runs per second, lately."""
        now = time.monotonic()
        if now - self._since >= _SPAN:
            self._rate, self._count = self._count / (now - self._since), 0
            self._since = now
        return self._rate
