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
from hookonce.receiver.ledger.runs import due_rows, parking
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.stats import backlog, totals
from hookonce.receiver.ledger.store import store
from tests.support import claiming
from tests.support.claiming import end
from tests.support.new_event import new_event
from tests.support.rewording import reword

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

    def named(self, name):
        return next((plan for plan in self.plans if plan.name == name), None)

    def __iter__(self):
        return iter(self.plans)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def put(connection, *event_ids, **changes):
    answers = store(connection, [new_event(event_id, **changes) for event_id in event_ids])
    return [answer.id for answer in answers.values()]


def claim(connection, *handlers):
    return list(claiming.claim(connection, Planner(*handlers)).runs)


def pause(connection, kind, name):
    pauses.pause(connection, kind, name, "test")


def resume(connection, kind, name):
    pauses.resume(connection, kind, name, "test")


def end_pause_and_die(connection, kind, name):
    connection.execute("DELETE FROM hookonce.pauses WHERE kind = %s AND name = %s", [kind, name])


def waiting(connection):
    """Give what is open: events, handlers, and what they wait for."""
    return connection.execute(
        "SELECT e.event_id, q.handler, q.waits FROM hookonce.queue q JOIN hookonce.events e ON e.id = q.event "
        "ORDER BY q.event, q.n"
    ).fetchall()


def make_due(connection):
    connection.execute("UPDATE hookonce.queue SET due_at = now()")


def claimed(connection, *handlers):
    return [(run.event.event_id, run.handler) for run in claim(connection, *handlers)]


def test_claim_parks_what_only_paused_handlers_take(connection):
    put(connection, "evt_1")
    pause(connection, *HANDLER)

    assert claim(connection, "a") == []
    assert waiting(connection) == [("evt_1", "a", "handler")]
    assert connection.execute("SELECT status, due_at <= now() FROM hookonce.event_states").fetchone() == (
        "waiting",
        True,
    )


def test_claim_parks_many_in_one_go(connection):
    put(connection, *map(str, range(200)))
    pause(connection, *HANDLER)

    claim(connection, "a")

    again = claiming.claim(connection, Planner("a"))
    assert (again.met, again.is_more, again.waiting) == (0, False, 0)
    assert [row[1:] for row in waiting(connection)] == [("a", "handler")] * 200


def test_claim_parks_events_of_a_paused_source(connection):
    put(connection, *map(str, range(200)))
    put(connection, "evt_1", source="github")
    pause(connection, *SOURCE)

    claim = claiming.claim(connection, Planner("a"))

    assert [run.event.event_id for run in claim.runs] == ["evt_1"]
    assert claim.waiting == 200
    assert not due_rows.is_anything_due(connection)


def test_event_is_due_for_the_handler_that_is_not_paused(connection):
    put(connection, "evt_1")
    pause(connection, *HANDLER)

    (run,) = claim(connection, "a", "b")
    assert waiting(connection) == [("evt_1", "a", "handler"), ("evt_1", "b", None)]
    end(connection, run, DONE)

    assert run.handler == "b"
    assert waiting(connection) == [("evt_1", "a", "handler")]


def test_event_with_a_parked_run_is_due_when_its_other_run_is(connection):
    put(connection, "evt_1")
    pause(connection, *HANDLER)
    end(connection, *claim(connection, "a", "b"), LATER)

    assert connection.execute(
        "SELECT waits, due_at > now() + interval '50 minutes' FROM hookonce.event_states"
    ).fetchone() == (None, True)
    make_due(connection)
    assert claimed(connection, "a", "b") == [("evt_1", "b")]


def test_claim_parks_a_paused_handler_that_its_worker_does_not_know(connection):
    put(connection, "evt_1")
    end(connection, *claim(connection, "a"), AttemptResult("waiting"))
    pause(connection, *HANDLER)

    claim(connection, "b")

    assert waiting(connection) == [("evt_1", "a", "handler")]


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
@pytest.mark.parametrize("ending", [resume, end_pause_and_die])
def test_what_was_parked_is_due_when_the_pause_is_over(connection, pausing, ending):
    put(connection, *map(str, range(40)))
    pause(connection, *pausing)
    claim(connection, "a")

    ending(connection, *pausing)
    parking.unpark_left(connection)

    assert len(claim(connection, "a")) == 40
    assert {waits for _, _, waits in waiting(connection)} == {None}


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
@pytest.mark.parametrize("is_parked", [False, True])
def test_resume_makes_retries_due_at_once(connection, pausing, is_parked):
    put(connection, "evt_1")
    end(connection, *claim(connection, "a"), LATER)
    pause(connection, *pausing)
    if is_parked:
        waits = "handler" if pausing == HANDLER else "source:stripe"
        connection.execute("UPDATE hookonce.queue SET waits = %s", [waits])

    resume(connection, *pausing)

    assert claimed(connection, "a") == [("evt_1", "a")]


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
def test_resume_goes_through_all_that_waits_for_its_time(connection, pausing, monkeypatch):
    put(connection, *map(str, range(20)))
    for run in claim(connection, "a"):
        end(connection, run, LATER)
    (other,) = put(connection, "other", source="github")
    end(connection, *claim(connection, "b"), LATER)
    connection.execute("UPDATE hookonce.queue SET due_at = now() + (1 + event % 5) * interval '1 h'")
    for kind, statement in parking._HASTEN.items():  # noqa: SLF001
        monkeypatch.setitem(parking._HASTEN, kind, statement.replace("FIRST 2000", "FIRST 3"))  # noqa: SLF001
    pause(connection, *pausing)

    resume(connection, *pausing)

    later = connection.execute("SELECT event FROM hookonce.queue WHERE due_at > now()").fetchall()
    assert later == [(other,)]


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
    reword(monkeypatch, parking, ("LIMIT 1000", "LIMIT 10"))

    pauses.resume(connection, *SOURCE, "test", timedelta(microseconds=1))
    assert [waits for _, _, waits in waiting(connection)].count(None) == 10
    parking.unpark_left(connection)

    assert len(claim(connection, "a")) == 30


def test_resume_of_a_source_finds_what_is_parked_of_all_handlers_and_of_none(connection):
    put(connection, "evt_1")
    for run in claim(connection, "a", "b"):
        end(connection, run, AttemptResult("waiting"))
    put(connection, "evt_2")
    pause(connection, *SOURCE)
    assert parking.park_rows(connection) == 3

    assert parking.unpark(connection, *SOURCE)

    assert {waits for _, _, waits in waiting(connection)} == {None}


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
def test_suspect_stays_one_whatever_is_paused(connection, pausing):
    put(connection, "evt_1")
    end(connection, *claim(connection, "a"), AttemptResult("waiting", waits="suspect"))
    pause(connection, *pausing)

    claim(connection, "a")
    parking.park_rows(connection)
    alone = claiming.claim_suspect(connection, Planner("a"))
    resume(connection, *pausing)

    assert alone is None
    assert waiting(connection) == [("evt_1", "a", "suspect")]
    assert claiming.claim_suspect(connection, Planner("a")).handler == "a"


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
def test_run_that_is_under_way_is_not_parked(connection, pausing):
    put(connection, "evt_1")
    (run,) = claim(connection, "a")
    pause(connection, *pausing)

    claim(connection, "a")
    assert waiting(connection) == [("evt_1", "a", None)]
    end(connection, run, DONE)

    assert connection.execute("SELECT status, due_at, waits FROM hookonce.event_states").fetchone() == (
        "done",
        None,
        None,
    )


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
        assert next(replays.replay(connection, [number], "test", again=True)).fate in replays.GOOD
        assert claim(connection, "a") == []
        assert waiting(connection) == [("evt_1", "a", "handler")]

    resume(connection, *HANDLER)

    assert claimed(connection, "a") == [("evt_1", "a")]


def test_held_event_that_is_released_is_parked(connection):
    put(connection, "evt_1", id_is_signed=False)
    (number,) = put(connection, "evt_2", id_is_signed=False, hold_repeats=True)
    pause(connection, *SOURCE)
    claim(connection, "a")

    list(replays.replay(connection, [number], "test", again=True))
    claim(connection, "a")

    assert [waits for _, _, waits in waiting(connection)] == ["source:stripe"] * 2


@pytest.mark.parametrize("pausing", [SOURCE, HANDLER])
def test_parked_is_open_for_whoever_counts_or_looks(connection, pausing):
    (number,) = put(connection, "evt_1")
    pause(connection, *pausing)
    claim(connection, "a")
    (status,) = connection.execute("SELECT status FROM hookonce.event_states").fetchone()

    assert [(each.source, each.status, each.count) for each in totals.event_sums(connection)] == [
        ("stripe", status, 1)
    ]
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

        found = claiming.claim(connection, Planner("a"))

    assert ([run.event.id for run in found.runs], found.waiting) == ([event], 0)
    assert "what is paused was not parked: LockNotAvailable" in caplog.text
