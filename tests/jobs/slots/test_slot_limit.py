"""Time limits of threads: each step is reached, and nobody beside pays for it."""

import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from sqlalchemy import text

from hookonce.jobs.attempts import attempt_connection
from hookonce.jobs.attempts.time_limit import TimeUp
from hookonce.jobs.slots import pool as pools
from hookonce.jobs.slots.slot_limit import SlotLimit, Step, Timeouts
from hookonce.jobs.stopping import stopping
from hookonce.receiver.ledger.database.round_trip import PreparingConnection
from tests.jobs.slots.conftest import IMPATIENT
from tests.support.inbox import effect
from tests.support.waiting import until

SHORT = timedelta(seconds=0.3)


def failures(inbox):
    return inbox.rows("SELECT handler, attempt, error FROM hookonce.failures ORDER BY id")


def test_handler_that_takes_too_long_is_a_failed_attempt(inbox, pool_of):
    def spins(_event, tx):
        tx.execute(text("INSERT INTO effects VALUES ('spins')"))
        while True:
            time.sleep(0.01)

    inbox.on(spins, timeout=SHORT, attempts=1)
    inbox.deliver("a")

    with pool_of(2) as pool:
        pool.run_due()
        until(inbox.runs, [("a", "spins", "dead", 1)])

    assert failures(inbox) == [("spins", 1, "took longer than 0.3 s")]
    assert inbox.effects() == []


def test_statement_is_cancelled_at_the_limit(inbox, pool_of):
    def asks(_event, tx):
        tx.execute(text("SELECT pg_sleep(60)"))

    inbox.on(asks, timeout=SHORT, attempts=1)
    inbox.deliver("a")

    with pool_of(2) as pool:
        pool.run_due()
        until(inbox.runs, [("a", "asks", "dead", 1)])

    assert failures(inbox) == [("asks", 1, "took longer than 0.3 s")]


def test_limit_of_one_run_is_not_that_of_its_neighbours(inbox, pool_of):
    def spins(_event, _tx):
        while True:
            time.sleep(0.01)

    def works(event, tx):
        until(lambda: failures(inbox))
        time.sleep(0.1)
        effect(event, tx)

    inbox.on(spins, pattern="spins", timeout=SHORT, attempts=1)
    inbox.on(works, pattern="works")
    inbox.deliver("s", type="spins")
    inbox.deliver("w1", "w2", type="works")

    with pool_of(4) as pool:
        pool.run_due()
        until(lambda: [row[2] for row in inbox.runs()], ["dead", "done", "done"])

    assert inbox.runs() == [
        ("s", "spins", "dead", 1),
        ("w1", "works", "done", 1),
        ("w2", "works", "done", 1),
    ]


def test_slot_goes_on_after_a_time_limit(inbox, pool_of):
    def spins(_event, _tx):
        while True:
            time.sleep(0.01)

    inbox.on(spins, pattern="spins", timeout=SHORT, attempts=1)
    inbox.on(effect, pattern="quick")
    inbox.deliver("a", "b", "c", type="spins")

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: [row[2] for row in inbox.runs()], ["dead"] * 3)
        pool.run_due(inbox.deliver("q", type="quick"))
        until(inbox.effects)

    assert inbox.effects() == ["q"]


def test_slot_that_nothing_ends_is_lost_and_its_run_ended_for_it(inbox, pool_of, let_go):
    def stuck(_event, _tx):
        let_go.wait(60)  # a lock is waited for in C

    inbox.on(stuck, pattern="stuck", timeout=SHORT, attempts=1)
    inbox.on(effect, pattern="quick")
    inbox.deliver("a", type="stuck")

    with pool_of(8, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(inbox.runs, [("a", "stuck", "dead", 1)])
        slots = inbox.rows("SELECT 1")
        pool.run_due(inbox.deliver("q", type="quick"))
        until(inbox.effects)
        lost = [slot for slot in pool._slots if slot.is_lost]  # noqa: SLF001
        let_go.set()
        until(lambda: not any(slot.is_lost for slot in pool._slots))  # noqa: SLF001

    assert slots
    assert len(lost) == 1
    assert failures(inbox) == [("stuck", 1, "took longer than 0.3 s")]
    assert inbox.runs()[0] == ("a", "stuck", "dead", 1)


def test_quarter_of_the_slots_lost_ends_the_process_and_charges_no_neighbour(inbox, pool_of, let_go):
    def stuck(_event, _tx):
        let_go.wait(60)

    def waits(_event, tx):
        tx.execute(text("INSERT INTO effects VALUES ('waits')"))
        let_go.wait(60)

    inbox.on(
        stuck, pattern="stuck", timeout=SHORT, attempts=2, backoff=(timedelta(hours=1), timedelta(hours=1))
    )
    inbox.on(waits, pattern="waits", timeout=timedelta(minutes=2))
    inbox.deliver("s", type="stuck")
    inbox.deliver("w", type="waits")

    with pool_of(4, timeouts=IMPATIENT) as pool:
        pool.run_due()
        until(stopping.is_set)
        status = pool.finish()
        runs = inbox.runs()

    assert status == pools.RESTART
    assert runs == [("s", "stuck", "waiting", 1), ("w", "waits", "waiting", 0)]
    assert inbox.effects() == []


def test_graceful_stop_waits_for_what_is_under_way_and_gives_back_the_rest(inbox, pool_of, let_go):
    def short(event, tx):
        stopping.wait(60)
        effect(event, tx)

    def long(_event, _tx):
        let_go.wait(60)

    inbox.on(short, pattern="short")
    inbox.on(long, pattern="long", timeout=timedelta(minutes=2))
    inbox.deliver("l", type="long")
    inbox.deliver("s", type="short")

    with pool_of(4, timeouts=Timeouts(stop=timedelta(seconds=3))) as pool:
        pool.run_due()
        until(lambda: [row[2] for row in inbox.runs()], ["running"] * 2)
        stopping.set()
        status = pool.finish()
        runs = inbox.runs()

    assert status == 0
    assert runs == [("l", "long", "waiting", 0), ("s", "short", "done", 1)]


def test_exception_that_comes_too_late_never_comes():
    limit, ended = SlotLimit(), []

    def work():
        with limit.limit(timedelta(0)):
            pass
        ended.append(sum(1 for _ in range(1000)))

    for _ in range(200):
        thread = threading.Thread(target=work)
        thread.start()
        limit.ring(time.monotonic())
        thread.join()

    assert ended == [1000] * 200


def test_handler_that_swallows_the_first_is_told_again():
    limit, told = SlotLimit(timeouts=Timeouts(again=timedelta(seconds=0.05))), []

    def work():
        with limit.limit(timedelta(seconds=0.01)):
            while len(told) < 3:
                try:
                    time.sleep(0.01)
                except TimeUp as error:
                    told.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: (limit.ring(time.monotonic()), not thread.is_alive())[1])

    assert len(told) == 3


def test_steps_follow_one_another():
    limit = SlotLimit()
    with limit.limit(timedelta(seconds=100)):
        now = time.monotonic()
        limit._has_rung = True  # noqa: SLF001  nothing is to be raised in this thread
        limit._warn = int  # noqa: SLF001  same

        assert limit.ring(now) is Step.NONE
        assert limit.ring(now + 101) is Step.CANCEL
        assert limit.ring(now + 101.5) is Step.NONE


@pytest.fixture
def late_cancellations(monkeypatch):
    """Cancellations that are under way for half a second."""
    right = PreparingConnection.cancel_safe

    def cancel_safe(self, **given):
        time.sleep(0.5)
        right(self, **given)

    monkeypatch.setattr(PreparingConnection, "cancel_safe", cancel_safe)


def asks(_event, tx):
    tx.execute(text("SELECT pg_sleep(1)"))


def all_ended(inbox):
    return lambda: [row[2] in {"done", "dead"} for row in inbox.runs()] == [True, True]


@pytest.mark.usefixtures("late_cancellations")
def test_cancellation_that_comes_late_does_not_hit_the_next_run_of_the_slot(inbox, pool_of):
    begun = threading.Event()

    def late(_event, _tx):
        with suppress(TimeUp):
            begun.set()
            while True:
                time.sleep(0.01)

    inbox.on(late, pattern="late", timeout=SHORT)
    inbox.on(asks, pattern="asks", attempts=1, timeout=timedelta(seconds=20))
    for handler in (late, asks):
        inbox.registry.note(handler.__name__, timedelta(0))  # quick: the next follows at once
    inbox.deliver("l", type="late")

    with pool_of(1) as pool:
        pool.run_due()
        assert begun.wait(20)
        pool.run_due(inbox.deliver("a", type="asks"))
        until(all_ended(inbox))

    assert "asks" not in [handler for handler, *_ in failures(inbox)]


@pytest.mark.usefixtures("late_cancellations")
def test_cancellation_that_comes_late_does_not_hit_who_is_lent_the_connection(inbox, pool_of):
    has_let_go = threading.Event()

    def late(event):
        with suppress(TimeUp), event.tx() as tx:
            tx.execute(text("SELECT 1"))
            while True:
                time.sleep(0.01)
        has_let_go.set()
        time.sleep(0.3)

    inbox.on(late, pattern="late", timeout=SHORT, tx="none")
    inbox.on(asks, pattern="asks", attempts=1, timeout=timedelta(seconds=20))
    inbox.deliver("l", type="late")

    with pool_of(3) as pool:
        pool.run_due()
        assert has_let_go.wait(20)
        pool.run_due(inbox.deliver("a", type="asks"))
        until(all_ended(inbox))

    assert "asks" not in [handler for handler, *_ in failures(inbox)]


@pytest.mark.parametrize("tx", [None, "none"])
def test_cancellation_that_never_ends_keeps_no_slot(inbox, pool_of, monkeypatch, tx):
    hangs = threading.Event()  # as where the network has gone, with libpq before 17
    monkeypatch.setattr(PreparingConnection, "cancel_safe", lambda *_, **__: hangs.wait(60))
    monkeypatch.setattr(attempt_connection, "_MARGIN", 0.1)

    begun = threading.Event()

    def waits():
        with suppress(TimeUp):
            begun.set()
            while True:
                time.sleep(0.01)

    def late(_event, _tx):
        waits()

    def long(event):
        with event.tx() as own:
            own.execute(text("SELECT 1"))
            waits()

    inbox.on(long if tx else late, pattern="late", timeout=SHORT, attempts=1, tx=tx)
    inbox.on(effect, pattern="next", attempts=1)
    inbox.deliver("l", type="late")

    with pool_of(1, timeouts=Timeouts(cancellation=timedelta(seconds=0.1))) as pool:
        pool.run_due()
        assert begun.wait(20)
        pool.run_due(inbox.deliver("n", type="next"))
        until(all_ended(inbox))
        hangs.set()

    assert inbox.effects() == ["n"]
