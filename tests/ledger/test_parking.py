from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.runs import claims, parking, run_end
from hookonce.receiver.ledger.runs.run_end import AttemptResult
from hookonce.receiver.ledger.stats import backlog, totals
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

BUDGET = timedelta(seconds=2)
DONE = AttemptResult("done")
LATER = AttemptResult("waiting", error="no", delay=timedelta(hours=1))
SOURCE, HANDLER = ("source", "stripe"), ("handler", "a")


@dataclass(frozen=True)
class Plan:
    name: str
    attempts: int = 3
    timeout: timedelta = timedelta(seconds=30)
    limit: object = None
    is_long: bool = False
    batch: object = None


class Planner:
    def __init__(self, *names):
        self.plans = [Plan(name) for name in names]

    def matching(self, *_):
        return self.plans

    def is_slow(self, *_):
        return False

    def named(self, name):
        return next((plan for plan in self.plans if plan.name == name), None)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def put(connection, *event_ids, **changes):
    answers = store(connection, [new_event(event_id, **changes) for event_id in event_ids])
    return [answer.id for answer in answers.values()]


def claim(connection, *handlers):
    return claims.claim(connection, Planner(*handlers), budget=BUDGET).runs


def end(connection, run, result, following=None):
    with connection.transaction():
        run_end.end(connection, run, result, following)


def pause(connection, kind, name):
    pauses.pause(connection, kind, name, "test")


def resume(connection, kind, name):
    pauses.resume(connection, kind, name, "test")


def end_pause_and_die(connection, kind, name):
    connection.execute("DELETE FROM hookonce.pauses WHERE kind = %s AND name = %s", [kind, name])


def parked(connection):
    """Give events with their runs: what is parked and why."""
    return connection.execute(
        "SELECT e.event_id, e.parked, r.handler, r.parked FROM hookonce.event_states e "
        "LEFT JOIN hookonce.run_states r ON r.event = e.id "
        "ORDER BY e.id, r.handler"
    ).fetchall()


def claimed(connection, *handlers):
    return [(run.event.event_id, run.handler) for run in claim(connection, *handlers)]


def test_claim_parks_what_only_paused_handlers_take(connection):
    put(connection, "evt_1")
    pause(connection, *HANDLER)

    assert claim(connection, "a") == []
    assert parked(connection) == [("evt_1", "handler", "a", "handler")]
    assert connection.execute("SELECT status, due_at <= now() FROM hookonce.event_states").fetchone() == (
        "waiting",
        True,
    )


def test_claim_parks_many_in_one_go(connection):
    put(connection, *map(str, range(200)))
    pause(connection, *HANDLER)

    claim(connection, "a")

    assert claims.claim(connection, Planner("a"), budget=BUDGET)[1:4] == (0, False, 0)
    assert connection.execute("SELECT count(*) FROM hookonce.run_states WHERE parked = 'handler'").fetchone() == (
        200,
    )


def test_claim_parks_events_of_a_paused_source(connection):
    put(connection, *map(str, range(200)))
    put(connection, "evt_1", source="github")
    pause(connection, *SOURCE)

    claim = claims.claim(connection, Planner("a"), budget=BUDGET)

    assert [run.event.event_id for run in claim.runs] == ["evt_1"]
    assert claim.parked == 200
    assert not claims.is_anything_due(connection)


def test_event_is_due_for_the_handler_that_is_not_paused(connection):
    put(connection, "evt_1")
    pause(connection, *HANDLER)

    (run,) = claim(connection, "a", "b")
    assert parked(connection) == [("evt_1", None, "a", "handler"), ("evt_1", None, "b", None)]
    end(connection, run, DONE)

    assert run.handler == "b"
    assert parked(connection) == [("evt_1", "handler", "a", "handler"), ("evt_1", "handler", "b", None)]


def test_event_with_a_parked_run_is_due_when_its_other_run_is(connection):
    put(connection, "evt_1")
    pause(connection, *HANDLER)
    end(connection, *claim(connection, "a", "b"), LATER)

    assert parked(connection)[0][:2] == ("evt_1", None)
    assert connection.execute(
        "SELECT due_at > now() + interval '50 minutes' FROM hookonce.event_states"
    ).fetchone() == (True,)
    connection.execute(
        "UPDATE hookonce.runs SET due_at = now() WHERE handler = 'b'; UPDATE hookonce.events SET due_at = now()"
    )
    assert claimed(connection, "a", "b") == [("evt_1", "b")]


def test_claim_parks_a_paused_handler_that_its_worker_does_not_know(connection):
    put(connection, "evt_1")
    end(connection, *claim(connection, "a"), AttemptResult("waiting", delay=timedelta(0)))
    pause(connection, *HANDLER)

    claim(connection, "b")

    assert parked(connection) == [("evt_1", "handler", "a", "handler")]


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
@pytest.mark.parametrize("ending", [resume, end_pause_and_die])
def test_what_was_parked_is_due_when_the_pause_is_over(connection, pausing, ending):
    put(connection, *map(str, range(40)))
    pause(connection, *pausing)
    claim(connection, "a")

    ending(connection, *pausing)
    parking.unpark_left(connection)

    assert len(claim(connection, "a")) == 40
    assert {(row[1], row[3]) for row in parked(connection)} == {(None, None)}


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
@pytest.mark.parametrize("is_parked", [False, True])
def test_resume_makes_retries_due_at_once(connection, pausing, is_parked):
    put(connection, "evt_1")
    end(connection, *claim(connection, "a"), LATER)
    pause(connection, *pausing)
    if is_parked:
        connection.execute("UPDATE hookonce.events SET parked = %s", pausing[:1])
        connection.execute("UPDATE hookonce.runs SET parked = 'handler' WHERE %s", [pausing == HANDLER])

    resume(connection, *pausing)

    assert claimed(connection, "a") == [("evt_1", "a")]


def test_resume_of_a_source_hastens_no_other_source(connection):
    put(connection, "evt_1", source="github")
    end(connection, *claim(connection, "a"), LATER)
    pause(connection, *SOURCE)

    resume(connection, *SOURCE)

    assert claim(connection, "a") == []


def test_resume_leaves_parked_what_another_pause_holds(connection):
    put(connection, "evt_1")
    pause(connection, *HANDLER)
    claim(connection, "a")
    pause(connection, *SOURCE)

    resume(connection, *HANDLER)
    assert claim(connection, "a") == []
    pause(connection, *HANDLER)
    resume(connection, *SOURCE)

    assert claim(connection, "a") == []
    resume(connection, *HANDLER)
    assert claimed(connection, "a") == [("evt_1", "a")]


def test_resume_with_little_patience_leaves_the_rest_to_a_sweep(connection, monkeypatch):
    put(connection, *map(str, range(30)))
    pause(connection, *SOURCE)
    claim(connection, "a")
    monkeypatch.setattr(parking, "UNPARK_BATCH", 10)

    pauses.resume(connection, *SOURCE, "test", timedelta(microseconds=1))
    assert connection.execute("SELECT count(*) FROM hookonce.event_states WHERE parked IS NULL").fetchone() == (10,)
    parking.unpark_left(connection)

    assert len(claim(connection, "a")) == 30


def test_resume_waits_for_the_claim_that_parks(connection, database_url):
    put(connection, "evt_1")
    pause(connection, *HANDLER)
    with connections.connect(database_url, lock=timedelta(milliseconds=50)) as other:
        with connection.transaction():
            parking.lock_pauses(connection, "handler", {"a"})
            with pytest.raises(psycopg.errors.LockNotAvailable):
                resume(other, *HANDLER)

        assert pauses.resume(other, *HANDLER, "test")


def test_claim_parks_nothing_whose_pause_ended_while_it_looked(connection, monkeypatch):
    put(connection, "evt_1")
    pause(connection, *HANDLER)
    monkeypatch.setattr(parking, "lock_pauses", lambda *_: set())

    assert claimed(connection, "a") == [("evt_1", "a")]


def test_parked_event_that_is_replayed_is_parked_again(connection):
    (number,) = put(connection, "evt_1")
    end(connection, *claim(connection, "a"), DONE)
    pause(connection, *HANDLER)
    for _ in range(2):
        assert next(replays.replay(connection, [number], "test")).fate in replays.GOOD
        assert claim(connection, "a") == []
        assert parked(connection) == [("evt_1", "handler", "a", "handler")]

    resume(connection, *HANDLER)

    assert claimed(connection, "a") == [("evt_1", "a")]


def test_held_event_that_is_released_is_parked(connection):
    put(connection, "evt_1", id_is_signed=False)
    (number,) = put(connection, "evt_2", id_is_signed=False, hold_repeats=True)
    pause(connection, *SOURCE)
    claim(connection, "a")

    list(replays.replay(connection, [number], "test"))
    claim(connection, "a")

    assert [row[1] for row in parked(connection)] == ["source", "source"]


def test_slow_worker_ends_an_event_that_was_parked_meanwhile(connection):
    put(connection, "evt_1")
    (run,) = claim(connection, "a")
    connection.execute(
        "UPDATE hookonce.runs SET due_at = now(), lease_until = now(); UPDATE hookonce.events SET due_at = now()"
    )
    pause(connection, *SOURCE)
    claim(connection, "a")
    assert parked(connection) == [("evt_1", "source", "a", None)]

    end(connection, run, DONE)

    assert connection.execute("SELECT status, due_at, parked FROM hookonce.event_states").fetchone() == (
        "done",
        None,
        None,
    )


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
def test_parked_is_open_for_whoever_counts_or_looks(connection, pausing):
    (number,) = put(connection, "evt_1")
    pause(connection, *pausing)
    claim(connection, "a")
    (status,) = connection.execute("SELECT status FROM hookonce.event_states").fetchone()

    assert totals.events_by_status(connection) == [("stripe", status, 1)]
    found = events.events(connection, Filter(status=status))
    assert [event.id for event in found] == [number]
    assert (backlog.oldest_due(connection), backlog.due(connection)) == (0, 0)


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
def test_parked_event_keeps_the_day_of_its_body(connection, pausing):
    today = connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date").fetchone()[0]
    put(connection, "evt_1")
    pause(connection, *pausing)
    claim(connection, "a")

    assert partitions.drop_day(connection, today) is partitions.DropResult.NEEDED


def test_what_is_leased_is_run_although_what_is_paused_could_not_be_parked(connection, database_url, caplog):
    put(connection, *(f"evt_{n}" for n in range(4)), source="stripe-eu")
    (event,) = put(connection, "run")
    pauses.pause(connection, "source", "stripe-eu", "somebody")
    connection.execute("SET lock_timeout = '100 ms'")
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM hookonce.pauses FOR UPDATE")

        found = claims.claim(connection, Planner("a"), budget=BUDGET)

    assert ([run.event.id for run in found.runs], found.parked) == ([event], 0)
    assert "what is paused was not parked: LockNotAvailable" in caplog.text
