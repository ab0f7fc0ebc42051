"""How what is under way ends with its process, or without its slot: who is charged, and who is given back."""

import logging
import threading
from datetime import timedelta

import psycopg
import pytest

from hookonce.jobs import claimer
from hookonce.jobs.attempts import failing, failure_callbacks
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.ports import Attempt
from hookonce.jobs.slots import pool as pools
from hookonce.jobs.slots.lost_slots import LostSlots
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.slots.slot_limit import Timeouts
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.ledger.runs import breakers, takeover
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.jobs.slots.conftest import IMPATIENT
from tests.support.claiming import lapse
from tests.support.inbox import effect
from tests.support.waiting import until

SHORT = timedelta(seconds=0.3)
HOUR = timedelta(hours=1)
STARTS = 6
STARTED = "SELECT 1 FROM hookonce.run_states WHERE status = 'running'"


@pytest.fixture
def stuck(inbox, let_go):
    """A handler that nothing ends: a lock is waited for in C."""

    def stuck(_event, _tx):
        let_go.wait(60)

    inbox.on(stuck, pattern="stuck", timeout=SHORT, attempts=2, backoff=(HOUR, HOUR))


def is_over(inbox):
    return not inbox.rows("SELECT FROM hookonce.event_states WHERE status NOT IN ('done', 'dead')")


def statuses(inbox):
    return {event: (status, attempts) for event, _, status, attempts in inbox.runs()}


def test_batch_that_nothing_ends_is_halved_until_who_is_stuck_is_charged_alone(inbox, pool_of, let_go):
    sizes = []

    def collects(events, _tx):
        sizes.append(len(events))
        if any(event.event_id == "bad" for event in events):
            let_go.wait(60)

    inbox.on(collects, batch=BatchSize(50), timeout=timedelta(seconds=0.5), attempts=1)
    inbox.deliver("bad", "b", "c", "d")

    for _ in range(STARTS):
        let_go.clear()
        with pool_of(4, timeouts=IMPATIENT) as pool:
            pool.run_due()
            until(lambda: stopping.is_set() or is_over(inbox))
            assert pool.finish() == (pools.RESTART if stopping.is_set() else 0)
        if is_over(inbox):
            break

    assert (sizes[0], sizes.count(4), min(sizes)) == (4, 1, 1)
    assert statuses(inbox) == {"bad": ("dead", 1)} | dict.fromkeys("bcd", ("done", 1))
    assert inbox.rows("SELECT error FROM hookonce.failures") == [("took longer than 0.5 s",)]


@pytest.mark.parametrize("count", [3, 1])
def test_batch_that_is_under_way_when_the_process_stops_is_given_back_whole(inbox, pool_of, let_go, count):
    def collects(_events, _tx):
        let_go.wait(60)

    inbox.on(collects, batch=BatchSize(50), timeout=timedelta(minutes=2))
    inbox.deliver(*"abc"[:count])

    with pool_of(2, timeouts=Timeouts(stop=timedelta(seconds=0.3))) as pool:
        pool.run_due()
        until(lambda: inbox.rows(STARTED))
        stopping.set()
        assert pool.finish() == 0

        assert set(statuses(inbox).values()) == {("waiting", 0)}
        assert inbox.rows("SELECT token, due_at <= now() FROM hookonce.run_states") == [(None, True)] * count
        assert inbox.rows("SELECT DISTINCT waits FROM hookonce.queue WHERE waits LIKE 'batch:%'") == []


@pytest.mark.parametrize(("count", "sizes"), [(4, [4, 2, 2]), (1, [1, 1])])
def test_batch_that_the_ledger_has_left_comes_back_when_the_ledger_does(
    inbox, pool_of, monkeypatch, count, sizes
):
    def collects(events, _tx):
        found.append(len(events))
        if len(found) == 1:
            raise ValueError

    def idle_ledger(self):
        if threading.current_thread().name == "batches" and found and not away:
            away.append(True)
            raise psycopg.OperationalError("away")
        return right.fget(self)

    found, away, right = [], [], AttemptConnection.idle_ledger
    monkeypatch.setattr(AttemptConnection, "idle_ledger", property(idle_ledger))
    monkeypatch.setattr(failing, "_fail_run", lambda host, *_: host.connection.idle_ledger)
    inbox.on(collects, batch=BatchSize(50))
    inbox.deliver(*"abcd"[:count])

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: is_over(inbox))

    assert (found, set(statuses(inbox).values())) == (sizes, {("done", 1)})


def test_lone_run_of_a_batch_handler_is_not_charged_when_its_process_dies(inbox, pool_of, let_go):
    def collects(_events, _tx):
        let_go.wait(60)

    inbox.on(collects, batch=BatchSize(50), timeout=timedelta(minutes=2))
    inbox.deliver("a")

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: inbox.rows(STARTED))
        lapse(inbox.connection)
        takeover.take_over(inbox.connection)
        assert inbox.rows("SELECT waits, attempts FROM hookonce.queue") == [("suspect", 0)]
        let_go.set()


@pytest.fixture
def slow_callback(monkeypatch, let_go):
    """A callback of failures that nothing ends; what it was told of."""
    told = []

    def slow(failure):
        told.append((failure.event.event_id, failure.attempt))
        let_go.wait(60)

    monkeypatch.setattr(failure_callbacks, "callbacks", [slow])
    return told


@pytest.mark.usefixtures("stuck")
def test_callback_of_a_lost_slot_holds_up_no_claim(inbox, pool_of, slow_callback):
    inbox.on(effect, pattern="quick")
    inbox.deliver("s", type="stuck")

    with pool_of(8, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(lambda: slow_callback, [("s", 1)])
        pool.run_due(inbox.deliver("q", type="quick"))
        until(inbox.effects, ["q"])

    assert slow_callback == [("s", 1)]


@pytest.mark.usefixtures("stuck")
def test_callback_is_told_of_what_the_end_of_the_process_has_ended(inbox, pool_of, monkeypatch):
    told = []
    monkeypatch.setattr(failure_callbacks, "callbacks", [lambda failure: told.append(failure.event.event_id)])
    inbox.deliver("s", type="stuck")

    with pool_of(2, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(stopping.is_set)
        pool.finish()

        assert told == ["s"]


@pytest.mark.usefixtures("stuck")
def test_lost_run_whose_end_fails_is_ended_later(inbox, pool_of, monkeypatch):
    right, tries = Executor.end_for_lost, []

    def end_for_lost(self, *given):
        tries.append(1)
        if len(tries) == 1:
            raise psycopg.OperationalError
        right(self, *given)

    monkeypatch.setattr(Executor, "end_for_lost", end_for_lost)
    inbox.deliver("s", type="stuck")

    with pool_of(8, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(lambda: statuses(inbox), {"s": ("waiting", 1)})

    assert len(tries) == 2


@pytest.mark.usefixtures("stuck")
def test_end_of_a_lost_run_counts_for_its_breaker(inbox, pool_of, let_go):
    def deaf(_event, _tx):
        let_go.wait(60)

    inbox.on(deaf, pattern="deaf", timeout=SHORT, breaker=5)
    inbox.deliver("d", type="deaf")

    with pool_of(8, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(lambda: breakers.breakers(inbox.connection))

    assert [(each.handler, each.failures) for each in breakers.breakers(inbox.connection)] == [("deaf", 1)]


def test_slot_that_ends_while_what_is_under_way_is_given_back_keeps_no_other_from_it(
    inbox, pool_of, let_go, caplog
):
    class EndsWhenSeen:
        number, is_lost = 0, False

        def __init__(self, claimed):
            self._left = [claimed]

        @property
        def claimed(self):
            return self._left.pop() if self._left else None

    def stays(_event, _tx):
        let_go.wait(60)

    inbox.on(stays, timeout=timedelta(seconds=60))
    inbox.deliver("a")
    inbox.drains.append(another := SingleSlot(inbox.settings, inbox.registry))

    with pool_of(2) as pool:
        pool.run_due()
        slot = until(lambda: next((each for each in pool._slots if each.under_way), None))  # noqa: SLF001
        until(lambda: inbox.rows(STARTED))
        try:
            LostSlots([EndsWhenSeen(slot.claimed)], None, lambda: None).give_back(another, another.executor)
        finally:
            let_go.set()

        assert "given back, not counted: event" in caplog.text


@pytest.mark.usefixtures("stuck")
def test_lost_slot_is_named_by_what_it_is_at(inbox, pool_of, caplog):
    caplog.set_level(logging.ERROR)
    [event] = inbox.deliver("s", type="stuck")

    with pool_of(8, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(lambda: statuses(inbox), {"s": ("waiting", 1)})

    [line] = [record for record in caplog.records if "is lost" in record.message]
    assert "stuck" in line.message
    assert (line.event, line.handler) == (event, "stuck")


def test_slot_that_has_gone_on_is_not_ended_for_what_it_was_at(inbox, pool_of, let_go):
    """Its next run is its own, whatever the watchdog has seen before."""

    def late(_event, _tx):
        let_go.wait(60)

    inbox.on(late, timeout=timedelta(minutes=2))
    inbox.deliver("a")
    inbox.drains.append(another := SingleSlot(inbox.settings, inbox.registry))

    with pool_of(8, timeouts=IMPATIENT) as pool:
        pool.run_due()
        slot = until(lambda: next((each for each in pool._slots if each.under_way), None))  # noqa: SLF001
        another_attempt = Attempt(slot.claimed, slot.under_way.handler)
        pool._lost._on_lost = lambda: None  # noqa: SLF001  or the pool ends it before this test goes on
        pool._lost.lose(slot)  # noqa: SLF001
        slot.under_way = another_attempt
        pool._lost.end_lost(another, another.executor)  # noqa: SLF001
        assert statuses(inbox) == {"a": ("running", 1)}
        let_go.set()
        until(lambda: statuses(inbox), {"a": ("done", 1)})


def test_leased_run_that_waited_too_long_is_let_go_of(inbox, pool_of, monkeypatch, let_go):
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(seconds=0.5))

    def busy(_event, _tx):
        let_go.wait(60)

    inbox.on(busy, timeout=timedelta(minutes=2))
    inbox.registry.note("busy", timedelta(0))  # known as quick: leased ahead
    inbox.deliver("a", "b", "c", "d")
    leased = "SELECT count(token), count(*) FROM hookonce.run_states"

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: inbox.rows(leased), [(2, 4)], falling=True)
        let_go.set()


def hurry_when_it_is_said(caplog):
    try:
        until(lambda: "waiting up to" in caplog.text)
    finally:
        hurrying.set()


def test_stop_says_what_is_waited_for_and_hurries_when_told_again(inbox, pool_of, let_go, caplog):
    def first(_event, _tx):
        let_go.wait(60)

    def second(_events, _tx):
        let_go.wait(60)

    inbox.on(first, pattern="first", timeout=HOUR)
    inbox.on(second, pattern="second", batch=BatchSize(10), timeout=HOUR)
    inbox.deliver("a", "b", type="first")
    inbox.deliver("c", "d", type="second")

    with pool_of(4, timeouts=Timeouts(stop=HOUR)) as pool:
        pool.run_due()
        until(lambda: inbox.rows(STARTED)[3:])
        stopping.set()
        told = threading.Thread(target=hurry_when_it_is_said, args=[caplog])
        told.start()
        assert pool.finish() == 0
        told.join()

        assert set(statuses(inbox).values()) == {("waiting", 0)}

    line, *_ = [each for each in caplog.messages if each.startswith("waiting up to")]
    assert "waiting up to 3600 s for 3 to end before it stops: first (2), second (1)" in line


def test_nothing_is_said_where_nothing_is_waited_for(inbox, pool_of, caplog):
    inbox.on(effect)
    inbox.deliver("a")

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: statuses(inbox), {"a": ("done", 1)})

    assert not caplog.messages
