"""What was under way when a process died, and what becomes of it."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import claims, due_rows, takeover
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.runs.run_limits import Rate, RunLimit
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.store import store
from tests.support import claiming
from tests.support.new_event import new_event

DONE = AttemptResult("done")
FAILED = AttemptResult("waiting", error="no")


@dataclass
class Plan:
    name: str = "credit"
    limit: object = None
    batch: object = None


class Planner:
    def __init__(self, *plans):
        self.plans = plans or (Plan(),)

    def __iter__(self):
        return iter(self.plans)

    def matching(self, *_):
        return self.plans

    def named(self, name):
        return next((plan for plan in self.plans if plan.name == name), None)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def deliver(connection, count):
    ids = [f"evt_{n}" for n in range(count)]
    answers = store(connection, [new_event(event_id) for event_id in ids])
    return [answers["stripe", event_id].id for event_id in ids]


def claim(connection, *plans, slots=4):
    return claiming.claim(connection, Planner(*plans), slots=slots).runs


def claim_suspect(connection, *plans):
    return claiming.claim_suspect(connection, Planner(*plans))


def die(connection):
    """Have every lease be over, and somebody find that."""
    claiming.lapse(connection)
    takeover.take_over(connection, WorkerEnd(handlers=claiming.Attempts(2)))


def runs(connection):
    return connection.execute(
        "SELECT status, attempts, waits, token IS NULL FROM hookonce.run_states ORDER BY event, handler"
    ).fetchall()


def failures(connection):
    return connection.execute("SELECT event, attempt FROM hookonce.failures ORDER BY event").fetchall()


@pytest.fixture
def suspects(connection):
    """Three runs that were under way together when their process died."""
    events = deliver(connection, 3)
    claim(connection)
    die(connection)
    return events


@pytest.mark.parametrize(("slots", "count"), [(1, 1), (2, 2), (8, 5)])
def test_as_many_runs_as_a_claim_has_slots_are_suspects_the_first_ones(connection, slots, count):
    deliver(connection, 5)
    claim(connection, slots=slots)

    die(connection)

    assert runs(connection) == [("waiting", 0, "suspect", True)] * count + [("waiting", 0, None, True)] * (
        5 - count
    )
    assert failures(connection) == []


def test_run_behind_one_that_has_ended_is_a_suspect(connection):
    deliver(connection, 3)
    first, *_ = claim(connection, slots=1)
    claiming.end(connection, first, DONE)

    die(connection)

    assert [row[2] for row in runs(connection)] == [None, "suspect", None]


@pytest.mark.usefixtures("suspects")
def test_suspect_is_due_for_those_who_run_it_alone(connection):
    assert due_rows.is_suspect_due(connection, timedelta(0))
    assert claim(connection) == []


@pytest.mark.usefixtures("suspects")
def test_run_that_was_lost_alone_is_charged(connection):
    run = claim_suspect(connection)

    die(connection)

    assert runs(connection)[0] == ("waiting", 1, "suspect", True)
    assert failures(connection) == [(run.event.id, 1)]


def test_run_that_was_lost_alone_again_and_again_is_dead(connection):
    (event,) = deliver(connection, 1)
    claim(connection)
    die(connection)
    for _ in range(2):
        claim_suspect(connection)
        die(connection)

    assert [row[:2] for row in runs(connection)] == [("dead", 2)]
    assert failures(connection) == [(event, 1), (event, 2)]


def test_suspects_are_claimed_one_at_a_time_the_oldest_first(connection, suspects):
    claimed = [claim_suspect(connection) for _ in range(4)]

    assert [run and run.event.id for run in claimed] == [*suspects, None]
    assert all(run.is_suspect for run in claimed[:3])


def test_suspect_that_is_done_is_no_suspect(connection, suspects):
    for _ in suspects:
        claiming.end(connection, claim_suspect(connection), DONE)

    assert [row[:3] for row in runs(connection)] == [("done", 1, None)] * 3
    assert not due_rows.is_suspect_due(connection, timedelta(0))
    assert claim_suspect(connection) is None


@pytest.mark.usefixtures("suspects")
def test_suspect_whose_attempt_fails_is_no_suspect_any_more(connection):
    claiming.end(connection, claim_suspect(connection), FAILED)

    assert runs(connection)[0] == ("waiting", 1, None, True)


@pytest.mark.usefixtures("suspects")
def test_suspect_that_is_given_back_is_not_charged(connection):
    run = claim_suspect(connection)

    assert takeover.settle(connection, run) == "waiting"

    assert runs(connection)[0] == ("waiting", 0, "suspect", True)
    assert failures(connection) == []


def test_other_run_of_a_suspects_event_goes_on(connection):
    deliver(connection, 1)
    plans = Plan("a"), Plan("credit")
    first, second = claim(connection, *plans, slots=2)
    claiming.end(connection, first, DONE)
    die(connection)

    assert second.handler == "credit"
    assert [row[:3] for row in runs(connection)] == [("done", 1, None), ("waiting", 0, "suspect")]


def test_of_two_suspects_of_one_event_one_is_leased(connection):
    deliver(connection, 1)
    plans = Plan("a"), Plan("b")
    claim(connection, *plans)
    die(connection)

    assert claim_suspect(connection, *plans).handler == "a"
    assert [row[:3] for row in runs(connection)] == [("running", 1, "suspect"), ("waiting", 0, "suspect")]


@pytest.mark.parametrize(
    "limit", [RunLimit(concurrency=1), RunLimit(rate=Rate.parse("1/h"))], ids=["place", "rate"]
)
@pytest.mark.usefixtures("suspects")
def test_suspect_that_a_limit_holds_back_stays_a_suspect(connection, limit):
    plan = Plan(limit=limit)
    assert claim_suspect(connection, plan)  # has the place, or the time

    assert claim_suspect(connection, plan) is None

    assert [row[2] for row in runs(connection)] == ["suspect"] * 3
    put_off = "SELECT count(*) FROM hookonce.queue WHERE waits = 'suspect' AND due_at > now()"
    assert connection.execute(put_off).fetchone() == (1,)
    assert timedelta(minutes=1) > claims.SUSPECT_PAUSE


@pytest.mark.usefixtures("suspects")
def test_suspect_of_a_paused_handler_waits_and_stays_a_suspect(connection):
    pauses.pause(connection, "handler", "credit", "somebody")
    assert not due_rows.is_suspect_due(connection, timedelta(0))
    assert claim_suspect(connection) is None

    pauses.resume(connection, "handler", "credit", "somebody")

    assert {row[2] for row in runs(connection)} == {"suspect"}
    assert claim_suspect(connection)


@pytest.mark.usefixtures("suspects")
def test_suspect_of_a_paused_source_waits(connection):
    pauses.pause(connection, "source", "stripe", "somebody")

    assert claim_suspect(connection) is None
    assert not due_rows.is_suspect_due(connection, timedelta(0))


@pytest.mark.usefixtures("suspects")
def test_suspect_of_an_unknown_handler_is_left_to_those_that_know_it(connection):
    assert claim_suspect(connection, Plan("other")) is None
