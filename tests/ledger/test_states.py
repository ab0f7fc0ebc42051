from dataclasses import dataclass
from datetime import timedelta

import pytest

from hookonce.receiver.ledger import pauses, transfer
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.runs import claims, run_end, transitions
from hookonce.receiver.ledger.runs.run_end import AttemptResult
from hookonce.receiver.ledger.states import (
    ATTENTION,
    ENDED,
    ENDED_RUNS,
    EVENT_MOVES,
    OPEN,
    OPEN_RUNS,
    RUN_MOVES,
    EventStatus,
    RunStatus,
    one_of,
)
from hookonce.receiver.ledger.store import store
from tests.support import status_moves
from tests.support.new_event import new_event

BUDGET = timedelta(seconds=2)
DONE = AttemptResult(RunStatus.DONE)
DEAD = AttemptResult(RunStatus.DEAD, error="no")
FAILED = AttemptResult(RunStatus.WAITING, error="not yet", delay=timedelta(0))
EXPIRE = """
UPDATE hookonce.runs SET lease_until = now(), due_at = now();
UPDATE hookonce.events SET due_at = now() WHERE due_at IS NOT NULL
"""


@dataclass(frozen=True)
class Plan:
    name: str
    attempts: int = 3
    timeout: timedelta = timedelta(seconds=30)
    limit: object = None
    is_long: bool = False
    batch: object = None


class Planner:
    def __init__(self, *plans):
        self.plans = plans

    def matching(self, *_):
        return self.plans

    def is_slow(self, *_):
        return False

    def named(self, name):
        return next((plan for plan in self.plans if plan.name == name), None)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        status_moves.record(connection)
        yield connection


def take(connection, *plans):
    return claims.claim(connection, Planner(*plans), budget=BUDGET).runs


def end(connection, run, result, following=None):
    with connection.transaction():
        run_end.end(connection, run, result, following)


def put(connection, event_id="evt_1", **changes):
    return store(connection, [new_event(event_id, **changes)])["stripe", event_id].id


def first_handler_done_and_the_next_dead(connection):
    put(connection)
    first, second = take(connection, Plan("a"), Plan("b"))
    end(connection, first, DONE, second)
    end(connection, second, DEAD)


def failed_tried_again_and_replayed(connection):
    number = put(connection)
    end(connection, *take(connection, Plan("a")), FAILED)
    end(connection, *take(connection, Plan("a")), DONE)
    list(replays.replay(connection, [number], "test"))
    end(connection, *take(connection, Plan("a")), DEAD)
    list(replays.replay(connection, [number], "test"))


def released_by_its_worker(connection):
    put(connection)
    first, second = take(connection, Plan("a"), Plan("b"))
    end(connection, first, DONE)
    transitions.release(connection, [second])


def ignored_until_it_is_replayed(connection):
    number = put(connection)
    take(connection)
    list(replays.replay(connection, [number], "test"))


def ignored_until_a_worker_takes_it(connection):
    put(connection)
    take(connection)
    transitions.requeue_ignored(connection, Planner(Plan("a")), timedelta(minutes=15))


def handler_paused_and_resumed(connection):
    pauses.pause(connection, "handler", "a", "test")
    put(connection)
    take(connection, Plan("a"))
    pauses.resume(connection, "handler", "a", "test")


def worker_gone_on_the_last_attempt(connection):
    put(connection)
    take(connection, Plan("a", attempts=1))
    connection.execute(EXPIRE)
    take(connection, Plan("a", attempts=1))


def worker_gone_and_the_next_one_lacks_the_handler(connection):
    put(connection)
    take(connection, Plan("a"))
    connection.execute(EXPIRE)
    take(connection, Plan("b"))


def fewer_attempts_allowed_than_were_made(connection):
    put(connection)
    end(connection, *take(connection, Plan("a")), FAILED)
    take(connection, Plan("a", attempts=1))


def element_that_nobody_can_read(connection):
    number = put(connection, is_readable=False)
    list(replays.replay(connection, [number], "test"))


def repeat_held_and_released(connection):
    put(connection, id_is_signed=False)
    number = put(connection, "evt_2", id_is_signed=False, hold_repeats=True)
    list(replays.replay(connection, [number], "test", status=EventStatus.HELD))


def imported_to_be_held(connection):
    transfer.take(connection, [new_event()], "test", transfer.Taken(), run=False)


STORIES = (
    first_handler_done_and_the_next_dead,
    failed_tried_again_and_replayed,
    released_by_its_worker,
    ignored_until_it_is_replayed,
    ignored_until_a_worker_takes_it,
    handler_paused_and_resumed,
    worker_gone_on_the_last_attempt,
    worker_gone_and_the_next_one_lacks_the_handler,
    fewer_attempts_allowed_than_were_made,
    element_that_nobody_can_read,
    repeat_held_and_released,
    imported_to_be_held,
)


def test_ledger_makes_every_declared_move_and_no_other(connection):
    for story in STORIES:
        story(connection)
        assert status_moves.made(connection) <= status_moves.declared(), story.__name__
        connection.execute(
            "TRUNCATE hookonce.events, hookonce.bodies, hookonce.runs, hookonce.failures CASCADE"
        )

    assert status_moves.made(connection) == status_moves.declared()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_open_events_and_no_others_have_a_due_time(connection, story):
    story(connection)

    rows = connection.execute("SELECT status, due_at IS NOT NULL FROM hookonce.event_states").fetchall()
    assert rows
    assert [status for status, is_due in rows if is_due != (status in OPEN)] == []


def test_sets_cover_every_status():
    assert {*OPEN, *ENDED, EventStatus.HELD} == set(EventStatus)
    assert {*OPEN_RUNS, *ENDED_RUNS} == set(RunStatus)
    assert set(ATTENTION) <= set(EventStatus)


def test_moves_are_declared_for_every_status():
    assert set(EVENT_MOVES) == set(EventStatus)
    assert set(RUN_MOVES) == set(RunStatus)


def test_one_of_keeps_the_order():
    assert one_of("e.status", OPEN) == "e.status IN ('received', 'running', 'waiting')"
