"""Sessions that meet at a worker's death, in the one order that matters; and the mistakes that each order finds."""

from contextlib import nullcontext
from dataclasses import dataclass

import psycopg
import pytest

from hookonce.receiver import failpoints
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import retention
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.runs import takeover
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.store import store
from tests.stories import mistakes
from tests.stories.mistakes import settling
from tests.support import claiming
from tests.support.inbox import effect, inbox
from tests.support.new_event import new_event
from tests.support.rewording import statement
from tests.support.waiting import until

__all__ = ["inbox"]

WAITERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
END_WORKERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'hookonce worker'
"""
SECONDS = 20


@dataclass(frozen=True)
class Plan:
    name: str = "credit"
    limit: object = None
    batch: object = None


class Planner:
    def matching(self, *_):
        return [Plan()]

    def named(self, _):
        return Plan()

    def __iter__(self):
        return iter([Plan()])


class Ledger:
    """A ledger with two events that a worker of one slot had claimed, and with sessions of others."""

    def __init__(self, database_url, monkeypatch):
        self.url = database_url
        self.monkeypatch = monkeypatch
        self.sql = connections.connect(database_url)
        self.sql.execute("CREATE TABLE effects (event bigint)")
        store(self.sql, [new_event("first"), new_event("second")])
        self.first, self.second = claiming.claim(self.sql, Planner()).runs
        claiming.lapse(self.sql)

    def session(self):
        return psycopg.connect(self.url)

    def take_over(self):
        with connections.connect(self.url) as other:
            return takeover.take_over(other)

    def begin_end(self, session, run):
        """Do as a handler's end does that is not committed yet."""
        session.execute("INSERT INTO effects VALUES (%s)", [run.event.id])
        session.execute("DELETE FROM hookonce.queue WHERE event = %s", [run.event.id])

    def waits(self, count=1):
        """Wait until so many sessions wait for locks."""
        until(lambda: self.sql.execute(WAITERS).fetchone()[0] >= count, seconds=SECONDS, what="a wait")

    def state(self):
        """What is said of both events: status, whether it is suspect, and its effects."""
        return [
            (
                status,
                waits == "suspect",
                self.sql.execute("SELECT count(*) FROM effects WHERE event = %s", [event]).fetchone()[0],
            )
            for event, status, waits in self.sql.execute(
                "SELECT id, status, waits FROM hookonce.event_states ORDER BY id"
            )
        ]

    def close(self):
        self.sql.close()


@pytest.fixture
def ledger(database_url, monkeypatch):
    ledger = Ledger(database_url, monkeypatch)
    yield ledger
    ledger.close()


BURIED = [("dead", False, 1), ("waiting", False, 0)]
GIVEN_BACK = [("waiting", True, 0), ("waiting", False, 0)]


def goes_on_while_it_is_taken_over(ledger):
    with ledger.session() as session:
        ledger.begin_end(session, ledger.second)
        ledger.take_over()
        session.rollback()

    assert ledger.state() == [("waiting", True, 0), ("running", False, 0)]
    assert ledger.sql.execute("SELECT events FROM hookonce.claims").fetchall() == [
        ([ledger.second.event.id],)
    ]


def replayed_when_it_was_done(ledger):
    for _ in range(2):
        ledger.sql.execute("UPDATE hookonce.queue SET token = NULL")
        for run in claiming.claim(ledger.sql, Planner()).runs:
            claiming.end(ledger.sql, run, AttemptResult("done"))
        list(replays.replay(ledger.sql, [ledger.first.event.id], "test", again=True))

    last = "SELECT count(*) FROM hookonce.runs WHERE is_last AND event = %s"
    assert ledger.sql.execute(last, [ledger.first.event.id]).fetchone() == (0,)


def replayed_before_it_is_pruned(ledger):
    ledger.sql.execute("UPDATE hookonce.queue SET token = NULL")
    for run in claiming.claim(ledger.sql, Planner()).runs:
        claiming.end(ledger.sql, run, AttemptResult("done"))
    ids = [ledger.first.event.id, ledger.second.event.id]

    class Late(psycopg.Connection):
        def execute(self, query, *args, **options):
            if query == statement(retention, "FOR UPDATE SKIP LOCKED"):  # the moment before it
                super().execute("SELECT 1")
                list(replays.replay(ledger.sql, ids[:1], "test", again=True))
            return super().execute(query, *args, **options)

    with Late.connect(ledger.url, autocommit=True) as pruning:
        retention.delete_events(pruning, ids)

    assert ledger.sql.execute("SELECT id FROM hookonce.events").fetchall() == [(ids[0],)]
    assert ledger.sql.execute("SELECT event FROM hookonce.queue").fetchall() == [(ids[0],)]


ORDERS = (
    goes_on_while_it_is_taken_over,
    replayed_when_it_was_done,
    replayed_before_it_is_pruned,
)
PLANTED = {
    settling.takes_a_part_of_a_claim: goes_on_while_it_is_taken_over,
    settling.leaves_the_outcome_of_before_the_last: replayed_when_it_was_done,
    settling.looks_at_the_queue_before_it_locks: replayed_before_it_is_pruned,
}


def named(function):
    return function.__name__


@pytest.mark.parametrize("order", ORDERS, ids=named)
def test_ledger_says_what_became_of_each_run_when(ledger, order):
    order(ledger)


@pytest.mark.parametrize(("mistake", "order"), PLANTED.items(), ids=named)
def test_planted_mistake_is_caught_by_its_order(ledger, mistake, order):
    with mistakes.made(mistake), pytest.raises(AssertionError):
        order(ledger)


@pytest.mark.parametrize("mistake", [None, settling.goes_on_before_its_run_is_settled])
def test_run_that_the_ledger_was_away_for_is_settled_before_another_is_begun(inbox, monkeypatch, mistake):
    inbox.on(effect)
    inbox.deliver("a")
    away = ["run.ended"]

    def leave(point):
        if away and point == away[0]:
            away.pop(0)
            inbox.connection.execute(END_WORKERS)

    monkeypatch.setattr(failpoints, "counter", leave)
    with mistakes.made(mistake) if mistake else nullcontext():
        for _ in range(2):
            inbox.work()
        ends = [("a", "effect", *(("running", 1) if mistake else ("done", 1)))]
        until(lambda: (inbox.work(), inbox.runs())[1], ends)  # what was given back is due after a pause

    assert not away
