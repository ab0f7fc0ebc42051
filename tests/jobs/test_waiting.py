"""What a run waits for, as `hookonce events show` tells it, after real claims and attempts."""

from datetime import timedelta

import pytest

from hookonce import RetryLater
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.reasons import WaitsFor
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.run_limits import BatchSize, Rate, RunLimit
from tests.support import claiming, desk
from tests.support.inbox import effect

HOUR = timedelta(hours=1)


def fail(*_):
    raise ConnectionError("the shop is away")


def ask_for_time(*_):
    raise RetryLater(HOUR)


def waits_for(inbox, number):
    (run,) = event_details.detail(inbox.connection, number, inbox.settings.keyring).with_content().runs
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

    claiming.claim(inbox.connection, inbox.registry)

    assert waits_for(inbox, first) == ("running", None)
    assert waits_for(inbox, second) == ("waiting", WaitsFor.LIMIT)


@pytest.mark.parametrize("kind", ["source", "handler"])
def test_run_waits_for_a_person_while_its_handler_or_its_source_is_paused(inbox, kind):
    inbox.on(fail, backoff=(timedelta(0), timedelta(0)))
    (number,) = inbox.deliver("a")
    leases.release(inbox.connection, claiming.claim(inbox.connection, inbox.registry).runs)
    pauses.pause(inbox.connection, kind, "stripe" if kind == "source" else "fail", "tests")

    inbox.work()

    assert waits_for(inbox, number) == ("waiting", WaitsFor.PAUSE)


def test_run_that_is_due_waits_for_a_worker(inbox):
    inbox.on(effect)
    (number,) = inbox.deliver("a")
    leases.release(inbox.connection, claiming.claim(inbox.connection, inbox.registry).runs)

    assert waits_for(inbox, number) == ("waiting", WaitsFor.WORKER)


def test_run_that_is_over_waits_for_nothing(inbox):
    inbox.on(effect)
    (number,) = inbox.deliver("a")

    inbox.work()

    assert waits_for(inbox, number) == ("done", None)


def test_run_whose_process_died_waits_to_be_run_by_itself(inbox):
    desk.suspects(inbox.connection, "shop.credit", 1)
    ((number,),) = inbox.rows("SELECT event FROM hookonce.run_states")

    assert waits_for(inbox, number) == ("waiting", WaitsFor.SUSPECT)


def test_part_of_a_batch_that_failed_waits_for_its_others(inbox):
    desk.halve(inbox.settings, inbox.connection, "shop.track", "no such place")
    waiting = inbox.rows("SELECT event FROM hookonce.queue")

    assert {waits_for(inbox, number) for (number,) in waiting} == {("waiting", WaitsFor.BATCH)}


@pytest.mark.parametrize(("since", "reason"), [(0, WaitsFor.BATCH), (11, WaitsFor.WORKER)])
def test_run_waits_for_others_of_its_batch_as_long_as_its_handler_says(inbox, since, reason):
    def count(events, tx):
        raise AssertionError((events, tx))

    inbox.on(count, batch=BatchSize(10, timedelta(seconds=10)))
    (number,) = inbox.deliver("a")
    register_handlers(inbox.connection, inbox.registry.rows(), inbox.registry.declarations())
    inbox.connection.execute(
        "UPDATE hookonce.queue SET handler = 'count', waits = 'batch', due_at = now() - %s",
        [timedelta(seconds=since)],
    )

    assert waits_for(inbox, number) == ("waiting", reason)
