from dataclasses import dataclass
from datetime import timedelta

import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.replay import transfer
from hookonce.receiver.ledger.replay.discards import discard
from hookonce.receiver.ledger.runs import ignored, leases, takeover
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.states import (
    ENDED,
    OPEN,
    EventStatus,
    RunStatus,
    one_of,
)
from hookonce.receiver.ledger.store import store
from tests.support import claiming, status_moves
from tests.support.claiming import end
from tests.support.new_event import new_event

DONE = AttemptResult(RunStatus.DONE)
DEAD = AttemptResult(RunStatus.DEAD, error="no")
FAILED = AttemptResult(RunStatus.WAITING, error="not yet")
TABLES = "hookonce.events, hookonce.bodies, hookonce.queue, hookonce.runs, hookonce.claims, hookonce.failures"


@dataclass(frozen=True)
class Plan:
    name: str
    limit: object = None
    batch: object = None


class Planner:
    def __init__(self, *plans):
        self.plans = plans

    def __iter__(self):
        return iter(self.plans)

    def matching(self, *_):
        return self.plans

    def named(self, name):
        return next((plan for plan in self.plans if plan.name == name), None)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        status_moves.record(connection)
        yield connection


def take(connection, *plans):
    return claiming.claim(connection, Planner(*plans)).runs


def put(connection, event_id="evt_1", **changes):
    return store(connection, [new_event(event_id, **changes)])["stripe", event_id].id


def first_handler_done_and_the_next_dead(connection):
    put(connection)
    first, second = take(connection, Plan("a"), Plan("b"))
    end(connection, first, DONE)
    end(connection, second, DEAD)


def failed_tried_again_and_replayed(connection):
    number = put(connection)
    end(connection, *take(connection, Plan("a")), FAILED)
    end(connection, *take(connection, Plan("a")), DONE)
    list(replays.replay(connection, [number], "test", again=True))
    end(connection, *take(connection, Plan("a")), DEAD)
    list(replays.replay(connection, [number], "test", again=True))


def released_by_its_worker(connection):
    put(connection)
    first, second = take(connection, Plan("a"), Plan("b"))
    end(connection, first, DONE)
    leases.release(connection, [second])


def ignored_until_it_is_replayed(connection):
    number = put(connection)
    take(connection)
    list(replays.replay(connection, [number], "test", again=True))


def ignored_until_a_worker_takes_it(connection):
    put(connection)
    take(connection)
    ignored.requeue(connection, Planner(Plan("a")).matching, timedelta(minutes=15))


def not_accepted_by_its_source(connection):
    put(connection, unwanted="a test event")
    ignored.requeue(connection, Planner(Plan("a")).matching, timedelta(minutes=15))


def handler_paused_and_resumed(connection):
    pauses.pause(connection, "handler", "a", "test")
    put(connection)
    take(connection, Plan("a"))
    pauses.resume(connection, "handler", "a", "test")


def worker_gone_and_the_next_one_too(connection):
    put(connection)
    take(connection, Plan("a"))
    claiming.lapse(connection)
    takeover.take_over(connection)
    claiming.claim_suspect(connection, Planner(Plan("a")))
    claiming.lapse(connection)
    takeover.take_over(connection, WorkerEnd(handlers=claiming.Attempts(1)))


def handler_unknown_to_the_next_worker(connection):
    put(connection)
    end(connection, *take(connection, Plan("a")), FAILED)
    take(connection, Plan("b"))


def lost_and_replayed(connection):
    number = put(connection)
    connection.execute("DELETE FROM hookonce.queue")
    list(replays.replay(connection, [number], "test", again=True))


def element_that_nobody_can_read(connection):
    number = put(connection, unreadable="bad_body: it is none")
    list(replays.replay(connection, [number], "test", again=True))


def repeat_held_and_released(connection):
    put(connection, id_is_signed=False)
    number = put(connection, "evt_2", id_is_signed=False, hold_repeats=True)
    list(replays.replay(connection, [number], "test", status=EventStatus.HELD, again=True))


def discarded_and_replayed(connection):
    number = put(connection)
    first, second = take(connection, Plan("a"), Plan("b"))
    end(connection, first, DEAD)
    end(connection, second, DEAD)
    discard(connection, [number], "test")
    list(replays.replay(connection, [number], "test"))


def discarded_beside_one_that_is_done(connection):
    first_handler_done_and_the_next_dead(connection)
    discard(connection, [n for (n,) in connection.execute("SELECT id FROM hookonce.events")], "test")


def discarded_before_it_was_claimed_and_replayed(connection):
    number = put(connection)
    discard(connection, [number], "test")
    list(replays.replay(connection, [number], "test"))


def held_and_discarded(connection):
    put(connection, id_is_signed=False)
    discard(connection, [put(connection, "evt_2", id_is_signed=False, hold_repeats=True)], "test")


def discarded_while_it_waits(connection):
    for name, ended in (("evt_1", FAILED), ("evt_2", DONE)):
        number = put(connection, name)
        first, second = take(connection, Plan("a"), Plan("b"))
        end(connection, first, FAILED)
        end(connection, second, ended)
        discard(connection, [number], "test")


def imported_to_be_held(connection):
    transfer.take(connection, [new_event()], "test", transfer.Taken(), run=False)


STORIES = (
    first_handler_done_and_the_next_dead,
    failed_tried_again_and_replayed,
    released_by_its_worker,
    ignored_until_it_is_replayed,
    ignored_until_a_worker_takes_it,
    not_accepted_by_its_source,
    handler_paused_and_resumed,
    worker_gone_and_the_next_one_too,
    handler_unknown_to_the_next_worker,
    element_that_nobody_can_read,
    repeat_held_and_released,
    discarded_and_replayed,
    discarded_beside_one_that_is_done,
    discarded_before_it_was_claimed_and_replayed,
    held_and_discarded,
    discarded_while_it_waits,
    imported_to_be_held,
)


def test_ledger_makes_every_declared_move_and_no_other(connection):
    for story in STORIES:
        story(connection)
        assert status_moves.made(connection) <= status_moves.declared(), story.__name__
        connection.execute(f"TRUNCATE {TABLES} CASCADE")

    left = status_moves.declared() - status_moves.made(connection)
    assert left == {("events", "lost", "received")}


def test_event_that_was_lost_is_received_when_it_is_replayed(connection):
    lost_and_replayed(connection)

    assert ("events", "lost", "received") in status_moves.made(connection)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_open_events_and_no_others_have_a_due_time(connection, story):
    story(connection)

    rows = connection.execute("SELECT status, due_at IS NOT NULL FROM hookonce.event_states").fetchall()
    assert rows
    assert [status for status, is_due in rows if is_due != (status in OPEN)] == []


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_no_event_is_lost(connection, story):
    story(connection)

    assert connection.execute(
        "SELECT count(*) FROM hookonce.event_states WHERE status = 'lost'"
    ).fetchone() == (0,)


def test_sets_cover_every_status():
    assert {*OPEN, *ENDED, EventStatus.HELD, EventStatus.LOST} == set(EventStatus)


def test_moves_are_declared_for_every_status():
    assert {kind: set(moves) for kind, moves in status_moves.MOVES.items()} == {
        "events": set(EventStatus),
        "runs": set(RunStatus),
    }


def test_one_of_keeps_the_order():
    assert one_of("e.status", OPEN) == "e.status IN ('received', 'running', 'waiting')"
