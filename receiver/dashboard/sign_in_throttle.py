"""Slows down guessing: a few attempts to sign in at once, then one every few seconds, per client address.

Counted in Redis, for all receivers; and in this process, so that guessing stays slow where Redis does not answer, and
who is refused here costs Redis nothing. A client whose address is shared with the attacker's waits with it, unless it
has what can't be guessed: a long token, or a link (`sign_in`). A person who is signed in already does not notice.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from hookonce.receiver.redis import sign_in_attempts
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.web.client_address import network

MAX_ATTEMPTS = 5
RETRY_INTERVAL = timedelta(seconds=5)
"""After the attempts at once, one more every so often."""
MAX_ADDRESSES = 4096
"""Remembered at once; the one not seen for longest goes."""


class SignInThrottle:
    """Attempts by address: those made here, and what `shared` says, which counts those of all processes.

    `shared` takes a network, counts an attempt of it if it may be made, and returns how long it has to wait else.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        shared: Callable[[str], timedelta] = lambda _: timedelta(0),
    ) -> None:
        self._clock = clock
        self._shared = shared
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> timedelta:
        """Count an attempt and return zero if the address may make one now; else return how long it has to wait."""
        name = network(address)
        wait = self._wait(name)
        if wait > timedelta(0):
            return wait
        self._count(name)  # before others run while Redis is asked
        with suppress(RedisUnavailable):
            return self._shared(name)
        return timedelta(0)

    def _wait(self, name: str) -> timedelta:
        return RETRY_INTERVAL * max(0.0, self._level(name) - MAX_ATTEMPTS + 1)

    def _count(self, name: str) -> None:
        self._used[name] = (self._level(name) + 1, self._clock())
        self._used.move_to_end(name)
        while len(self._used) > MAX_ADDRESSES:
            self._used.popitem(last=False)

    def _level(self, name: str) -> float:
        used, at = self._used.get(name, (0.0, 0.0))
        return max(0.0, used - (self._clock() - at) / RETRY_INTERVAL.total_seconds())


def shared_attempts(redis_url: str, breaker: CircuitBreaker) -> Callable[[str], timedelta]:
    """Return what counts attempts in Redis. It raises `RedisUnavailable`."""

    def take(name: str) -> timedelta:
        if breaker.is_open:
            raise RedisUnavailable("it did not answer a moment ago")
        with connect(redis_url) as client:
            return sign_in_attempts.take(client, name, MAX_ATTEMPTS, RETRY_INTERVAL)

    return take
