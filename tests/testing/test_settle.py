"""What an inbox under test lets time pass for: rates, breakers, limits and batches as well as pauses."""

import time
from datetime import timedelta

import pytest

from hookonce import RetryLater, on, on_batch
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.testing import crash_at, handled_once

SECONDS_OF_A_TEST = 50  # on a machine that is busy; what is waited for would take longer in each case


def deliver(bench, count, **how):
    return [bench.deliver("stripe", "invoice.paid", **how) for _ in range(count)]


def fail(_event):
    raise LookupError("no such customer")


def outage(acts, **options):
    """Register a handler of paid invoices that does the first of `acts`, which is taken out unless it is the last."""

    @on("stripe", "invoice.paid", name="shop.credit", **options)
    def credit(event, _tx):
        act = acts.pop(0) if len(acts) > 1 else acts[0]
        return act(event)

    return credit


def later(_event):
    raise RetryLater(60)


def test_rate_passes_without_anybody_waiting_for_it(bench):
    outage([lambda _: None], rate="10/m")
    began, before = time.monotonic(), bench.clock.now()

    sent = deliver(bench, 15)
    attempts = bench.settle()

    assert all(handled_once(each) for each in sent)
    assert attempts == 14  # one, a tenth of the rate, was at once
    assert timedelta(seconds=80) < bench.clock.now() - before < timedelta(seconds=100)  # 14 times 6 s
    assert time.monotonic() - began < SECONDS_OF_A_TEST


def test_advance_moves_the_schedule_of_a_rate(bench):
    outage([lambda _: None], rate="1/h")
    deliver(bench, 2)

    bench.clock.advance(timedelta(minutes=59))
    assert bench.work() == 0
    bench.clock.advance(timedelta(minutes=1))

    assert bench.work() == 1


def test_advance_makes_a_breaker_try_one(bench):
    outage([fail, fail, lambda _: None], breaker=2, attempts=5, backoff=(0, 0))
    first, second = deliver(bench, 2)
    bench.clock.advance(29)
    assert bench.work() == 0

    bench.clock.advance(2)

    assert bench.work() == 2  # the trial, and what it frees
    handled_once(first)
    handled_once(second)


def test_settle_waits_for_a_service_that_comes_back(bench):
    outage([fail, fail, fail, fail, lambda _: None], breaker=2, attempts=9, backoff=(0, 0))
    sent = deliver(bench, 3)

    bench.settle()

    assert all(handled_once(each) for each in sent)
    assert bench.execute("SELECT count(*) FROM hookonce.breakers") == [(0,)]


def test_settle_names_the_breaker_that_stays_open(bench):
    outage([fail, fail, later], breaker=2, attempts=9, backoff=(0, 0))
    deliver(bench, 3)

    with pytest.raises(
        AssertionError,
        match=r"3 events had not ended:\n  shop\.credit: 3 waiting for its circuit breaker, open after 2 failures: L",
    ):
        bench.settle()


@pytest.mark.parametrize(("kind", "name"), [("handler", "shop.credit"), ("source", "stripe")])
def test_settle_names_what_is_paused(bench, kind, name):
    outage([lambda _: None])
    with connections.connect(bench.database_url) as connection:
        pauses.pause(connection, kind, name, "a person")
    began = time.monotonic()
    deliver(bench, 2)

    with pytest.raises(
        AssertionError,
        match=f"after 0 attempts 2 events had not ended:\n.*: 2 waiting, {kind} '{name}' is paused",
    ):
        bench.settle()

    assert time.monotonic() - began < SECONDS_OF_A_TEST


def test_settle_names_a_limit_that_stays_full(bench):
    outage([lambda _: None], concurrency=1, per="account")
    deliver(bench, 1, work=False)
    with crash_at(bench, "handler.returned"):
        bench.work()
    deliver(bench, 1)
    bench.execute("UPDATE hookonce.limits SET has_queue = false")  # nobody will come for it
    bench.execute("DELETE FROM hookonce.queue WHERE token IS NOT NULL")

    with pytest.raises(AssertionError, match=r"shop\.credit: 1 waiting: its handler's limit is full"):
        bench.settle()


def test_settle_lets_a_lost_place_of_a_limit_be_taken(bench):
    outage([lambda _: None], concurrency=1)
    deliver(bench, 1, work=False)
    with crash_at(bench, "handler.returned"):
        bench.work()

    (second,) = deliver(bench, 1)
    bench.settle()

    handled_once(second)


def test_settle_lets_a_batch_wait_for_others(bench):
    sizes = []

    @on_batch("stripe", "invoice.paid", name="shop.count", most=100, wait="60s")
    def count(events, _tx):
        sizes.append(len(events))

    began = time.monotonic()
    deliver(bench, 3)

    assert bench.settle() == 3
    assert sizes == [3]
    assert time.monotonic() - began < SECONDS_OF_A_TEST


def test_settle_says_that_a_handler_asks_for_more_time_for_ever(bench, monkeypatch):
    monkeypatch.setattr("hookonce.testing.inbox._MAX_ROUNDS", 5)
    outage([later])
    deliver(bench, 1)

    with pytest.raises(AssertionError, match=r"shop\.credit: 1 waiting: its handler asked for more time"):
        bench.settle()
