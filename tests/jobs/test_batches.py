"""Batches, with real claims: what a handler gets, who is charged, and what a worker that died leaves behind."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from hookonce.jobs.handlers import GiveUp, RetryLater
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import takeover
from hookonce.receiver.ledger.runs.run_limits import BatchSize, Rate, RunLimit
from hookonce.receiver.ledger.stats import counters
from tests.support.claiming import claim, claim_batch, lapse
from tests.support.inbox import effect

INSERT = text("INSERT INTO effects (event) SELECT unnest(CAST(:events AS text[]))")


def names(count):
    return [f"evt_{n:03}" for n in range(count)]


def write(events, tx):
    tx.execute(INSERT, {"events": [event.event_id for event in events]})


@pytest.fixture
def other(database_url):
    with connections.connect(database_url) as connection:
        yield connection


class Batches:
    """A handler of batches that keeps what it was given, and fails for some."""

    def __init__(self, *poisonous, error=ValueError):
        self.sizes = []
        self.poisonous = set(poisonous)
        self.error = error

    def handler(self, events, tx):
        self.sizes.append(len(events))
        write(events, tx)
        if self.poisonous & {event.event_id for event in events}:
            raise self.error


def on_batches(inbox, handler, most=500, wait=timedelta(0), **options):
    inbox.on(handler, batch=BatchSize(most, wait), **options)


def work_to_the_end(inbox):
    """Work however many budgets that takes: on a busy machine one is not enough for many halves."""
    while inbox.work():
        pass


def rob(connection, event):
    """Have another worker have an event of a batch that is under way."""
    connection.execute(
        "WITH taken AS ("
        "UPDATE hookonce.queue SET token = gen_random_uuid() WHERE event = %s RETURNING token, event, n) "
        "INSERT INTO hookonce.claims (token, lease_until, events, places) "
        "SELECT token, now() + interval '30 s', ARRAY[event], ARRAY[n] FROM taken",
        [event],
    )


def test_handler_gets_what_is_due_in_batches_of_the_most(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, most=40)
    inbox.deliver(*names(100))

    inbox.work()

    assert taken.sizes == [40, 40, 20]
    assert inbox.effects() == names(100)
    assert {run[1:] for run in inbox.runs()} == {("handler", "done", 1)}


def test_each_event_keeps_the_result_that_is_its_own(inbox):
    def numbered(events, tx):  # noqa: ARG001
        return [{"number": n} for n, _ in enumerate(events)]

    on_batches(inbox, numbered)
    inbox.deliver(*names(3))

    inbox.work()

    results = inbox.rows("SELECT result->>'number' FROM hookonce.run_states ORDER BY event")
    assert results == [("0",), ("1",), ("2",)]


def test_poisonous_event_is_found_alone_and_nobody_else_is_charged(inbox):
    taken = Batches("evt_037")
    on_batches(inbox, taken.handler, most=64)
    inbox.deliver(*names(64))

    work_to_the_end(inbox)

    dead = [run for run in inbox.runs() if run[2] == "dead"]
    assert dead == [("evt_037", "handler", "dead", 3)]
    assert {run[2:] for run in inbox.runs() if run[0] != "evt_037"} == {("done", 1)}
    assert inbox.effects() == [name for name in names(64) if name != "evt_037"]
    assert inbox.rows("SELECT event, attempt FROM hookonce.failures ORDER BY attempt") == [
        (38, 1),
        (38, 2),
        (38, 3),
    ]
    assert taken.sizes[:7] == [64, 32, 32, 16, 8, 4, 4]


def test_batch_that_fails_is_halved_until_all_stand_alone(inbox):
    taken = Batches(*names(8))
    on_batches(inbox, taken.handler, attempts=1)
    inbox.deliver(*names(8))

    work_to_the_end(inbox)

    assert sorted(taken.sizes) == [1] * 8 + [2] * 4 + [4] * 2 + [8]
    assert {run[1:] for run in inbox.runs()} == {("handler", "dead", 1)}
    assert inbox.effects() == []


def test_event_that_failed_alone_is_tried_alone_again(inbox):
    taken = Batches("evt_001")
    on_batches(inbox, taken.handler, backoff=(timedelta(hours=1), timedelta(hours=1)))
    inbox.deliver(*names(4))
    inbox.work()
    taken.sizes.clear()

    inbox.deliver("new_1", "new_2")
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    inbox.work()

    assert sorted(taken.sizes) == [1, 2]
    assert ("evt_001", "handler", "waiting", 2) in inbox.runs()


def claimed(inbox, connection=None):
    """Claim as a worker does, and take over what was lost before."""
    connection = connection or inbox.connection
    takeover.take_over(connection)
    claim(connection, inbox.registry)
    return claim_batch(connection, inbox.registry)


def test_lost_batch_comes_back_in_halves_and_charges_nobody(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler)
    inbox.deliver(*names(9))
    lost = claimed(inbox).batch

    lapse(inbox.connection)
    inbox.work()

    assert len(lost) == 9
    assert taken.sizes == [4, 5]
    assert {run[1:] for run in inbox.runs()} == {("handler", "done", 1)}
    assert inbox.rows("SELECT halvings FROM hookonce.batch_counts") == [(1,)]


def test_worker_that_dies_each_time_leaves_the_poisonous_one_alone_at_last(inbox):
    on_batches(inbox, Batches().handler, most=512)
    inbox.deliver(*names(512))
    sizes = []

    while (found := claimed(inbox)).alone is None:
        sizes.append(len(found.batch))
        lapse(inbox.connection)

    assert sizes == [512, 256, 128, 64, 32, 16, 8, 4, 2]
    assert inbox.rows("SELECT count(*) FROM hookonce.run_states WHERE attempts > 0") == [(1,)]


def test_halves_that_wait_are_not_mixed_with_what_came_later(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler)
    inbox.deliver(*names(8))
    claimed(inbox)
    lapse(inbox.connection)
    inbox.deliver("new_1", "new_2", "new_3")

    inbox.work()

    assert taken.sizes == [4, 4, 3]


def test_batch_that_lost_one_of_its_runs_ends_none(inbox):
    def robbed(events, tx):
        write(events, tx)
        rob(inbox.connection, events[3].id)

    on_batches(inbox, robbed)
    inbox.deliver(*names(6))

    inbox.work()

    assert inbox.effects() == []
    assert {run[2:] for run in inbox.runs()} == {("running", 1)}


def test_other_handlers_of_the_same_events_run_as_ever(inbox):
    def single(event, tx):
        tx.execute(text("INSERT INTO effects (event) VALUES (:event)"), {"event": f"single {event.event_id}"})

    taken = Batches()
    on_batches(inbox, taken.handler)
    inbox.on(single)
    inbox.deliver(*names(70))

    inbox.work()

    assert {run[1:] for run in inbox.runs()} == {("handler", "done", 1), ("single", "done", 1)}
    assert len(inbox.effects()) == 140
    assert inbox.rows("SELECT DISTINCT status, due_at FROM hookonce.event_states") == [("done", None)]


def test_two_handlers_of_batches_take_the_same_events(inbox):
    def second(events, tx):
        write(events, tx)

    taken = Batches()
    on_batches(inbox, taken.handler)
    on_batches(inbox, second)
    inbox.deliver(*names(20))

    inbox.work()

    assert {run[1:] for run in inbox.runs()} == {("handler", "done", 1), ("second", "done", 1)}
    assert len(inbox.effects()) == 40


def test_part_is_claimed_whole_whose_events_wait_for_other_handlers_too(inbox):
    on_batches(inbox, Batches().handler)
    inbox.on(effect)
    inbox.deliver(*names(8))
    claimed(inbox)
    inbox.connection.execute(
        "UPDATE hookonce.queue SET due_at = now() - interval '1 min' WHERE handler = 'effect'"
    )
    lapse(inbox.connection)
    takeover.take_over(inbox.connection)

    assert len(claim_batch(inbox.connection, inbox.registry).batch) == 4


def test_batch_and_a_paused_handler_take_the_same_events(inbox):
    on_batches(inbox, Batches().handler)
    inbox.on(effect)
    inbox.connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('handler', 'effect')")
    inbox.deliver(*names(3))

    inbox.work()

    assert inbox.rows("SELECT handler, waits FROM hookonce.queue") == [("effect", "handler")] * 3
    assert {run[1:3] for run in inbox.runs()} == {("handler", "done"), ("effect", "waiting")}


def test_few_events_wait_for_others_and_the_others_go_on(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, wait=timedelta(seconds=30), pattern="track")
    inbox.on(effect, pattern="other")
    inbox.deliver(*names(60), type="track")
    inbox.deliver("quick", type="other")

    inbox.work()

    assert taken.sizes == []
    assert inbox.effects() == ["quick"]
    assert 20 < inbox.drains[0].longest_wait(60) <= 30


def test_those_that_waited_long_enough_are_taken(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, wait=timedelta(seconds=30))
    inbox.deliver(*names(5))
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = due_at - interval '31 s' WHERE event = 1")

    inbox.work()

    assert taken.sizes == [5]


def test_full_batch_does_not_wait(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, most=5, wait=timedelta(seconds=30))
    inbox.deliver(*names(7))

    inbox.work()

    assert taken.sizes == [5]


def test_event_that_is_named_is_given_up_alone(inbox):
    sizes = []

    def handler(events, tx):
        sizes.append(len(events))
        write(events, tx)
        bad = [event for event in events if event.event_id in {"evt_002", "evt_005"}]
        if bad:
            raise GiveUp("no customer", event=bad)

    on_batches(inbox, handler)
    inbox.deliver(*names(8))

    inbox.work()

    assert sizes == [8, 6]
    assert [run[0] for run in inbox.runs() if run[2:] == ("dead", 1)] == ["evt_002", "evt_005"]
    assert inbox.rows("SELECT DISTINCT error FROM hookonce.failures") == [("GiveUp: no customer",)]
    assert len(inbox.effects()) == 6


def test_batch_that_is_to_be_tried_later_waits_whole(inbox):
    taken = Batches(*names(4), error=RetryLater(60))
    on_batches(inbox, taken.handler)
    inbox.deliver(*names(4))

    inbox.work()

    assert taken.sizes == [4]
    assert {run[2:] for run in inbox.runs()} == {("waiting", 0)}
    assert inbox.rows(
        "SELECT count(*) FROM hookonce.event_states WHERE due_at > now() + interval '50 s'"
    ) == [(4,)]


def test_batch_that_takes_too_long_is_halved(inbox):
    sizes = []

    def handler(events, tx):
        sizes.append(len(events))
        tx.execute(text("SELECT pg_sleep(:seconds)"), {"seconds": 30 if len(events) > 4 else 0})

    on_batches(inbox, handler, timeout=timedelta(seconds=1))
    inbox.deliver(*names(8))

    inbox.work()

    assert sizes == [8, 4, 4]
    assert {run[2:] for run in inbox.runs()} == {("done", 1)}


def test_handler_that_commits_its_batch_itself_gets_no_second_try(inbox):
    def handler(events, tx):
        write(events, tx)
        tx.connection.driver_connection.execute("COMMIT")

    on_batches(inbox, handler)
    inbox.deliver(*names(3))

    inbox.work()

    assert inbox.effects() == []
    assert {run[2:] for run in inbox.runs()} == {("dead", 1)}


def test_dropped_body_is_dead_and_the_others_go_through(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler)
    inbox.deliver(*names(5))
    inbox.connection.execute("DELETE FROM hookonce.bodies WHERE event IN (2, 4)")

    inbox.work()

    assert taken.sizes == [3]
    assert [run[0] for run in inbox.runs() if run[2] == "dead"] == ["evt_001", "evt_003"]


def test_two_workers_never_take_the_same_event(inbox, other):
    on_batches(inbox, Batches().handler, most=10)
    inbox.deliver(*names(30))

    batches_ = [claimed(inbox).batch, claimed(inbox, other).batch, claimed(inbox).batch]

    events = [run.event.id for batch in batches_ for run in batch]
    assert len(events) == len(set(events)) == 30


def test_paused_handler_takes_no_batch(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler)
    inbox.connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('handler', 'handler')")
    inbox.deliver(*names(5))

    inbox.work()

    assert taken.sizes == []
    assert inbox.rows("SELECT DISTINCT waits FROM hookonce.run_states") == [("handler",)]


@pytest.mark.parametrize("kind", ["session", "async"])
def test_session_and_coroutine_take_batches_too(inbox, kind):
    def with_session(events, session):
        session.execute(INSERT, {"events": [event.event_id for event in events]})
        session.commit()

    async def awaited(events, tx):
        await tx.execute(INSERT, {"events": [event.event_id for event in events]})

    on_batches(inbox, with_session if kind == "session" else awaited)
    inbox.deliver(*names(5))

    inbox.work()

    assert inbox.effects() == names(5)


def test_figures_say_how_large_batches_were(inbox):
    on_batches(inbox, Batches("evt_000").handler, most=4, backoff=(timedelta(hours=1), timedelta(hours=1)))
    inbox.deliver(*names(8))

    inbox.work()

    (found,) = counters.batch_figures(inbox.connection)
    assert (found.batches, found.events, found.halvings) == (3, 7, 2)


def test_batch_has_no_more_events_than_may_be_under_way_at_once(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, limit=RunLimit(concurrency=3))
    inbox.deliver(*names(8))

    work_to_the_end(inbox)

    assert taken.sizes == [3, 3, 2]
    assert {run[1:] for run in inbox.runs()} == {("handler", "done", 1)}


def test_rate_counts_the_events_of_a_batch_and_gives_the_others_their_times(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, limit=RunLimit(Rate.parse("100/h")))
    inbox.deliver(*names(25))
    work_to_the_end(inbox)
    waiting = inbox.rows("SELECT count(*), count(DISTINCT slot_at), min(due_at) > now() FROM hookonce.queue")

    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now(), slot_at = now()")
    work_to_the_end(inbox)

    assert waiting == [(15, 15, True)]
    assert taken.sizes == [10, 15]


def test_events_that_have_their_time_wait_for_no_others(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, wait=timedelta(seconds=30), limit=RunLimit(Rate.parse("100/h")))
    inbox.deliver(*names(2))
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '31 s'")
    inbox.deliver(*(f"new_{n}" for n in range(10)))
    work_to_the_end(inbox)
    assert taken.sizes == [10]

    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now(), slot_at = now()")
    work_to_the_end(inbox)

    assert taken.sizes == [10, 2]


def test_account_has_a_share_of_its_own_in_a_batch(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, limit=RunLimit(concurrency=2, per="account"))
    inbox.deliver(*names(3))
    inbox.deliver("other", account="acct_2")

    work_to_the_end(inbox)

    assert taken.sizes == [3, 1]
