"""A handler that fails by one error again and again is stopped, one event is tried, and a person may decide."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta

import pytest

from hookonce.jobs.handlers import GiveUp, HandlerError
from hookonce.jobs.registration import on
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.runs import breakers, parking, takeover
from hookonce.receiver.ledger.runs.run_limits import Rate, RunLimit
from tests.jobs.slots.conftest import let_go, pool_of
from tests.support import claiming
from tests.support.inbox import effect
from tests.support.waiting import until

__all__ = ["let_go", "pool_of"]

HOUR = timedelta(hours=1)


class Shop:
    """A handler whose service is away, or not; it counts how often it was called."""

    def __init__(self):
        self.error = ConnectionError("no route to shop")
        self.calls = 0

    def __call__(self, event, tx):
        self.calls += 1
        if self.error:
            raise self.error
        effect(event, tx)


@pytest.fixture
def shop(inbox):
    shop = Shop()

    def credit(event, tx):
        shop(event, tx)

    inbox.on(credit, breaker=5, attempts=10, backoff=(HOUR, HOUR))
    return shop


def may_try(inbox):
    inbox.connection.execute("UPDATE hookonce.breakers SET try_at = now()")


def deliver(inbox, count):
    inbox.deliver(*(f"evt_{n:02}" for n in range(count)))


def lose(inbox):
    """Have the worker die that is at anything, and take over what it had."""
    inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now()")
    takeover.take_over(inbox.connection)


def is_paused(inbox):
    return "credit" in pauses.by_handler(inbox.connection)


def test_failures_in_a_row_by_one_error_stop_the_handler(inbox, shop, caplog):
    deliver(inbox, 20)

    inbox.work()

    (breaker,) = breakers.breakers(inbox.connection)
    assert shop.calls == 5
    assert (
        caplog.text.count("stopped by its circuit breaker after 5 failures in a row: credit (ConnectionError")
        == 1
    )
    assert is_paused(inbox)
    assert (breaker.handler, breaker.is_open, breaker.error[:15]) == ("credit", True, "ConnectionError")


def test_it_is_said_once_whichever_process_saw_the_last_failure(inbox, shop, caplog):
    inbox.drains += [SingleSlot(inbox.settings, inbox.registry) for _ in range(2)]
    for n in range(7):
        inbox.deliver(f"evt_{n}")
        inbox.drains[n % 2].run_due()

    assert shop.calls == 5
    assert caplog.text.count("stopped by its circuit breaker") == 1


def test_events_of_a_stopped_handler_are_parked_and_use_no_attempts(inbox, shop):
    deliver(inbox, 20)
    inbox.work()
    calls = shop.calls

    inbox.work()

    assert shop.calls == calls
    assert {row[2] for row in inbox.runs()} == {"waiting"}
    assert sum(row[3] for row in inbox.runs()) == calls


PASSES = """
UPDATE hookonce.queue SET due_at = due_at - %(span)s, slot_at = slot_at - %(span)s;
UPDATE hookonce.limits SET head = head - %(span)s;
UPDATE hookonce.breakers SET opened_at = opened_at - %(span)s, try_at = try_at - %(span)s
"""


def test_tries_are_as_far_apart_as_the_rate_and_need_no_time_of_a_backlog(inbox):
    hour, hours = 0, []

    def credit(event, tx):
        hours.append(hour)
        if hour < 4:
            raise ConnectionError
        effect(event, tx)

    limit = RunLimit(rate=Rate(20, timedelta(days=1)))  # two at once, then one in 76 minutes
    inbox.on(credit, limit=limit, breaker=2, attempts=10, backoff=(HOUR, HOUR))
    deliver(inbox, 60)  # a backlog whose times are taken for three days
    while hour < 5:
        inbox.work()
        for statement in PASSES.split(";"):
            inbox.connection.execute(statement, {"span": HOUR / 2})
        hour += 0.5

    assert hours == [0, 0, 1.5, 3, 4.5]
    assert not is_paused(inbox)


class Feed:
    """A handler that is quick and always has more to do: each event of it delivers another."""

    def __init__(self, inbox, most):
        self.inbox, self.most, self.ran = inbox, most, 0

    def begin(self, count):
        self.inbox.deliver(*(f"first_{n}" for n in range(count)), type="quick")

    def __call__(self, event, tx):  # noqa: ARG002
        time.sleep(0.004)
        self.ran += 1
        if self.ran < self.most:
            self.inbox.deliver(f"quick_{self.ran}", type="quick")


@pytest.mark.parametrize("slots", [None, 2])
def test_event_that_is_tried_does_not_wait_until_nothing_else_is_due(inbox, pool_of, slots):
    feed, ran_before = Feed(inbox, 300), []

    def credit(event, tx):  # noqa: ARG001
        ran_before.append(feed.ran)
        raise ConnectionError

    def quick(event, tx):
        feed(event, tx)

    inbox.on(credit, pattern="charge", breaker=2, attempts=10, backoff=(HOUR, HOUR))
    inbox.on(quick, pattern="quick")
    for name in ("credit", "quick"):
        inbox.registry.note(name, timedelta(milliseconds=4))
    inbox.deliver(*(f"evt_{n}" for n in range(8)), type="charge")
    with pool_of(slots) if slots else nullcontext() as pool:
        work = pool.run_due if pool else inbox.work
        until(lambda: (work(), inbox.rows("SELECT FROM hookonce.run_states WHERE waits = 'handler'"))[1])
        calls = len(ran_before)
        feed.begin(40)
        may_try(inbox)
        work()
        until(lambda: (work(), feed.ran >= feed.most)[1])

    assert len(ran_before) == calls + 1
    assert ran_before[-1] < feed.most / 2


def test_try_that_succeeds_lets_all_go_on(inbox, shop):
    deliver(inbox, 20)
    inbox.work()
    shop.error = None
    may_try(inbox)

    inbox.work()
    parking.unpark_left(inbox.connection)
    inbox.work()

    assert len(inbox.effects()) == 15  # the others wait for their next attempt
    assert (is_paused(inbox), breakers.breakers(inbox.connection)) == (False, [])


def test_tries_use_no_attempt_up_and_their_event_is_done_in_the_end(inbox):
    shop = Shop()

    def credit(event, tx):
        shop(event, tx)

    inbox.on(credit, breaker=2, attempts=3)
    inbox.deliver("evt")
    inbox.work()
    for _ in range(5):
        may_try(inbox)
        inbox.work()
    assert shop.calls == 2 + 5
    assert inbox.runs() == [("evt", "credit", "waiting", 2)]
    assert inbox.rows("SELECT attempt FROM hookonce.failures ORDER BY id") == [(1,), (2,)] + [(3,)] * 5

    shop.error = None
    may_try(inbox)
    inbox.work()

    assert inbox.runs() == [("evt", "credit", "done", 3)]
    assert not is_paused(inbox)


def test_another_event_is_tried_each_time(inbox):
    called = []

    def credit(event, tx):  # noqa: ARG001
        called.append(event.event_id)
        if event.event_id == "evt_00":  # fails always, as the service did
            raise ConnectionError

    inbox.on(credit, breaker=1, attempts=10)
    inbox.deliver("evt_00")
    inbox.work()
    inbox.deliver(*(f"evt_{n:02}" for n in range(1, 5)))
    inbox.work()
    may_try(inbox)
    inbox.work()
    assert set(called) == {"evt_00"}

    may_try(inbox)
    inbox.work()

    assert called[-1] != "evt_00"
    assert breakers.breakers(inbox.connection) == []


def test_try_is_not_spent_on_an_event_of_a_paused_source(inbox, shop):
    deliver(inbox, 5)
    inbox.work()
    inbox.deliver(*(f"stripe_{n:02}" for n in range(20)))
    inbox.deliver("another", source="stripe-eu")
    inbox.work()
    pauses.pause(inbox.connection, "source", "stripe", "test")
    calls, shop.error = shop.calls, None

    may_try(inbox)
    inbox.work()

    assert (shop.calls, inbox.effects()[:1]) == (calls + 1, ["another"])
    assert breakers.breakers(inbox.connection) == []


def test_no_try_is_counted_where_all_are_of_a_paused_source(inbox, shop):
    deliver(inbox, 20)
    inbox.work()
    inbox.work()
    pauses.pause(inbox.connection, "source", "stripe", "test")
    calls = shop.calls

    may_try(inbox)
    inbox.work()

    assert shop.calls == calls
    assert inbox.rows("SELECT tries, trying, try_at > now() FROM hookonce.breakers") == [(0, None, True)]


def test_try_that_kills_its_worker_is_charged(inbox):
    def credit(event, tx):  # noqa: ARG001
        raise ConnectionError

    inbox.on(credit, breaker=1, attempts=3)
    register_handlers(inbox.connection, inbox.registry.rows())
    (event,) = inbox.deliver("evt")
    inbox.work()
    may_try(inbox)
    inbox.work()  # a try that only fails
    may_try(inbox)
    assert breakers.try_one(inbox.connection, inbox.registry.with_breakers) == [event]
    (run,) = claiming.claim(inbox.connection, inbox.registry).runs
    assert (run.is_trial, run.attempt) == (True, 2)
    lose(inbox)
    for attempt in (2, 3):  # now it is a suspect, whose starts are counted
        run = claiming.claim_suspect(inbox.connection, inbox.registry)
        assert (run.is_trial, run.attempt) == (True, attempt)
        lose(inbox)

    assert inbox.runs() == [("evt", "credit", "dead", 3)]
    assert inbox.rows("SELECT attempt FROM hookonce.failures ORDER BY id") == [(1,), (2,), (2,), (3,)]


def test_suspect_is_tried_if_there_is_nothing_else(inbox):
    def credit(event, tx):
        effect(event, tx)

    inbox.on(credit, breaker=1, attempts=3)
    (event,) = inbox.deliver("evt")
    claiming.claim(inbox.connection, inbox.registry)
    with inbox.connection.transaction():
        breakers.failed(inbox.connection, "credit", breakers.Failure("ConnectionError", limit=1))
    lose(inbox)
    assert claiming.claim_suspect(inbox.connection, inbox.registry) is None

    may_try(inbox)
    assert breakers.try_one(inbox.connection, inbox.registry.with_breakers) == [event]
    assert inbox.rows("SELECT waits FROM hookonce.queue") == [("suspect",)]
    inbox.work()

    assert (inbox.effects(), is_paused(inbox)) == (["evt"], False)


def test_next_try_is_later_each_time(inbox, shop):
    deliver(inbox, 20)
    inbox.work()
    waits = []
    for _ in range(8):
        may_try(inbox)
        inbox.work()
        waits += inbox.rows("SELECT extract(epoch FROM try_at - now())::int FROM hookonce.breakers")[0]

    assert waits[0] < waits[1] < waits[2]
    assert max(waits) <= breakers.LONGEST_WAIT.total_seconds()
    assert shop.calls == 5 + 8


def test_person_may_end_it(inbox, shop):
    deliver(inbox, 20)
    inbox.work()
    shop.error = None

    pauses.resume(inbox.connection, "handler", "credit", "test")
    inbox.work()

    assert len(inbox.effects()) == 20
    assert breakers.breakers(inbox.connection) == []


AWAY = ConnectionError("no route to shop")


@pytest.mark.parametrize(
    "errors",
    [[AWAY, AWAY, AWAY, None], [TimeoutError("away"), AWAY]],
    ids=["a success between", "different errors"],
)
def test_failures_that_are_no_row_by_one_error_stop_nothing(inbox, shop, errors):
    for n in range(12):
        shop.error = errors[n % len(errors)]
        inbox.deliver(f"evt_{n:02}")
        inbox.work()

    assert not is_paused(inbox)


def test_verdicts_on_events_are_no_failures_of_the_handler(inbox, shop):
    shop.error = GiveUp("not ours")
    deliver(inbox, 20)

    inbox.work()

    assert not is_paused(inbox)


def test_opening_and_closing_are_in_the_audit(inbox, shop):
    deliver(inbox, 20)
    inbox.work()
    shop.error = None
    may_try(inbox)
    inbox.work()

    said = inbox.rows("SELECT who, action, subject FROM hookonce.audit ORDER BY id")
    assert said == [(breakers.WHO, action, "handler credit") for action in ("pause", "resume")]


def test_handler_without_a_breaker_is_never_stopped(inbox):
    def credit(event, tx):  # noqa: ARG001
        raise ConnectionError

    inbox.on(credit, attempts=2)
    deliver(inbox, 20)

    inbox.work()

    assert not is_paused(inbox)
    assert {row[2] for row in inbox.runs()} == {"dead"}


def test_breaker_of_no_failures_is_refused():
    with pytest.raises(HandlerError, match="expected a number of failures from 1"):
        on("stripe", breaker=0)(effect)


def test_pause_of_a_person_is_ended_by_no_trial(inbox, shop):
    deliver(inbox, 20)
    inbox.work()
    assert pauses.pause(inbox.connection, "handler", "credit", "ann")
    shop.error = None

    may_try(inbox)
    inbox.work()

    assert is_paused(inbox)
    assert inbox.effects() == []


def test_breaker_opens_no_pause_that_a_person_began(inbox, shop):
    pauses.pause(inbox.connection, "handler", "credit", "ann")
    with inbox.connection.transaction():
        for _ in range(5):
            breakers.failed(inbox.connection, "credit", breakers.Failure("ConnectionError", limit=5))
        breakers.close(inbox.connection, "credit")

    assert is_paused(inbox)
    assert shop.calls == 0


def test_pause_of_a_person_outlasts_a_breaker_that_closes_at_that_moment(inbox, shop, database_url):  # noqa: ARG001
    def waiting():
        return inbox.rows(
            "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE NOT granted AND datname = current_database()"
        )

    def close():
        with connections.connect(database_url) as connection, connection.transaction():
            breakers.close(connection, "credit")

    def pause():
        with connections.connect(database_url) as connection:
            pauses.pause(connection, "handler", "credit", "ann")

    with inbox.connection.transaction():
        breakers.failed(inbox.connection, "credit", breakers.Failure("ConnectionError", limit=1))

    with ThreadPoolExecutor() as threads:
        with connections.connect(database_url) as claims, claims.transaction():
            parking.lock_pauses(claims, "handler", {"credit"})
            asked = []
            for number, each in enumerate((close, pause), 1):
                asked.append(threads.submit(each))
                until(waiting, [(number,)])
        for each in asked:
            each.result()

    assert [each.by for each in pauses.paused(inbox.connection)] == ["person"]
