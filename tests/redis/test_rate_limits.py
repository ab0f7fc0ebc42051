"""Buckets that all processes share: none lets more through than it may, and none takes from another."""

import threading
from datetime import timedelta

import pytest

from hookonce.receiver.redis import rate_limits
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.rate_limits import MAX_PUT_OFF, Asking, Bucket, RateLimits
from hookonce.receiver.source import Limit
from tests.support.waiting import at_once

HOUR = timedelta(hours=1)
TEN = Limit(10, HOUR)
NOWHERE = "redis://127.0.0.1:1/0"


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def limits(redis_url):
    with connect(redis_url) as client:
        yield RateLimits(client, CircuitBreaker())


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def own(clock):
    """The buckets of a process that has no Redis, and half of each."""
    with connect(NOWHERE) as client:
        yield RateLimits(client, CircuitBreaker(), 1 / 2, clock)


def taken(limits, bucket, times):
    return [not limits.wait([bucket]) for _ in range(times)]


def test_bucket_gives_as_many_as_it_holds(limits):
    assert taken(limits, Bucket("a", TEN), 12) == [True] * 10 + [False] * 2


def test_wait_is_until_there_is_one_more(limits):
    taken(limits, Bucket("a", TEN), 10)

    waits = [limits.wait([Bucket("a", TEN)]) for _ in range(3)]

    assert all(timedelta(minutes=5, seconds=50) < wait <= timedelta(minutes=6, seconds=1) for wait in waits)


def test_bucket_is_filled_again(limits):
    fast = Bucket("a", Limit(2, timedelta(milliseconds=40)))
    taken(limits, fast, 2)

    threading.Event().wait(limits.wait([fast], Asking.LOOK).total_seconds() + 0.01)

    assert taken(limits, fast, 1) == [True]


def test_one_takes_nothing_from_another(limits):
    taken(limits, Bucket("a", TEN), 20)

    assert taken(limits, Bucket("b", TEN), 11) == [True] * 10 + [False]


def test_nothing_is_taken_where_another_bucket_is_empty(limits):
    small, large = Bucket("small", Limit(1, HOUR)), Bucket("large", TEN)
    assert not limits.wait([small, large])

    assert [bool(limits.wait([small, large])) for _ in range(20)] == [True] * 20
    assert taken(limits, large, 10) == [True] * 9 + [False]


def test_look_takes_nothing(limits):
    assert [limits.wait([Bucket("a", Limit(1, HOUR))], Asking.LOOK) for _ in range(3)] == [timedelta(0)] * 3
    assert taken(limits, Bucket("a", Limit(1, HOUR)), 2) == [True, False]


def test_what_is_owed_is_spread_over_time_and_no_further_than_a_day(limits):
    one = Bucket("a", Limit(2, HOUR))

    waits = [limits.wait([one], Asking.OWE).total_seconds() for _ in range(4)]
    taken_in = [limits.wait([Bucket("a", Limit(2, HOUR), 1000)], Asking.OWE) for _ in range(2)]

    assert waits[:2] == [0, 0]
    assert waits[2:] == [pytest.approx(1800, abs=5), pytest.approx(3600, abs=5)]
    assert limits.wait([one], Asking.LOOK) <= MAX_PUT_OFF + HOUR / 2 + timedelta(seconds=1)
    assert taken_in


def test_more_than_a_bucket_holds_may_come_when_it_is_full(limits):
    batch = Bucket("a", TEN, 25)

    assert not limits.wait([batch])
    assert limits.wait([Bucket("a", TEN)]) > HOUR


def test_many_at_once_get_no_more_than_there_is(redis_url):
    got, start = [], threading.Barrier(20)

    def ask():
        with connect(redis_url) as client:
            mine = RateLimits(client, CircuitBreaker())
            start.wait()
            got.extend(taken(mine, Bucket("a", Limit(30, HOUR)), 5))

    at_once(*[ask] * 20)

    assert (len(got), sum(got)) == (100, 30)


def test_process_without_redis_keeps_its_share(own, clock):
    assert taken(own, Bucket("a", TEN), 7) == [True] * 5 + [False] * 2
    assert own.wait([Bucket("a", TEN)]) == timedelta(minutes=12)

    clock.now += 12 * 60
    assert taken(own, Bucket("a", TEN), 2) == [True, False]


def test_process_without_redis_owes_and_forgets_as_redis_does(own, monkeypatch):
    monkeypatch.setattr(rate_limits, "_MAX_BUCKETS", 2)

    waits = [own.wait([Bucket("a", Limit(2, HOUR))], Asking.OWE) for _ in range(3)]
    for name in ("b", "c"):
        own.wait([Bucket(name, TEN)])

    assert waits == [timedelta(0), timedelta(hours=1), timedelta(hours=2)]
    assert not own.wait([Bucket("a", Limit(2, HOUR))], Asking.LOOK)
