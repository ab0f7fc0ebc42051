"""What a replay makes of events whose runs end, are claimed, replayed or pruned at the same moment.

Each interleaving is a real one: another connection holds its transaction open while the replay runs in a thread, and
goes on once that waits for it, or has gone on without.
"""

import threading
import time
import uuid
from contextlib import contextmanager

import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import retention
from hookonce.receiver.ledger.replay import events
from hookonce.receiver.ledger.replay.events import ReplayOutcome, replay
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state
from tests.support.waiting import PATIENT, until

WAITS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def other(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def put(connection):
    """Stores an event whose runs are (handler, status, attempts); gives its id."""

    def stored(*runs, status=None, **changes):
        (row,) = store(connection, [new_event(str(uuid.uuid4()), **changes)]).values()
        put_into_state(connection, row.id, status, runs)
        return row.id

    return stored


@pytest.fixture
def replaying(database_url):
    """Replays events in a thread; gives the thread, and a list that takes the outcomes."""

    def start(*numbers):
        def run():
            with connections.connect(database_url, **PATIENT) as own:
                outcomes.extend(replay(own, numbers, "a test", again=True))

        outcomes = []
        thread = threading.Thread(target=run)
        thread.start()
        return thread, outcomes

    return start


@contextmanager
def beside(connection, thread_of, *, waits):
    """Begin a transaction; at its end start what runs beside it, and commit once that waits, or is over."""
    with connection.transaction():
        yield
        thread = thread_of()
        if waits:
            until(lambda: is_waited_for(connection))
        else:
            thread.join(10)
    thread.join(10)
    assert not thread.is_alive()


def is_waited_for(connection):
    connection.execute("SELECT pg_stat_clear_snapshot()")
    return connection.execute(WAITS).fetchone()[0] > 0


def end(connection, event, handler, status="done"):
    """End a run as a worker does: its row in the queue goes, its outcome is written."""
    ended = connection.execute(
        "WITH gone AS (DELETE FROM hookonce.queue WHERE event = %s AND handler = %s RETURNING event, handler, cycle) "
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "SELECT event, handler, cycle, %s, 1, clock_timestamp() FROM gone",
        [event, handler, status],
    )
    assert ended.rowcount == 1


def runs(connection, event):
    return connection.execute(
        "SELECT handler, status, cycle FROM hookonce.run_states WHERE event = %s ORDER BY handler", [event]
    ).fetchall()


def history(connection, event):
    return connection.execute(
        "SELECT handler, cycle, status, is_last FROM hookonce.runs WHERE event = %s ORDER BY handler, cycle",
        [event],
    ).fetchall()


def test_replay_keeps_what_became_of_ended_cycles(connection, put):
    number = put(("a", "dead", 3), ("b", "done", 1))

    list(replay(connection, [number], "a test", again=True))
    end(connection, number, "a")
    list(replay(connection, [number], "a test", again=True))

    assert history(connection, number) == [
        ("a", 1, "dead", False),
        ("a", 2, "done", False),
        ("b", 1, "done", False),
    ]
    assert runs(connection, number) == [("a", "waiting", 3), ("b", "waiting", 2)]


def test_replay_leaves_a_run_alone_that_ends_meanwhile(connection, other, put, replaying):
    number = put(("a", "running", 1))
    outcomes = []

    def start():
        thread, found = replaying(number)
        outcomes.append(found)
        return thread

    with beside(other, start, waits=False):
        end(other, number, "a")

    assert [each.fate for each in outcomes[0]] == [ReplayOutcome.RUNNING]
    assert history(connection, number) == [("a", 1, "done", True)]
    assert runs(connection, number) == [("a", "done", 1)]


def test_replay_gives_a_dead_run_another_cycle_while_its_sibling_ends(connection, other, put, replaying):
    number = put(("a", "dead", 3), ("b", "running", 1))

    with beside(other, lambda: replaying(number)[0], waits=False):
        end(other, number, "b")

    assert runs(connection, number) == [("a", "waiting", 2), ("b", "done", 1)]
    status = connection.execute("SELECT status FROM hookonce.event_states WHERE id = %s", [number]).fetchone()
    assert status == ("waiting",)


def test_end_of_a_sibling_does_not_wait_for_a_replay(connection, other, put):
    number = put(("a", "dead", 3), ("b", "running", 1))

    with connection.transaction():
        list(replay(connection, [number], "a test", again=True))
        end(other, number, "b")

    assert runs(connection, number) == [("a", "waiting", 2), ("b", "done", 1)]


def test_replay_of_a_run_that_ended_before_it_looked_is_a_new_cycle(connection, put, monkeypatch, other):
    number = put(("a", "running", 1))
    locks = events._LOCK_OPEN  # noqa: SLF001

    class Ends(str):
        """Has the run end between the statement that locks and the one that reads."""

        __slots__ = ()

        def encode(self, *_):
            end(other, number, "a")
            return locks.encode()

    monkeypatch.setattr(events, "_LOCK_OPEN", Ends(locks))
    (outcome,) = replay(connection, [number], "a test", again=True)

    assert (outcome.fate, outcome.handlers) == (ReplayOutcome.REPLAYED, ["a"])
    assert runs(connection, number) == [("a", "waiting", 2)]


def test_two_replays_at_once_are_one_new_cycle(connection, other, put, replaying):
    numbers = [put(("a", "dead", 1), ("b", "waiting", 2)) for _ in range(3)]
    outcomes = []

    def start():
        thread, found = replaying(*reversed(numbers))
        outcomes.append(found)
        return thread

    with beside(other, start, waits=True):
        first = list(replay(other, numbers, "another"))

    assert {each.fate for each in first} == {ReplayOutcome.REPLAYED}
    assert {each.fate for each in outcomes[0]} == {ReplayOutcome.QUEUED}
    assert {tuple(runs(connection, number)) for number in numbers} == {
        (("a", "waiting", 2), ("b", "waiting", 2))
    }


def test_replay_leaves_a_run_alone_that_is_claimed_meanwhile(connection, other, put, replaying):
    number = put(("a", "waiting", 2))
    outcomes = []

    def start():
        thread, found = replaying(number)
        outcomes.append(found)
        return thread

    with beside(other, start, waits=True):
        other.execute("UPDATE hookonce.queue SET token = gen_random_uuid() WHERE event = %s", [number])

    assert [(each.fate, each.left) for each in outcomes[0]] == [(ReplayOutcome.RUNNING, ["a"])]
    assert runs(connection, number) == [("a", "running", 1)]


def test_replay_waits_for_no_handler_that_holds_its_row(connection, other, put):
    number = put(("a", "running", 1), ("b", "dead", 3))

    with other.transaction():
        other.execute("SELECT FROM hookonce.queue WHERE event = %s AND handler = 'a' FOR SHARE", [number])
        other.execute(
            "SELECT FROM hookonce.events WHERE id = %s FOR KEY SHARE", [number]
        )  # as a step's foreign key
        (outcome,) = replay(connection, [number], "a test", again=True)

    assert (outcome.handlers, outcome.left) == (["b"], ["a"])


def test_replay_finds_nothing_of_what_is_pruned_meanwhile(connection, other, put, replaying):
    number = put(("a", "done", 1))
    outcomes = []

    def start():
        thread, found = replaying(number)
        outcomes.append(found)
        return thread

    with beside(other, start, waits=True):
        assert retention.delete_events(other, [number]) == 1

    assert outcomes == [[]]
    for table in ("events", "runs", "queue"):
        assert connection.execute(f"SELECT count(*) FROM hookonce.{table}").fetchone() == (0,)  # noqa: S608


def test_retention_passes_by_what_is_replayed_meanwhile(connection, other, put):
    number = put(("a", "done", 1))

    with other.transaction():
        list(replay(other, [number], "a test", again=True))
        assert retention.delete_events(connection, [number]) == 0

    assert retention.delete_events(connection, [number]) == 0
    assert runs(connection, number) == [("a", "waiting", 2)]


def test_replay_sees_that_the_last_end_has_dropped_the_body(connection, other, put, replaying):
    number = put(("a", "dead", 1), keep_body=False)
    outcomes = []

    def start():
        thread, found = replaying(number)
        outcomes.append(found)
        return thread

    with beside(other, start, waits=True):
        other.execute("SELECT FROM hookonce.events WHERE id = %s FOR UPDATE", [number])
        other.execute("DELETE FROM hookonce.bodies WHERE event = %s", [number])

    assert [each.fate for each in outcomes[0]] == [ReplayOutcome.BODY_NOT_KEPT]
    assert runs(connection, number) == [("a", "dead", 1)]


def test_replays_ends_and_retention_at_once_lose_and_double_nothing(connection, put, database_url):
    numbers = [put(("a", "dead", 1), ("b", "done", 1)) for _ in range(20)]
    stop, failed = threading.Event(), []

    def repeat(what):
        def loop():
            try:
                with connections.connect(database_url, **PATIENT) as own:
                    while not stop.is_set():
                        what(own)
            except Exception as error:  # noqa: BLE001  whatever it is
                failed.append(error)

        return threading.Thread(target=loop)

    def ends(own):
        own.execute(
            "WITH mine AS (SELECT event, n FROM hookonce.queue WHERE token IS NULL ORDER BY random() LIMIT 3 "
            "FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM hookonce.queue q USING mine "
            "WHERE (q.event, q.n) = (mine.event, mine.n) RETURNING q.event, q.handler, q.cycle) "
            "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
            "SELECT event, handler, cycle, 'dead', 1, clock_timestamp() FROM gone"
        )

    threads = [
        repeat(lambda own: list(replay(own, numbers[::2], "one"))),
        repeat(lambda own: list(replay(own, numbers[::-1], "two"))),
        repeat(ends),
        repeat(ends),
        repeat(lambda own: retention.delete_events(own, numbers[:3])),
    ]
    for thread in threads:
        thread.start()
    time.sleep(1.5)  # as many rounds as there are
    stop.set()
    for thread in threads:
        thread.join()

    assert failed == []
    left = connection.execute("SELECT id FROM hookonce.event_states").fetchall()
    lost = connection.execute("SELECT id FROM hookonce.event_states WHERE status = 'lost'").fetchall()
    twice = connection.execute(
        "SELECT event, handler FROM hookonce.run_states GROUP BY event, handler HAVING count(*) <> 1"
    ).fetchall()
    cycles = connection.execute(
        "SELECT event, handler FROM (SELECT event, handler, cycle FROM hookonce.runs UNION ALL "
        "SELECT event, handler, cycle FROM hookonce.queue) AS every GROUP BY event, handler "
        "HAVING count(*) <> max(cycle) OR count(DISTINCT cycle) <> count(*)"
    ).fetchall()
    orphans = connection.execute(
        "SELECT event FROM (SELECT event FROM hookonce.runs UNION ALL SELECT event FROM hookonce.queue) AS every "
        "WHERE NOT EXISTS (SELECT FROM hookonce.events e WHERE e.id = every.event)"
    ).fetchall()
    assert (lost, twice, cycles, orphans) == ([], [], [], [])
    assert len(left) >= len(numbers) - 3
