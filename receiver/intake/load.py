"""Holds sources and tokens to their limits. What is beyond one is refused only where it surely comes again.

A source that is not refused is *held*: everything is accepted and stored, and what is beyond its limit is due later, in
the order in which the limit allows it. Only what was verified and is new counts, so nobody uses up another's limit.
"""

import math
from datetime import timedelta

from hookonce.receiver.intake.limit_doubts import LimitDoubts
from hookonce.receiver.logs import limited
from hookonce.receiver.redis.rate_limits import MAX_PUT_OFF, Asking, Bucket, RateLimits
from hookonce.receiver.source import Limit, Source

log = limited(__name__)

_NONE = timedelta(0)


class OverLimit(Exception):  # noqa: N818  an answer
    """More came than may: to be answered with `status`; after `wait` there is room again."""

    def __init__(self, wait: timedelta, status: int = 429) -> None:
        super().__init__(f"over its limit; there is room in {wait.total_seconds():.1f} s")
        self.status = status
        self.retry_after = str(max(1, math.ceil(wait.total_seconds())))


class Load:
    """Limits on what may come, counted by all processes together (`receiver.redis.rate_limits`)."""

    def __init__(self, limits: RateLimits, doubts: LimitDoubts) -> None:
        self._limits = limits
        self._doubts = doubts

    def admit(self, source: Source, events: int) -> timedelta | None:
        """Count a delivery of so many events; return how long they are put off. Raises `OverLimit`."""
        buckets = _buckets(source, 1, events)
        if not buckets:
            return None
        refuses = source.refuses_with is not None
        asking_for = Asking.TAKE if refuses else Asking.OWE
        wait = self._limits.wait(buckets, asking_for)
        if wait > _NONE and not self._doubts.believes(source, events):
            wait = self._limits.wait_here(buckets, asking_for)
        if wait <= _NONE:
            return None
        if source.refuses_with is not None:
            log.warning("refused: a source sends more than it may", extra={"source": source.name})
            raise OverLimit(wait, source.refuses_with)
        log.warning("put off: a source sends more than it may", extra={"source": source.name})
        return min(wait, MAX_PUT_OFF)

    def give_back(self, source: Source, events: int, *, is_all: bool) -> None:
        """Uncount what was known before, so that whoever repeats a captured delivery uses up nobody's limit.

        `is_all`: nothing of the delivery was new, and it counts for nothing itself.
        """
        buckets = _buckets(source, -1 if is_all else 0, -events)
        if buckets:
            self._limits.wait(buckets, Asking.OWE)

    def require(self, whose: str, rate: Limit | None, quota: Limit | None = None) -> None:
        """Count one request. Raises `OverLimit` where one of the limits does not allow it."""
        limits = {"rate": rate, "quota": quota}
        buckets = [Bucket(f"{whose}:{name}", limit) for name, limit in limits.items() if limit]
        if buckets and (wait := self._limits.wait(buckets)) > _NONE:
            raise OverLimit(wait)

    def take(self, whose: str, quota: Limit) -> timedelta:
        """Count one where a quota has room; return no time then, else how long until it has."""
        return self._limits.wait([Bucket(f"{whose}:quota", quota)])

    def count(self, whose: str, quota: Limit, many: int = 1) -> None:
        """Count so many, whether or not the quota has room; less than none gives back."""
        self._limits.wait([Bucket(f"{whose}:quota", quota, many)], Asking.OWE)


def _buckets(source: Source, deliveries: int, events: int) -> list[Bucket]:
    """Return the buckets of a source's limits, and how many to take from each; none of which nothing is taken."""
    wanted = (("rate", source.rate, deliveries), ("quota", source.quota, events))
    return [
        Bucket(f"source:{source.name}:{name}", limit, many) for name, limit, many in wanted if limit and many
    ]
