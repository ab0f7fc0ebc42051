"""Limits of handlers, with real claims: how often, how many at once, and what the others notice of it."""

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from hookonce.jobs.handlers import HandlerError
from hookonce.jobs.maintenance.tasks import MaintenanceTasks
from hookonce.jobs.registration import on
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import limit_gate, takeover
from hookonce.receiver.ledger.runs.run_limits import Rate, RunLimit
from hookonce.receiver.redis.client import connect
from hookonce.testing.clock import Clock
from tests.support import claiming
from tests.support.inbox import effect
from tests.support.waiting import until

STEP = timedelta(seconds=1.25)
HUNDRED_A_MINUTE = RunLimit(rate=Rate(100, timedelta(minutes=1)))
THREE = RunLimit(concurrency=3)


def names(count):
    return [f"evt_{n:03}" for n in range(count)]


def claim(inbox, connection=None, **options):
    return list(claiming.claim(connection or inbox.connection, inbox.registry, **options).runs)


def lose(inbox):
    """Have the workers die that are at anything, and take over what they had."""
    inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now()")
    takeover.take_over(inbox.connection)


@pytest.fixture
def other(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def test_rate_lets_a_tenth_start_and_gives_the_others_times_of_their_own(inbox):
    inbox.on(effect, limit=HUNDRED_A_MINUTE)
    inbox.deliver(*names(40))

    inbox.work()

    waiting = inbox.rows(
        "SELECT due_at, slot_at FROM hookonce.run_states WHERE status = 'waiting' ORDER BY event"
    )
    assert len(inbox.effects()) == 10
    assert len({due for due, _ in waiting}) == 30
    assert all(due == slot for due, slot in waiting)


def test_run_at_its_time_is_claimed_once_more_and_runs(inbox):
    inbox.on(effect, limit=HUNDRED_A_MINUTE)
    inbox.deliver(*names(30))
    inbox.work()
    (before,) = inbox.rows("SELECT head FROM hookonce.limits")

    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now(), slot_at = now()")
    inbox.work()

    assert len(inbox.effects()) == 30
    assert inbox.rows("SELECT head FROM hookonce.limits") == [before]


def test_run_whose_time_is_long_past_gets_another(inbox):
    inbox.on(effect, limit=HUNDRED_A_MINUTE)
    inbox.deliver(*names(200))
    inbox.work()

    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now(), slot_at = now() - interval '1 h'")
    inbox.work()

    assert len(inbox.effects()) == 10


def test_each_account_has_a_rate_of_its_own(inbox):
    inbox.on(effect, limit=RunLimit(Rate(10, timedelta(minutes=1)), per="account"))
    inbox.deliver("a1", "a2", account="a")
    inbox.deliver("b1", "b2", account="b")

    inbox.work()

    assert len(inbox.effects()) == 2


def test_no_more_runs_are_leased_than_may_run_at_once(inbox, other):
    inbox.on(effect, limit=THREE)
    inbox.deliver(*names(20))

    leased = [claim(inbox, at_once=2), claim(inbox, other, at_once=8), claim(inbox, other, at_once=8)]

    assert [len(runs) for runs in leased] == [2, 0, 0]
    waiting = inbox.rows("SELECT waits, count(*) FROM hookonce.queue WHERE waits IS NOT NULL GROUP BY waits")
    assert waiting == [("limit:", 18)]


def test_all_are_run_by_and_by_in_their_order(inbox):
    ran = []

    def handler(event, tx):  # noqa: ARG001
        ran.append(event.event_id)

    inbox.on(handler, limit=THREE)
    inbox.deliver(*names(20))

    inbox.work()

    assert ran == names(20)


def test_rate_and_number_at_once_together_keep_the_order_and_waste_no_time(inbox):
    ran = []

    def handler(event, tx):  # noqa: ARG001
        ran.append(event.event_id)

    inbox.on(handler, limit=RunLimit(Rate(60, timedelta(minutes=1)), concurrency=1))
    inbox.deliver(*names(16))

    clock, began, passed = Clock(inbox.settings.database_url, int), time.monotonic(), timedelta(0)
    inbox.work()
    assert 6 <= len(ran) < 16  # a tenth of the rate at once
    while len(ran) < 16 and passed < timedelta(seconds=20):
        clock.advance(STEP)
        passed += STEP
        inbox.work()

    assert sorted(ran) == names(16)
    assert max(abs(ran.index(name) - n) for n, name in enumerate(names(16))) <= 3  # times 1.1 s apart
    assert timedelta(seconds=time.monotonic() - began) + passed > timedelta(seconds=7)


def test_run_without_a_place_keeps_the_time_that_its_rate_gave_it(inbox):
    inbox.on(effect, limit=RunLimit(Rate(60, timedelta(minutes=1)), concurrency=1))
    inbox.deliver("held", "next")
    claim(inbox, limit=1)
    inbox.connection.execute("UPDATE hookonce.limits SET head = now() + interval '5 s'")
    slot = inbox.rows("SELECT now() - interval '1 s'")[0][0]
    inbox.connection.execute(
        "UPDATE hookonce.queue SET handler = 'effect', slot_at = %s, schedule = l.schedule FROM hookonce.limits l "
        "WHERE token IS NULL",
        [slot],
    )

    claim(inbox)

    ((waits, kept),) = inbox.rows("SELECT waits, slot_at FROM hookonce.queue WHERE token IS NULL")
    assert (waits, abs(kept - slot) < timedelta(milliseconds=1)) == ("limit:", True)
    assert inbox.rows(
        "SELECT head > now() + interval '4 s' AND head < now() + interval '5 s' FROM hookonce.limits"
    ) == [(True,)]


def test_what_has_a_time_does_not_wait_behind_what_has_none_yet(inbox):
    inbox.on(effect, limit=RunLimit(Rate(60, timedelta(minutes=1)), concurrency=2))
    inbox.deliver("held", "held_too")
    claim(inbox, at_once=2)
    retries = sorted(inbox.deliver("retry", "another_retry"))
    (with_time,) = inbox.deliver("with_time")
    claim(inbox)
    inbox.connection.execute(
        "UPDATE hookonce.queue q SET slot_at = now() + interval '1 s', schedule = l.schedule FROM hookonce.limits l "
        "WHERE q.event = %s",
        [with_time],
    )
    inbox.connection.execute("UPDATE hookonce.limits SET head = now() + interval '1 hour'")
    lose(inbox)

    assert limit_gate.take_up(inbox.connection, inbox.registry.most_at_once) == [retries[0], with_time]

    claim(inbox, ids=[retries[0]])  # which gives it its time
    assert limit_gate.take_up(inbox.connection, inbox.registry.most_at_once) == [retries[1]]


def test_worker_that_died_gives_its_places_back(inbox):
    inbox.on(effect, limit=RunLimit(concurrency=1))
    inbox.deliver("held", "next")
    claim(inbox)
    inbox.work()
    before = inbox.effects()

    inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now()")
    inbox.work()

    assert (before, len(inbox.effects())) == ([], 2)


def test_place_of_a_run_that_was_lost_is_free_although_nobody_has_run_it_again(inbox):
    inbox.on(effect, limit=RunLimit(concurrency=1))
    inbox.deliver("held")
    claim(inbox)
    (after,) = inbox.deliver("next")

    assert claim(inbox) == []
    assert limit_gate.take_up(inbox.connection, inbox.registry.most_at_once) == []
    lose(inbox)

    assert limit_gate.take_up(inbox.connection, inbox.registry.most_at_once) == [after]
    assert [run.event.id for run in claim(inbox)] == [after]


def test_what_is_over_is_forgotten_and_nothing_else(inbox, redis_url):
    inbox.on(effect, limit=RunLimit(Rate(10, timedelta(minutes=1)), concurrency=1, per="account"))
    for account in ("old", "young", "queued"):
        inbox.deliver(f"{account}_1", f"{account}_2", account=account)
    held = claim(inbox)
    inbox.connection.execute("UPDATE hookonce.queue SET token = gen_random_uuid() WHERE event = 1")
    inbox.connection.execute("UPDATE hookonce.limits SET has_queue = (key = 'queued')")
    inbox.connection.execute(
        "UPDATE hookonce.limits SET head = now() - interval '3 days' WHERE key <> 'young'"
    )

    MaintenanceTasks(inbox.settings, connect(redis_url)).turn(inbox.connection)

    assert inbox.rows("SELECT key FROM hookonce.limits ORDER BY key") == [("queued",), ("young",)]
    left = inbox.rows("SELECT event FROM hookonce.limit_places ORDER BY event")
    assert left == [(run.event.id,) for run in held if run.event.id != 1]


IS_WAITED_FOR = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def test_place_that_is_given_anew_meanwhile_is_not_forgotten(inbox, other):
    inbox.connection.execute(
        "INSERT INTO hookonce.limit_places (handler, event, key, token) VALUES ('effect', 1, '', gen_random_uuid())"
    )
    with ThreadPoolExecutor() as threads:
        with other.transaction():
            other.execute("UPDATE hookonce.limit_places SET token = gen_random_uuid()")
            forgetting = threads.submit(limit_gate.forget, inbox.connection)
            until(lambda: other.execute(IS_WAITED_FOR).fetchall())
        forgetting.result()

    assert inbox.rows("SELECT event FROM hookonce.limit_places") == [(1,)]


def test_other_handlers_of_an_event_do_not_wait_for_a_limit(inbox):
    def free(event, tx):
        effect(event, tx)

    inbox.on(effect, limit=RunLimit(concurrency=1))
    inbox.on(free)
    inbox.deliver("first", "second")
    claim(inbox, ids=None, limit=1)

    inbox.work()

    assert ("second", "free", "done", 1) in inbox.runs()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": "fast"}, "is not a rate"),
        ({"rate": "0.5/s"}, "expected a whole number"),
        ({"rate": "99999999999/s"}, "1 to 9999999999"),
        ({"concurrency": 0}, "expected a number from 1"),
        ({"concurrency": True}, "expected a number from 1"),
        ({"breaker": True}, "expected a number of failures from 1"),
        ({"rate": "1/s", "per": "moon"}, "expected 'account' or 'source'"),
        ({"per": "account"}, "without rate= or concurrency="),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, said):
    with pytest.raises(HandlerError, match=said):
        on("stripe", **options)(effect)


def test_what_waits_for_a_place_is_taken_up_later_if_its_row_was_locked(inbox, other):
    inbox.on(effect, limit=RunLimit(concurrency=1))
    inbox.deliver("first", "second")
    claim(inbox, limit=2)
    inbox.connection.execute("DELETE FROM hookonce.queue WHERE waits IS NULL")
    with other.transaction():
        other.execute("SELECT FROM hookonce.queue FOR UPDATE")
        assert limit_gate.take_up(inbox.connection, inbox.registry.most_at_once) == []

    assert len(limit_gate.take_up(inbox.connection, inbox.registry.most_at_once)) == 1


def test_what_waited_runs_when_its_handler_has_no_limit_any_more(inbox):
    inbox.on(effect, limit=RunLimit(concurrency=1))
    inbox.deliver("first", "second")
    claim(inbox, limit=2)
    (limited,) = inbox.registry
    inbox.registry.keep([dataclasses.replace(limited, limit=None)])  # a new release

    inbox.drains.append(SingleSlot(inbox.settings, inbox.registry))
    inbox.drains[0].requeue_ignored()
    inbox.work()

    assert len(inbox.effects()) == 1
