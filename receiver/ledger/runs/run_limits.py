"""Limits of `@on(rate=…, concurrency=…, per=…)`: so many starts in a period, so many at once; and batches. No SQL.

A rate is a schedule: what comes beyond it gets a time of its own, spread over the period, so that a backlog is not
claimed again and again. A tenth of the rate may start at once after a silence, and no period has more times of one
rate than that. Starts may be late (`Rate.late`), so a period can have a tenth more of them, and a second as many again.
Where a handler gets another rate, the period of the change can have what has started by the old one besides.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from hookonce.receiver.ledger.runs.claimed import ClaimedEvent
from hookonce.receiver.source import Limit

_BURST_SHARE = 10
_MIN_LATE, _MAX_LATE = timedelta(seconds=1), timedelta(seconds=10)
_FARTHEST = timedelta(days=3650)
"""How far off a time may be: a queue of millions at one a day would come to the end of the calendar."""

PER: Final = ("account", "source")
"""What a limit may be counted by; otherwise there is one for the handler."""


MOST: Final = 5000
"""Events that a batch may be declared to hold."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many starts in each period."""

    count: int
    period: timedelta

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Read `100/m`: a number, and a second, a minute, an hour or a day. Raises ValueError for anything else."""
        try:
            limit = Limit.parse(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a rate; {error}") from None
        return cls(limit.count, limit.period)

    def __str__(self) -> str:
        letters = {timedelta(seconds=1): "s", timedelta(minutes=1): "m", timedelta(hours=1): "h"}
        return f"{self.count}/{letters.get(self.period, 'd')}"

    @property
    def burst(self) -> int:
        """How many may start at once after a silence."""
        return max(1, self.count // _BURST_SHARE)

    @property
    def interval(self) -> timedelta:
        """How far apart the times of the others are, so that with the burst no period has more than `count`."""
        return -(-self.period // (self.count - self.burst + 1))  # rounded up

    @property
    def late(self) -> timedelta:
        """How long after its time a run may still start; then the time is lost, for others have theirs by now."""
        return min(max(self.period / 10, _MIN_LATE), _MAX_LATE)


@dataclass(frozen=True, slots=True)
class RunLimit:
    """The limit of a handler's runs, for each of `per` by itself."""

    rate: Rate | None = None
    concurrency: int | None = None
    per: str | None = None

    @property
    def schedule(self) -> str:
        """The name of a rate, which tells the times that it gives from those of another; empty without a rate."""
        if self.rate is None:
            return ""
        return f"{self.rate} per {self.per}" if self.per else str(self.rate)

    def key(self, event: ClaimedEvent) -> str:
        """Return whose share of the limit an event's run uses."""
        if self.per == "account":
            return event.account or ""
        return event.source if self.per == "source" else ""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """`most` events at once; fewer wait for others until the first of them has been due for `wait`."""

    most: int
    wait: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        """Raise ValueError for what makes no sense."""
        if type(self.most) is not int or not 2 <= self.most <= MOST:  # noqa: PLR2004  one is no batch
            raise ValueError(f"most={self.most!r} is wrong; expected a number of events from 2 to {MOST}")


@lru_cache(maxsize=1000)
def rate_of(given: str) -> Rate | None:
    """Return the rate by which a row of `limits` says its times are given, whatever that of the worker that reads it.

    `given`: a `RunLimit.schedule`, and since when (`60/m per account@1764000000.5`), so that no time of before is one
    of its own; the runs that it gives times have the same.
    """
    schedule = given.partition("@")[0].partition(" per ")[0]
    return Rate.parse(schedule) if schedule else None


class Schedule:
    """The times of one rate for one key; `head` is when the next is free, as the ledger keeps it."""

    def __init__(self, rate: Rate, head: datetime, now: datetime) -> None:
        self._rate = rate
        self.head = head
        self._now = now

    def time_for(self, slot: datetime | None) -> datetime:
        """Return when a run may start: now or earlier is at once. `slot` is the time it was given before."""
        if slot is not None and self._now - self._rate.late <= slot:
            return slot
        earliest = self._now - (self._rate.burst - 1) * self._rate.interval
        given = min(max(self.head, earliest), self._now + _FARTHEST)
        self.head = given + self._rate.interval
        return given
