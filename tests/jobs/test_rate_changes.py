"""A handler is given another rate, or none: what the old one has put off comes by the new one."""

import dataclasses
from datetime import timedelta

import psycopg
import pytest

from hookonce.jobs import claimer
from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs import limit_gate, queue_pages
from hookonce.receiver.ledger.runs.queue_pages import RateChanges
from hookonce.receiver.ledger.runs.run_limits import Rate, RunLimit
from tests.support import claiming
from tests.support.inbox import effect
from tests.support.rewording import reword
from tests.support.waiting import until

TEN_AN_HOUR = RunLimit(Rate.parse("10/h"))


def names(count):
    return [f"evt_{n:03}" for n in range(count)]


@pytest.fixture
def put_off(inbox):
    """Six events, five of which wait for a rate of ten an hour."""
    inbox.on(effect, limit=TEN_AN_HOUR)
    inbox.deliver(*names(6))
    inbox.work()
    assert len(inbox.effects()) == 1
    assert limit_gate.delays(inbox.connection)["effect"] > timedelta(minutes=30)
    return inbox


def deploy(inbox, limit):
    """Start a worker of a release whose handler has this limit; return its drain, which has looked."""
    (old,) = inbox.registry
    new = Registry()
    new.add(dataclasses.replace(old, limit=limit))
    drain = SingleSlot(inbox.settings, new)
    inbox.drains.append(drain)
    drain.tend_rates()
    return drain


def work_until(inbox, drain, count):
    """Have a worker look, as each does every second, until there are so many effects."""
    until(lambda: (drain.run_due(), len(inbox.effects()))[1], count)


@pytest.mark.parametrize(
    "limit", [None, RunLimit(Rate.parse("1000/m")), RunLimit(Rate.parse("1000/m"), per="source")]
)
def test_what_a_slower_rate_has_put_off_runs_soon(put_off, limit):
    drain = deploy(put_off, limit)
    put_off.deliver("new")

    work_until(put_off, drain, 7)


def test_no_delay_is_told_of_a_handler_that_has_no_rate_any_more(put_off):
    deploy(put_off, None)

    assert limit_gate.delays(put_off.connection) == {}


def test_what_a_faster_rate_has_put_off_waits_for_the_slower_one(inbox):
    inbox.on(effect, limit=RunLimit(Rate.parse("60/m")))
    inbox.deliver(*names(40))
    inbox.work()
    before = len(inbox.effects())

    deploy(inbox, TEN_AN_HOUR).run_due()

    assert len(inbox.effects()) <= before + 1
    ((first, last),) = inbox.rows(
        "SELECT min(slot_at) - now(), max(slot_at) - now() FROM hookonce.run_states WHERE status = 'waiting'"
    )
    assert first > timedelta(minutes=5)
    assert last > timedelta(hours=3)


@pytest.mark.parametrize("schedule", ["10/d@1", "10/h@1"])
def test_time_that_another_rate_gave_or_the_same_one_before_another_is_no_time(put_off, schedule):
    put_off.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    put_off.connection.execute("UPDATE hookonce.limits SET schedule = %s, head = now()", [schedule])
    before = put_off.rows("SELECT event, slot_at FROM hookonce.queue WHERE token IS NULL ORDER BY event")
    (handler,) = put_off.registry
    registry = Registry()
    registry.add(dataclasses.replace(handler, limit=RunLimit(Rate.parse("10/d"))))

    claiming.claim(put_off.connection, registry)

    after = put_off.rows("SELECT event, slot_at FROM hookonce.queue WHERE token IS NULL ORDER BY event")
    assert [slot for _, slot in after] > [slot for _, slot in before]
    by = put_off.rows("SELECT DISTINCT schedule FROM hookonce.queue")
    assert by == put_off.rows("SELECT schedule FROM hookonce.limits")


def test_old_worker_gives_times_by_the_new_rate(put_off):
    drain = deploy(put_off, RunLimit(Rate.parse("1000/m")))
    work_until(put_off, drain, 6)
    put_off.deliver("one", "two", "three")

    work_until(put_off, put_off.drains[0], 9)


def starts_within_a_minute(inbox):
    """Count what has started, and what has a time of the rate within the next minute."""
    ((count,),) = inbox.rows(
        "SELECT count(*) FROM hookonce.run_states WHERE status = 'waiting' AND slot_at < now() + interval '1 minute'"
    )
    return count + len(inbox.effects())


@pytest.mark.parametrize("old", ["only claims", "looks, too", "is restarted"])
def test_rate_holds_while_workers_with_another_one_are_there(inbox, old):
    limits = [TEN_AN_HOUR, RunLimit(Rate.parse("60/m"))]
    inbox.on(effect, limit=limits[0])
    inbox.deliver("first")
    inbox.work()
    drains = [inbox.drains[0], deploy(inbox, limits[1])]
    counts = []
    for n in range(4):
        for number in (0, 1):
            if old == "is restarted":
                drains[number] = deploy(inbox, limits[number])
            inbox.deliver(*[f"{number}_{n}_{each}" for each in range(50)])
            if number == 1 or old != "only claims":
                drains[number].tend_rates()
            drains[number].run_due()
        counts.append(starts_within_a_minute(inbox))

    assert 50 < max(counts) <= 66  # a tenth of it late
    rates = inbox.rows("SELECT split_part(schedule, '@', 1) FROM hookonce.limits")
    assert rates == [("60/m",)]


def test_worker_of_before_writes_its_rate_if_that_of_another_is_old(put_off):
    deploy(put_off, RunLimit(Rate.parse("1000/m")))
    before = put_off.rows("SELECT schedule FROM hookonce.limits")

    put_off.drains[0].tend_rates()
    assert put_off.rows("SELECT schedule FROM hookonce.limits") == before
    put_off.connection.execute(
        "UPDATE hookonce.limits SET schedule = '1000/m@' || extract(epoch FROM now() - interval '16 minutes')"
    )
    put_off.drains[0].tend_rates()

    ((after,),) = put_off.rows("SELECT schedule FROM hookonce.limits")
    assert after.startswith("10/h@")


def test_long_queue_has_nothing_else_looked_for_again(put_off, monkeypatch):
    monkeypatch.setattr(queue_pages, "TURN", timedelta(0))
    monkeypatch.setattr(claimer, "RATE_CHANGE_INTERVAL", timedelta(0))
    looks = []
    monkeypatch.setattr(SingleSlot, "requeue_ignored", lambda _: looks.append(1))

    drain = deploy(put_off, None)
    work_until(put_off, drain, 6)

    assert looks == []


def test_same_rate_changes_nothing(put_off):
    before = put_off.rows("SELECT due_at, slot_at FROM hookonce.run_states ORDER BY event")
    head = put_off.rows("SELECT * FROM hookonce.limits")

    deploy(put_off, TEN_AN_HOUR).run_due()

    assert put_off.rows("SELECT due_at, slot_at FROM hookonce.run_states ORDER BY event") == before
    assert put_off.rows("SELECT * FROM hookonce.limits") == head


def test_retry_that_waits_for_its_time_is_left_alone(inbox):
    def fails(event, tx):  # noqa: ARG001
        raise ConnectionError

    inbox.on(fails, limit=RunLimit(Rate.parse("10/h")), backoff=(timedelta(hours=1),) * 2)
    inbox.deliver(*names(3))
    inbox.work()
    before = inbox.runs()

    drain = deploy(inbox, None)
    drain.run_due()

    assert [row[3] for row in before] == [1, 0, 0]
    assert [row[3] for row in inbox.runs()] == [1, 1, 1]


def test_change_that_failed_before_its_first_page_is_begun_anew(put_off, database_url):
    changes = RateChanges()
    put_off.connection.execute("SET lock_timeout = '50ms'")
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE hookonce.queue IN EXCLUSIVE MODE")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            changes.tend(put_off.connection, {"effect": ""})

    changes.tend(put_off.connection, {"effect": ""})

    assert put_off.rows("SELECT count(*) FROM hookonce.queue WHERE due_at > now()") == [(0,)]


def test_long_queue_is_gone_through_in_turns_and_by_each_worker_so_that_one_may_die(put_off, monkeypatch):
    monkeypatch.setattr(queue_pages, "TURN", timedelta(0))
    reword(monkeypatch, queue_pages, ("FIRST 2000", "FIRST 2"))
    wanted = {"effect": ""}
    first = RateChanges()
    assert not first.tend(put_off.connection, wanted)
    due = "SELECT count(*) FROM hookonce.run_states WHERE status = 'waiting' AND due_at <= now()"
    assert put_off.rows(due) == [(2,)]

    other = RateChanges()
    turns = 0
    while not other.tend(put_off.connection, wanted):
        turns += 1

    assert turns > 1
    assert put_off.rows(due) == [(5,)]
    assert other.tend(put_off.connection, wanted)
