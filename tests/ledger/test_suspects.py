"""What was under way when a process died that ran many at once, and what becomes of it."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import claims, due_events, run_end, transitions
from hookonce.receiver.ledger.runs.run_end import AttemptResult
from hookonce.receiver.ledger.runs.run_limits import Rate, RunLimit
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

BUDGET = timedelta(seconds=5)


@dataclass
class Plan:
    name: str = "credit"
    attempts: int = 2
    timeout: timedelta = timedelta(seconds=30)
    limit: object = None
    is_long: bool = False
    batch: object = None


class Planner:
    def __init__(self, *plans):
        self.plans = plans or (Plan(),)

    def matching(self, *_):
        return self.plans

    def named(self, name):
        return next((plan for plan in self.plans if plan.name == name), None)

    def is_slow(self, *_):
        return False


class Room:
    def __init__(self, free=4):
        self.free = free

    def fits(self, *_):
        return True


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def deliver(connection, count):
    ids = [f"evt_{n}" for n in range(count)]
    answers = store(connection, [new_event(event_id) for event_id in ids])
    return [answers["stripe", event_id].id for event_id in ids]


def claim_many(connection, *plans, free=4, **options):
    return claims.claim(connection, Planner(*plans), budget=BUDGET, room=Room(free), **options)


def claim_suspect(connection, *plans):
    return claims.claim(connection, Planner(*plans), budget=BUDGET, suspects_of=["credit"])


def die(connection):
    """Have every lease run out."""
    connection.execute(
        "UPDATE hookonce.runs SET lease_until = now(), due_at = now() WHERE status = 'running'"
    )
    connection.execute("UPDATE hookonce.events SET due_at = now() WHERE due_at IS NOT NULL")


def runs(connection):
    return connection.execute(
        "SELECT status, attempts, parked, token IS NULL FROM hookonce.run_states ORDER BY event"
    ).fetchall()


def failures(connection):
    return connection.execute("SELECT event, attempt FROM hookonce.failures ORDER BY event").fetchall()


def end(connection, run, **result):
    run_end.end(connection, run, AttemptResult(RunStatus.DONE, **result))


@pytest.fixture
def suspects(connection):
    """Three runs that were under way together when their process died, found by another that runs many."""
    events = deliver(connection, 3)
    assert claim_many(connection).started == 3
    die(connection)
    assert claim_many(connection).runs == []
    return events


def test_claim_starts_as_many_as_there_is_room_for(connection):
    deliver(connection, 5)

    claim = claim_many(connection, free=2)

    assert (len(claim.runs), claim.started) == (5, 2)
    assert [row[:2] for row in runs(connection)] == [("running", 1)] * 2 + [("waiting", 0)] * 3


def test_claim_without_a_free_slot_starts_nothing(connection):
    deliver(connection, 2)

    claim = claim_many(connection, free=0)

    assert (len(claim.runs), claim.started) == (2, 0)


@pytest.mark.usefixtures("suspects")
def test_runs_that_were_lost_together_are_suspects_and_not_charged(connection):
    assert runs(connection) == [("waiting", 0, "suspect", True)] * 3
    assert failures(connection) == []
    assert due_events.is_suspect_due(connection, ["credit"])


@pytest.mark.usefixtures("suspects")
def test_run_that_was_lost_alone_is_charged(connection):
    (run,) = claim_suspect(connection).runs
    die(connection)

    claim_many(connection)

    assert runs(connection)[0] == ("waiting", 1, "suspect", True)
    assert failures(connection) == [(run.event.id, 1)]


def test_run_that_was_lost_alone_again_and_again_is_dead(connection):
    deliver(connection, 1)
    claim_many(connection)
    die(connection)
    for _ in range(2):
        claim_many(connection)
        claim_suspect(connection)
        die(connection)
    claim_many(connection)

    assert [row[:2] for row in runs(connection)] == [("dead", 2)]


def test_suspects_are_claimed_one_at_a_time_and_nothing_else_claims_them(connection, suspects):
    assert claims.claim(connection, Planner(), budget=BUDGET).runs == []

    claim = claim_suspect(connection)

    assert [run.event.id for run in claim.runs] == suspects[:1]
    assert not claim.runs[0].beside


def test_suspect_that_is_done_is_no_suspect(connection, suspects):
    for _ in suspects:
        end(connection, claim_suspect(connection).runs[0])

    assert [row[:3] for row in runs(connection)] == [("done", 1, None)] * 3
    assert not due_events.is_suspect_due(connection, ["credit"])
    assert claim_suspect(connection).events == 0


def test_worker_that_runs_one_at_a_time_runs_what_was_lost_together_at_once_and_charges_nothing(connection):
    deliver(connection, 2)
    claim_many(connection)
    die(connection)

    claim = claims.claim(connection, Planner(), budget=BUDGET)

    assert [(run.attempt, run.beside) for run in claim.runs] == [(1, False)]
    assert failures(connection) == []


@pytest.mark.parametrize("options", [{"room": Room()}, {}], ids=["many at once", "one at a time"])
@pytest.mark.parametrize("is_paused", [True, False])
def test_run_lost_beside_others_is_a_suspect_whoever_finds_it(connection, options, is_paused):
    deliver(connection, 1)
    claim_many(connection)
    die(connection)
    known = "credit" if is_paused else "another"
    if is_paused:
        pauses.pause(connection, "handler", "credit", "somebody")

    assert claims.claim(connection, Planner(Plan(known)), budget=BUDGET, **options).runs == []

    assert runs(connection) == [("waiting", 0, "suspect", True)]


def test_killer_is_alone_and_charged_although_a_worker_without_its_handler_finds_it_each_time(connection):
    deliver(connection, 1)
    claim_many(connection)
    for _ in range(2):
        die(connection)
        claim_many(connection, Plan("another"))
        assert claim_many(connection).runs == []
        assert len(claim_suspect(connection).runs) == 1
    die(connection)
    claim_many(connection)

    assert [row[:2] for row in runs(connection)] == [("dead", 2)]


@pytest.mark.parametrize(
    "limit", [RunLimit(concurrency=1), RunLimit(rate=Rate.parse("1/h"))], ids=["place", "rate"]
)
def test_run_lost_beside_others_that_a_limit_holds_back_is_a_suspect(connection, limit):
    deliver(connection, 2)
    claim_many(connection)
    die(connection)
    plan = Plan(limit=limit)
    assert len(claims.claim(connection, Planner(plan), budget=BUDGET).runs) == 1  # has the place, or the time

    assert claims.claim(connection, Planner(plan), budget=BUDGET).runs == []

    assert [row[2] for row in runs(connection)] == [None, "suspect"]


def test_of_two_suspects_of_one_event_one_is_leased(connection):
    deliver(connection, 1)
    plans = Plan("a"), Plan("b")
    claim_many(connection, *plans)
    die(connection)
    claim_many(connection, *plans)

    claim = claims.claim(connection, Planner(*plans), budget=BUDGET, suspects_of=["a", "b"])

    assert [run.handler for run in claim.runs] == ["a"]
    assert [row[:3] for row in runs(connection)] == [("running", 1, None), ("waiting", 0, "suspect")]


def test_of_two_runs_of_one_event_lost_beside_others_the_one_that_does_not_start_is_a_suspect(connection):
    deliver(connection, 1)
    plans = Plan("a"), Plan("b")
    claim_many(connection, *plans)
    die(connection)

    claim = claims.claim(connection, Planner(*plans), budget=BUDGET)
    transitions.release(connection, claim.runs[1:])  # as one that is too slow for what it has leased does

    assert [run.handler for run in claim.runs] == ["a"]
    assert [row[:3] for row in runs(connection)] == [("running", 1, None), ("waiting", 0, "suspect")]
    assert claim_many(connection, *plans).runs == []


def test_other_run_of_a_suspects_event_goes_on(connection):
    deliver(connection, 1)
    plans = Plan("a"), Plan("credit")
    first = claim_many(connection, *plans, free=2).runs
    assert [run.handler for run in first] == ["a", "credit"]
    end(connection, first[0])
    die(connection)

    claim_many(connection, *plans)

    assert [row[:3] for row in runs(connection)] == [("done", 1, None), ("waiting", 0, "suspect")]


@pytest.mark.parametrize(
    "limit", [RunLimit(concurrency=1), RunLimit(rate=Rate.parse("1/h"))], ids=["place", "rate"]
)
@pytest.mark.usefixtures("suspects")
def test_suspect_that_a_limit_holds_back_stays_a_suspect(connection, limit):
    plan = Plan(limit=limit)
    claim_suspect(connection, plan)  # has the place, or the time

    held = claim_suspect(connection, plan)

    assert held.runs == []
    assert [row[2] for row in runs(connection)] == [None, "suspect", "suspect"]
    assert connection.execute(
        "SELECT count(*) FROM hookonce.run_states WHERE parked = 'suspect' AND due_at > now()"
    ).fetchone() == (1,)


@pytest.mark.usefixtures("suspects")
def test_suspect_of_a_paused_handler_waits_and_stays_a_suspect(connection):
    pauses.pause(connection, "handler", "credit", "somebody")
    assert claim_suspect(connection).events == 0

    pauses.resume(connection, "handler", "credit", "somebody")

    assert {row[2] for row in runs(connection)} == {"suspect"}
    assert len(claim_suspect(connection).runs) == 1


@pytest.mark.usefixtures("suspects")
def test_suspect_whose_handler_is_resumed_is_one_although_another_run_of_its_event_waits(connection):
    connection.execute(
        "INSERT INTO hookonce.runs (event, handler, status, due_at) "
        "SELECT event, 'other', 'waiting', now() + interval '1 h' FROM hookonce.run_states"
    )
    connection.execute("UPDATE hookonce.runs SET due_at = now() + interval '5 s' WHERE parked = 'suspect'")
    connection.execute("UPDATE hookonce.events SET parked = NULL, due_at = now() + interval '1 h'")
    pauses.pause(connection, "handler", "credit", "somebody")

    pauses.resume(connection, "handler", "credit", "somebody")

    assert connection.execute("SELECT count(*) FROM hookonce.run_states WHERE parked = 'suspect'").fetchone() == (
        3,
    )


@pytest.mark.usefixtures("suspects")
def test_suspect_of_a_paused_source_waits(connection):
    pauses.pause(connection, "source", "stripe", "somebody")

    assert claim_suspect(connection).events == 0
    assert not due_events.is_suspect_due(connection, ["credit"])


@pytest.mark.usefixtures("suspects")
def test_suspect_of_an_unknown_handler_is_left_to_those_that_know_it(connection):
    assert claims.claim(connection, Planner(), budget=BUDGET, suspects_of=["other"]).events == 0


def test_following_run_of_another_claim_is_started_under_its_own_token(connection):
    deliver(connection, 2)
    (first,) = claim_many(connection, limit=1).runs
    (second,) = claim_many(connection, limit=1, free=0).runs
    assert first.token != second.token

    assert run_end.end(connection, first, AttemptResult(RunStatus.DONE), second)

    assert connection.execute(
        "SELECT beside FROM hookonce.run_states WHERE token = %s", [second.token]
    ).fetchone() == (True,)
