"""How many events a handler takes at once, and how long they may wait for one another; no SQL here."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

MOST: Final = 5000
"""Events that a batch may be declared to hold."""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """`most` events at once; fewer wait for others until the first of them has been due for `wait`."""

    most: int
    wait: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        if type(self.most) is not int or not 2 <= self.most <= MOST:  # noqa: PLR2004  one is no batch
            raise ValueError(f"most={self.most!r} is wrong; expected a number of events from 2 to {MOST}")
