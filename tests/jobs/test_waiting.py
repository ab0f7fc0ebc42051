"""What a run waits for, as `hookonce events show` tells it, after real claims and attempts."""

from datetime import timedelta

import pytest

from hookonce import RetryLater
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.runs import claims
from hookonce.receiver.ledger.runs.run_limits import Rate, RunLimit
from hookonce.receiver.ledger.states import Parked, WaitsFor
from tests.support.inbox import effect

HOUR = timedelta(hours=1)


def fail(*_):
    raise ConnectionError("the shop is away")


def ask_for_time(*_):
    raise RetryLater(HOUR)


def waits_for(inbox, number):
    (run,) = events.detail(inbox.connection, number, inbox.settings.keyring).runs
    return run.status, run.waits_for


@pytest.mark.parametrize(
    ("handler", "options", "reason"),
    [
        (fail, {"backoff": (HOUR, HOUR)}, WaitsFor.BACKOFF),
        (ask_for_time, {}, WaitsFor.DELAY),
        (effect, {"limit": RunLimit(rate=Rate(1, HOUR))}, WaitsFor.RATE),
        (fail, {"breaker": 1, "backoff": (HOUR, HOUR)}, WaitsFor.BREAKER),
    ],
    ids=["backoff", "delay", "rate", "breaker"],
)
def test_run_that_waits_says_what_for(inbox, handler, options, reason):
    inbox.on(handler, **options)
    *_, last = inbox.deliver("a", "b", "c")

    inbox.work()

    assert waits_for(inbox, last) == ("waiting", reason)


def test_run_waits_for_a_place_of_its_limit(inbox):
    inbox.on(effect, limit=RunLimit(concurrency=1))
    first, second = inbox.deliver("a", "b")

    claims.claim(inbox.connection, inbox.registry, budget=HOUR)

    assert waits_for(inbox, first) == ("running", None)
    assert waits_for(inbox, second) == ("waiting", WaitsFor.LIMIT)


@pytest.mark.parametrize("kind", [Parked.SOURCE, Parked.HANDLER])
def test_run_waits_for_a_person_while_its_handler_or_its_source_is_paused(inbox, kind):
    inbox.on(fail, backoff=(timedelta(0), timedelta(0)))
    (number,) = inbox.deliver("a")
    run = claims.claim(inbox.connection, inbox.registry, budget=HOUR).runs[0]
    inbox.connection.execute(
        "UPDATE hookonce.runs SET status = 'waiting', token = NULL, lease_until = NULL, due_at = now()"
    )
    inbox.connection.execute("UPDATE hookonce.events SET status = 'waiting', due_at = now()")
    pauses.pause(inbox.connection, kind, "stripe" if kind == Parked.SOURCE else run.handler, "tests")

    inbox.work()

    assert waits_for(inbox, number) == ("waiting", WaitsFor.PAUSE)


def test_run_that_is_due_waits_for_a_worker(inbox):
    inbox.on(effect)
    (number,) = inbox.deliver("a")
    claims.claim(inbox.connection, inbox.registry, budget=HOUR)
    inbox.connection.execute(
        "UPDATE hookonce.runs SET status = 'waiting', token = NULL, lease_until = NULL, due_at = now()"
    )

    assert waits_for(inbox, number) == ("waiting", WaitsFor.WORKER)


def test_run_that_is_over_waits_for_nothing(inbox):
    inbox.on(effect)
    (number,) = inbox.deliver("a")

    inbox.work()

    assert waits_for(inbox, number) == ("done", None)
