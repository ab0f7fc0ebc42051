"""What the desk hears of a worker that runs one at a time: attempts that wrote and then wait in their transaction."""

import threading
import time
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from hookonce.jobs.report import Reporter
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.processes import repeating
from tests.support.desk import soon
from tests.support.inbox import effect
from tests.support.waiting import until

__all__ = ["soon"]

REPORTS = "SELECT slots, busy, lost FROM hookonce.worker_slots"


@pytest.fixture
def drain(inbox):
    inbox.drains.append(SingleSlot(inbox.settings, inbox.registry))
    return inbox.drains[0]


@pytest.fixture
def onlooker(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def named(connection):
    return [(each.handler, each.event) for each in worker_slots.long_transactions(connection)]


def deliver_to_one_that_waits(inbox, onlooker):
    """Deliver an event whose handler writes and waits until it is named; give its id, and where what was named goes."""
    found = []

    def waits(event, tx):
        effect(event, tx)
        found.append(until(lambda: named(onlooker)))

    inbox.on(waits)
    [event] = inbox.deliver("a")
    return event, found


@pytest.mark.usefixtures("soon")
def test_handler_that_wrote_and_waits_is_named_until_it_has_ended(inbox, drain, onlooker):
    event, found = deliver_to_one_that_waits(inbox, onlooker)

    with drain.reporting():
        inbox.work()
        assert found == [[("waits", event)]]
        assert named(onlooker) == []
        until(lambda: not inbox.rows(REPORTS))


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("count", [1, 3])
def test_batch_that_wrote_and_waits_is_named_once_by_its_first_event(inbox, drain, onlooker, count):
    found = []

    def collects(events, tx):
        effect(events[0], tx)
        found.append(until(lambda: named(onlooker)))

    inbox.on(collects, batch=BatchSize(3, timedelta(0)))
    first, *_ = inbox.deliver(*"abc"[:count])

    with drain.reporting():
        inbox.work()

    assert found == [[("collects", first)]]


@pytest.mark.usefixtures("soon")
def test_handler_that_waits_before_it_writes_is_not_named(inbox, drain, onlooker):
    found = []

    def waits(event, tx):
        until(lambda: inbox.rows(REPORTS))
        time.sleep(0.2)
        found.append(named(onlooker))
        effect(event, tx)

    inbox.on(waits)
    inbox.deliver("a")

    with drain.reporting():
        inbox.work()

    assert found == [[]]


@pytest.mark.usefixtures("soon")
def test_worker_that_runs_one_at_a_time_has_no_slots_to_be_listed(inbox, drain, onlooker):
    listed = []

    def waits(event, tx):
        effect(event, tx)
        until(lambda: inbox.rows(REPORTS))
        listed.append(worker_slots.workers(onlooker))

    inbox.on(waits)
    inbox.deliver("a")

    with drain.reporting():
        inbox.work()

    assert listed == [[]]


def test_nothing_is_written_where_nothing_takes_long(inbox, drain):
    def connect():
        raise AssertionError("nobody asked for a connection")

    looks = []

    def is_quick(event, _tx):
        Reporter(drain.slot, connect).look()
        looks.append(event.event_id)

    inbox.on(is_quick)
    inbox.deliver("a")

    inbox.work()

    assert looks == ["a"]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("error", [psycopg.OperationalError, OSError])
def test_report_that_fails_is_made_again(inbox, drain, onlooker, error):
    refusals = []

    @contextmanager
    def connect():
        if len(refusals) < 2:
            refusals.append(1)
            raise error("no more connections")
        with drain.lent() as connection:
            yield connection

    event, found = deliver_to_one_that_waits(inbox, onlooker)

    with Reporter(drain.slot, connect):
        inbox.work()

    assert (len(refusals), found) == (2, [[("waits", event)]])


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("is_held_up", [False, True])
def test_end_waits_for_a_report_that_is_under_way_but_not_for_a_server_that_hangs(
    inbox, drain, monkeypatch, is_held_up
):
    reached, let_go, ended = threading.Event(), threading.Event(), []
    monkeypatch.setattr(repeating, "_END_PATIENCE", timedelta(seconds=1 if is_held_up else 60))

    @contextmanager
    def connect():
        reached.set()
        let_go.wait(60 if is_held_up else 0.2)
        with drain.lent() as connection:
            yield connection
        ended.append(1)

    def waits(_event, _tx):
        reached.wait(10)

    inbox.on(waits)
    inbox.deliver("a")

    with Reporter(drain.slot, connect):
        inbox.work()
    said = len(ended)
    let_go.set()
    until(lambda: ended, [1])

    assert said == (not is_held_up)  # it would be, had the end waited for it


def test_slots_in_use_are_said_soon_after_they_have_changed(inbox, monkeypatch):
    monkeypatch.setattr(worker_slots, "REPORT_INTERVAL", timedelta(hours=1))
    let_go = threading.Event()

    def waits(_event, _tx):
        let_go.wait(20)

    inbox.on(waits, timeout=timedelta(seconds=30))
    inbox.deliver("a", "b")
    pool = Pool(inbox.settings, inbox.registry, slots=4)

    def in_use():
        return [busy for _, busy, _ in inbox.rows(REPORTS)]

    try:
        pool.run_due()
        until(in_use, [2])
        let_go.set()
        until(in_use, [0], falling=True)
    finally:
        let_go.set()
        pool.close()
