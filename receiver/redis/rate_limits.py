"""Limits that all processes count together: buckets that are full at first and are filled again evenly.

Redis keys used here:

    hookonce:{limit:<whose>}:<name>    when the bucket is full again (ms, by the clock of Redis), as long as it is not

A bucket whose value can't be ours (no number, not finite, further ahead than any debt of ours) is full, and no answer
of Redis makes anybody wait for longer than the longest debt.

One script asks all buckets of a request, so that none is taken from where another is empty; they are one source's or
client's, and in one slot of a cluster. Where Redis does not answer, each process keeps buckets of its own, a share of
what all may have (`share`): full at first, so that much may come once more when Redis goes away, and again when it is
back.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

import redis

from hookonce.receiver.redis.answers import whole_number
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, Script, asking, disconnect_if_replica
from hookonce.receiver.source import Limit

MAX_PUT_OFF = timedelta(days=1)
"""A limit is for what comes at once; whatever was accepted is due after this long at the latest."""
_MAX_BUCKETS = 4096
_NONE = timedelta(0)

_ASK = """
-- KEYS: buckets. ARGV: what to do, longest time to put off (ms); for each: ms for one, ms for all, how many to take.
-- How long until there are so many in each (ms). A bucket that holds less than is asked for has to be full. What can't
-- be a bucket of ours is passed over: it may be inf, a word, a list, or so far ahead as nothing is put off.
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local wait, full = 0, {}
for n, key in ipairs(KEYS) do
    local one, all, many = tonumber(ARGV[3 * n]), tonumber(ARGV[3 * n + 1]), tonumber(ARGV[3 * n + 2])
    local held = tonumber(redis.pcall('GET', key))
    if not held or not (held <= now + all + ARGV[2]) then held = now end
    full[n] = math.max(held, now) + one * many
    wait = math.max(wait, full[n] - math.max(all, one * many) - now)
end
if ARGV[1] == 'ask' or ARGV[1] == 'take' and wait > 0 then return math.ceil(wait) end
for n, key in ipairs(KEYS) do
    full[n] = math.min(full[n], now + ARGV[3 * n + 1] + ARGV[2])
    redis.call('SET', key, string.format('%.3f', full[n]), 'PX', math.max(1, math.ceil(full[n] - now)))
end
return math.ceil(wait)
"""


class Asking(StrEnum):
    """The use of the buckets: look, take if there is enough in each, take in any case."""

    LOOK = "ask"
    TAKE = "take"
    OWE = "owe"


class Bucket(NamedTuple):
    """One bucket and how many are taken from it; `name` says whose it is, and for what."""

    name: str
    limit: Limit
    many: int = 1


class RateLimits:
    """The buckets of one Redis, behind a circuit breaker; `share` of each where Redis does not answer."""

    def __init__(
        self,
        client: redis.Redis,
        breaker: CircuitBreaker,
        share: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._breaker = breaker
        self._script = Script(client, _ASK)
        self._own = _OwnBuckets(share, clock)

    def wait(self, buckets: Sequence[Bucket], asking_for: Asking = Asking.TAKE) -> timedelta:
        """Return how long until there is enough in each bucket, no time at all if there is; raises nothing."""
        if self._breaker.is_open:
            return self._own.wait(buckets, asking_for)
        longest = MAX_PUT_OFF + max(bucket.limit.period for bucket in buckets)
        try:
            with asking():
                answer = self._script(
                    [_key(bucket.name) for bucket in buckets],
                    [asking_for, _ms(MAX_PUT_OFF), *(each for bucket in buckets for each in _of(bucket))],
                )
                wait = whole_number(answer, int(_ms(longest)))
        except RedisUnavailable as error:
            self._breaker.failed()
            disconnect_if_replica(self._client, error.__cause__)
            return self._own.wait(buckets, asking_for)
        self._breaker.succeeded()
        return timedelta(milliseconds=wait)

    def wait_here(self, buckets: Sequence[Bucket], asking_for: Asking = Asking.TAKE) -> timedelta:
        """The same by this process's own buckets, where Redis is not to be believed."""
        return self._own.wait(buckets, asking_for)


class _OwnBuckets:
    """The same, in this process alone; whoever was not seen for longest is forgotten first, so has a full bucket."""

    def __init__(self, share: float, clock: Callable[[], float]) -> None:
        self._share = share
        self._clock = clock
        self._lock = threading.Lock()
        self._full: OrderedDict[str, float] = OrderedDict()

    def wait(self, buckets: Sequence[Bucket], asking_for: Asking) -> timedelta:
        with self._lock:
            return self._asked(buckets, asking_for)

    def _asked(self, buckets: Sequence[Bucket], asking_for: Asking) -> timedelta:
        now, wait = self._clock() * 1000, 0.0
        full = {}
        for bucket in buckets:
            one, period, many = _of(bucket)
            one /= self._share
            full[bucket.name] = max(self._full.get(bucket.name, now), now) + one * many
            wait = max(wait, full[bucket.name] - max(period, one * many) - now)
        if asking_for is Asking.OWE or (asking_for is Asking.TAKE and wait <= 0):
            for bucket in buckets:
                most = now + _ms(bucket.limit.period) + _ms(MAX_PUT_OFF)
                self._full[bucket.name] = min(full[bucket.name], most)
                self._full.move_to_end(bucket.name)
            while len(self._full) > _MAX_BUCKETS:
                self._full.popitem(last=False)
        return max(timedelta(milliseconds=wait), _NONE)


def _key(bucket: str) -> str:
    whose, _, name = bucket.rpartition(":")
    return f"hookonce:{{limit:{whose}}}:{name}"


def _of(bucket: Bucket) -> tuple[float, float, int]:
    period = _ms(bucket.limit.period)
    return period / bucket.limit.count, period, bucket.many


def _ms(span: timedelta) -> float:
    return span / timedelta(milliseconds=1)
