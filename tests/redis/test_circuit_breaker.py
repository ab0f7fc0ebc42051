from datetime import timedelta

from hookonce.receiver.redis.circuit_breaker import CircuitBreaker


def breaker_at(now):
    return CircuitBreaker(limit=2, pause=timedelta(seconds=5), clock=lambda: now[0])


def test_breaker_opens_after_failures_in_a_row():
    breaker = breaker_at([0.0])

    breaker.failed()
    assert not breaker.is_open
    breaker.failed()
    assert breaker.is_open


def test_breaker_counts_only_failures_in_a_row():
    breaker = breaker_at([0.0])

    breaker.failed()
    breaker.succeeded()
    breaker.failed()

    assert not breaker.is_open


def test_breaker_closes_at_once_when_another_try_succeeds():
    breaker = breaker_at([0.0])
    breaker.failed()
    breaker.failed()

    breaker.succeeded()

    assert not breaker.is_open


def test_breaker_lets_one_try_through_after_the_pause():
    now = [0.0]
    breaker = breaker_at(now)
    breaker.failed()
    breaker.failed()

    now[0] = 5.0
    assert not breaker.is_open
    breaker.failed()
    assert breaker.is_open
