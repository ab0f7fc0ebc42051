"""What waits for one handler costs the others nothing: put off, a burst for a slow one, more than a rate allows."""

import threading
import time
from datetime import timedelta

import pytest
from sqlalchemy import text

from hookonce.jobs import claimer
from hookonce.jobs.plan import EVERYTHING, Plan
from hookonce.jobs.slots.batches import Batches
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs import claims, due_cursor
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.runs.run_limits import BatchSize, Rate, RunLimit
from tests.support import claiming
from tests.support.inbox import OPEN, effect
from tests.support.waiting import until

SLOTS = 4
MANY = 400
PUT_OFF = """
WITH later AS (
    INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed)
    SELECT 'stripe', 'stripe', 'later_' || n, 'slow', sha256(n::text::bytea), true FROM generate_series(1, 5000) AS n
    RETURNING id, received_at, source, type)
INSERT INTO hookonce.queue (event, received_at, source, type, due_at)
SELECT id, received_at, source, type, now() + interval '1 h' FROM later
"""


def claimed(inbox, cursor):
    return claims.claim(inbox.connection, Plan(inbox.registry, EVERYTHING), cursor=cursor)


def names(count):
    return [f"slow_{n:03}" for n in range(count)]


def long_ago(inbox):
    """Have all that is due have been due for a minute."""
    inbox.connection.execute(
        "UPDATE hookonce.queue SET due_at = now() - interval '1 min' WHERE due_at <= now()"
    )


@pytest.mark.parametrize("is_told", [True, False])
def test_burst_for_a_slow_handler_lets_another_by_at_once(inbox, pool_of, is_told):
    def slow(_event, _tx):
        time.sleep(0.2)
        may_end.acquire()
        ended.append(1)

    may_end, ended = threading.Semaphore(2 * SLOTS), []
    inbox.on(slow, pattern="slow")
    inbox.on(effect, pattern="quick")
    inbox.deliver(*names(MANY), type="slow")

    with pool_of(SLOTS) as pool:
        pool.run_due()
        until(lambda: len(ended), 2 * SLOTS)
        event = inbox.deliver("quick", type="quick")
        pool.run_due(event if is_told else ())
        may_end.release((1 if is_told else 2) * SLOTS)
        try:
            until(inbox.effects, ["quick"])  # no more of the others may end before
        finally:
            may_end.release(MANY)


def test_what_waits_for_a_rate_is_passed_by_the_second_claim(inbox):
    def rated(_event, _tx):
        pass

    inbox.on(rated, pattern="rated", limit=RunLimit(rate=Rate(10, timedelta(hours=1))))
    inbox.on(effect, pattern="quick")
    inbox.deliver(*names(MANY), type="rated")
    inbox.deliver("quick", type="quick")
    cursor, found = DueCursor(), []

    for _ in range(2):
        claim = claimed(inbox, cursor)
        found += [run.event.event_id for run in claim.runs]

    assert "quick" in found


def test_what_is_put_off_is_not_read_by_a_claim(inbox):
    inbox.deliver("quick")
    quiet = claiming.pages_read(inbox.connection)
    inbox.connection.execute(PUT_OFF)
    inbox.connection.execute("ANALYZE hookonce.queue")

    assert claiming.pages_read(inbox.connection) <= quiet + 3  # the index has become one or two levels deeper


def test_what_nobody_takes_is_passed_with_one_notification(inbox, pool_of):
    inbox.on(effect, pattern="quick")
    inbox.deliver(*names(MANY), type="unknown")
    long_ago(inbox)
    inbox.deliver("quick", type="quick")

    with pool_of(SLOTS) as pool:
        pool.run_due()
        until(lambda: not inbox.rows(OPEN))

    assert inbox.effects() == ["quick"]


def test_what_a_rate_lets_wait_is_put_off_with_one_notification(inbox, pool_of):
    def rated(_event, _tx):
        pass

    inbox.on(rated, pattern="rated", limit=RunLimit(rate=Rate(10, timedelta(hours=1))))
    inbox.deliver(*names(MANY), type="rated")

    with pool_of(SLOTS) as pool:
        pool.run_due()
        until(lambda: not inbox.rows("SELECT FROM hookonce.event_states WHERE due_at <= now()"))


def test_batch_of_what_was_due_long_ago_is_taken_while_no_slot_is_free(inbox, pool_of, monkeypatch):
    monkeypatch.setattr(due_cursor, "FULL_LOOK_INTERVAL", timedelta(milliseconds=200))
    may_end, taken = threading.Event(), []

    def stays(event, _tx):
        if event.event_id.startswith("stays"):
            may_end.wait(30)

    def takes(events, _tx):
        taken.extend(event.event_id for event in events)

    def deliver_long_ago(*ids):
        with inbox.connection.transaction():
            numbers = inbox.deliver(*ids, type="batch")
            inbox.connection.execute(
                "UPDATE hookonce.queue SET due_at = now() - interval '1 min' WHERE event = ANY(%s)", [numbers]
            )

    inbox.on(stays, pattern="stays", timeout=timedelta(minutes=1))
    inbox.on(takes, pattern="batch", batch=BatchSize(10, timedelta(0)))
    with pool_of(2) as pool:
        pool.run_due(inbox.deliver("quick_a", "quick_b", type="stays"))
        until(
            lambda: len(inbox.runs()) == 2 and pool.is_idle
        )  # it is known to be quick: it may take all slots
        inbox.deliver("stays_a", "stays_b", type="stays")
        pool.run_due()
        until(lambda: not pool._free)  # noqa: SLF001
        deliver_long_ago("a", "b")
        try:
            until(lambda: taken, ["a", "b"])
        finally:
            may_end.set()


@pytest.fixture
def paused_batches(inbox):
    """Two paused handlers of batches, for which many runs wait."""

    def first(_events, _tx):
        raise AssertionError("it is paused")

    def second(_events, _tx):
        raise AssertionError("it is paused")

    for handler in (first, second):
        inbox.on(handler, pattern="slow", batch=BatchSize(2, timedelta(0)))
        inbox.connection.execute(
            "INSERT INTO hookonce.pauses (kind, name) VALUES ('handler', %s)", [handler.__name__]
        )
    inbox.deliver(*names(MANY), type="slow")
    claims.park_head(inbox.connection, Plan(inbox.registry), None, MANY)
    inbox.connection.execute("UPDATE hookonce.queue SET waits = 'batch'")


def paused(inbox):
    return inbox.rows("SELECT count(*) FROM hookonce.queue WHERE waits = 'handler'")[0][0]


@pytest.mark.usefixtures("paused_batches")
def test_look_for_a_batch_claims_once_for_each_handler_that_is_paused(inbox):
    slot = SingleSlot(inbox.settings, inbox.registry)
    batches = Batches(slot)
    batches.left.update(batches.names)

    assert (batches.take(), batches.left) == (None, {"first", "second"})
    assert 0 < (of_both := paused(inbox)) <= 2 * 2

    assert batches.take(until=time.monotonic()) is None
    assert of_both < paused(inbox) <= of_both + 2
    slot.close()


@pytest.mark.usefixtures("paused_batches")
def test_budget_of_a_single_slot_holds_for_paused_batches_too(inbox, monkeypatch):
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(0))

    inbox.work()

    assert 0 < paused(inbox) < MANY


@pytest.mark.usefixtures("paused_batches")
def test_pool_parks_paused_batches_at_once_and_runs_others_between(inbox, pool_of):
    parked = []

    def quick(_event, tx):
        parked.append(tx.scalar(text("SELECT count(*) FROM hookonce.queue WHERE waits = 'handler'")))

    inbox.on(quick, pattern="quick")
    inbox.deliver("a", type="quick")

    with pool_of(SLOTS) as pool:
        pool.run_due()
        until(lambda: paused(inbox), 2 * MANY, seconds=30)

    assert parked[0] < MANY
