"""One run of the benchmark: its servers, the time that is left, and the figures that scenarios note."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from bench.servers.stack import Stack


@dataclass
class Run:
    """One run of the benchmark. `quick` is for a look, not for a claim.

    No scenario starts another round after `rounds_until`, so that a slow one leaves time to the others.
    """

    stack: Stack
    quick: bool
    until: float
    rounds_until: float = float("inf")
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def pick(self, full: float, quick: float) -> float:
        """Choose between the two kinds of run."""
        return quick if self.quick else full

    def rounds(self, full: int, quick: int, seconds: float) -> Iterator[int]:
        """Count rounds while there is time for another of so many seconds; at least one."""
        for number in range(quick if self.quick else full):
            if number and not self.has_time(seconds):
                print(f"  out of time after {number} rounds", flush=True)
                return
            yield number

    def has_time(self, seconds: float) -> bool:
        """Whether something that takes so many seconds ends in time."""
        return time.monotonic() + seconds < min(self.until, self.rounds_until)

    def note(self, **values: float | None) -> None:
        """Add a value to each of these figures, None to none; a figure is the median of its values."""
        for name, value in values.items():
            if value is not None:
                self.figures[name].append(value)

    def figure(self, name: str) -> float | None:
        """Return a figure so far; None if it was not measured."""
        return median(self.figures[name]) if name in self.figures else None
