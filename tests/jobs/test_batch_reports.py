"""What is told of batches: figures, counts, log lines, and how their errors read."""

from datetime import timedelta

import pytest

from hookonce.jobs.handlers import GiveUp
from hookonce.jobs.slots.slot_limit import Timeouts
from hookonce.receiver.ledger.stats import counters
from tests.jobs.slots.conftest import let_go, pool_of
from tests.jobs.test_batches import Batches, claimed, names, on_batches, rob, work_to_the_end
from tests.support.claiming import claim_batch, lapse
from tests.support.waiting import until

__all__ = ["let_go", "pool_of"]

HOUR = timedelta(hours=1)


def counted(inbox, kind):
    return {
        (tally.subject, tally.detail): count
        for tally, count in counters.totals(inbox.connection).items()
        if tally.kind == kind
    }


def lines(caplog, message):
    return [vars(record) for record in caplog.records if record.getMessage().startswith(message)]


def test_refused_end_of_a_batch_is_counted_and_told(inbox, caplog):
    def robbed(events, _tx):
        rob(inbox.connection, events[1].id)

    on_batches(inbox, robbed)
    inbox.deliver(*names(3))

    inbox.work()

    assert counted(inbox, "refused") == {("stripe", ""): 1}
    (line,) = lines(caplog, "lease lost")
    assert (line["event"], line["handler"], line["attempt"], line["events"]) == (1, "robbed", 1, 3)
    assert len(line["token"]) == 12


def test_batch_that_fails_too_late_is_counted_too(inbox):
    def robbed(events, _tx):
        inbox.connection.execute("DELETE FROM hookonce.claims")
        rob(inbox.connection, events[1].id)
        raise ValueError

    on_batches(inbox, robbed)
    inbox.deliver(*names(3))

    inbox.work()

    assert counted(inbox, "refused") == {("stripe", ""): 1}


def test_lost_batch_is_counted_as_one_lease_that_ran_out(inbox):
    on_batches(inbox, Batches().handler)
    inbox.deliver(*names(6))
    claimed(inbox)
    lapse(inbox.connection)

    inbox.work()

    assert counted(inbox, "recovered") == {("stripe", "again"): 1}


def test_part_that_waits_is_no_lease_that_ran_out(inbox):
    on_batches(inbox, Batches("evt_000").handler, backoff=(HOUR, HOUR))
    inbox.deliver(*names(6))

    work_to_the_end(inbox)

    assert counted(inbox, "recovered") == {}


def test_error_of_our_own_names_no_line(inbox):
    def odd(_events, _tx):
        return object()

    on_batches(inbox, odd, attempts=1)
    inbox.deliver(*names(2))

    work_to_the_end(inbox)

    ((error,),) = inbox.rows("SELECT DISTINCT error FROM hookonce.failures")
    assert error.startswith("TypeError: a handler returns None or JSON")
    assert ".py" not in error


def test_batch_that_takes_too_long_says_so_where_many_run(inbox, pool_of):
    errors = []

    def spins(events, tx):
        errors.extend(inbox_errors(tx))
        while len(events) > 1:
            tx.exec_driver_sql("SELECT pg_sleep(0.01)")

    def inbox_errors(tx):
        found = tx.exec_driver_sql("SELECT error FROM hookonce.batch_counts WHERE error IS NOT NULL")
        return [error for (error,) in found]

    on_batches(inbox, spins, timeout=timedelta(seconds=0.3))
    inbox.deliver(*names(2))

    with pool_of(2, timeouts=Timeouts(again=timedelta(seconds=0.2))) as pool:
        pool.run_due()
        until(lambda: [run[2] for run in inbox.runs()], ["done", "done"])

    assert {error.partition(" (")[0] for error in errors} == {"TimeUp: took longer than 0.3 s"}


def test_batch_of_one_is_a_batch_in_the_figures(inbox):
    on_batches(inbox, Batches().handler, most=4)
    inbox.deliver(*names(5))

    inbox.work()

    (found,) = counters.batch_figures(inbox.connection)
    assert (found.batches, found.events, found.halvings) == (2, 5, 0)


def test_batch_of_one_that_fails_is_none(inbox):
    on_batches(inbox, Batches("evt_000").handler, backoff=(HOUR, HOUR))
    inbox.deliver("evt_000")

    inbox.work()

    assert counters.batch_figures(inbox.connection) == []


def test_events_given_up_have_lines_of_their_own_and_the_others_one(inbox, caplog):
    caplog.set_level("INFO", "hookonce")

    def handler(events, _tx):
        if bad := [event for event in events if event.event_id == "evt_002"]:
            raise GiveUp("no customer", event=bad)

    on_batches(inbox, handler)
    inbox.deliver(*names(5))

    inbox.work()

    assert [(line["event"], line["status"]) for line in lines(caplog, "run")] == [(3, "dead")]
    told = [(line["source"], line["events"], line["status"]) for line in lines(caplog, "batch")]
    assert told == [("stripe", 4, "waiting"), ("stripe", 4, "done")]


@pytest.mark.parametrize(("returned", "warnings"), [([1, 2], 1), ([1, 2, 3], 0), ({"a": 1}, 0), (None, 0)])
def test_list_of_another_length_is_warned_of_once(inbox, caplog, returned, warnings):
    def handler(_events, _tx):
        return returned

    on_batches(inbox, handler, most=3)
    inbox.deliver(*names(6))

    inbox.work()

    assert {run[2] for run in inbox.runs()} == {"done"}
    assert len(lines(caplog, "a list of 2 was returned for 3 events")) == warnings


def test_lost_batch_of_two_sources_is_counted_for_each(inbox):
    on_batches(inbox, Batches().handler)
    inbox.deliver(*names(3))
    inbox.connection.execute("UPDATE hookonce.queue SET source = 'stripe-eu' WHERE event = 1")
    assert len(claim_batch(inbox.connection, inbox.registry).batch) == 3
    lapse(inbox.connection)

    inbox.work()

    assert counted(inbox, "recovered") == {("stripe", "again"): 1, ("stripe-eu", "again"): 1}
