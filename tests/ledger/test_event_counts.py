import threading
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay import events
from hookonce.receiver.ledger.runs import ignored as ignored_events
from hookonce.receiver.ledger.stats import event_counts, totals
from hookonce.receiver.ledger.store import store
from tests.support.event_sums import differences
from tests.support.new_event import new_event
from tests.support.outcomes import end_events
from tests.support.waiting import PATIENT

SPAN = timedelta(minutes=1)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def deliver(connection, *ids, source="stripe"):
    answers = store(connection, [new_event(each, source=source) for each in ids])
    return [answers[source, each].id for each in ids]


def ignore(connection):
    """Do as a claim of a worker that has no handlers."""
    connection.execute(
        "WITH gone AS (DELETE FROM hookonce.queue RETURNING event, cycle) "
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "SELECT event, '', cycle, 'ignored', 0, now() FROM gone"
    )


def count(connection):
    event_counts.advance(connection, event_counts.mark(connection))


def by_status(connection):
    return {
        (source, status): n
        for source, status, n in [
            (each.source, each.status, each.count) for each in totals.event_sums(connection)
        ]
    }


def counted(connection):
    rows = connection.execute(
        "SELECT source, status, count(*) FROM hookonce.event_states GROUP BY source, status"
    )
    return {(source, status): n for source, status, n in rows}


def test_counts_are_those_of_the_ledger_before_and_after_a_sweep(connection):
    done, dead, held, _ = deliver(connection, "a", "b", "c", "d")
    deliver(connection, "a", source="github")
    end_events(connection, "done", [done])
    end_events(connection, "dead", [dead])
    connection.execute("UPDATE hookonce.queue SET waits = 'held' WHERE event = %s", [held])

    before = by_status(connection)
    count(connection)

    assert before == by_status(connection) == counted(connection)
    assert len(before) == 5


def test_counts_follow_events_that_are_ignored_and_taken_up_again(connection):
    deliver(connection, "a", "b", "c")
    ignore(connection)
    count(connection)
    ignored = by_status(connection)

    desk_replay_ids = [
        row[0] for row in connection.execute("SELECT id FROM hookonce.event_states ORDER BY id LIMIT 1")
    ]
    list(events.replay(connection, desk_replay_ids, "tests", again=True))
    replayed = by_status(connection)
    ignored_events.requeue(connection, lambda *_: [None], SPAN)

    assert ignored == {("stripe", "ignored"): 3}
    assert replayed == {("stripe", "ignored"): 2, ("stripe", "received"): 1}
    assert by_status(connection) == counted(connection) == {("stripe", "received"): 3}


def test_counts_wait_for_a_transaction_that_may_hold_a_smaller_id(connection, database_url):
    with psycopg.connect(database_url) as late:
        late.execute(
            "WITH late AS (INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed) "
            "VALUES ('slow', 'slow', 'x', 't', '', true) RETURNING id) "
            "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
            "SELECT id, 'a', 1, 'done', 1, now() FROM late"
        )
        deliver(connection, "a")
        first = event_counts.mark(connection)

        assert event_counts.advance(connection, first) == first
        assert connection.execute("SELECT FROM hookonce.event_counts").rowcount == 0

    event_counts.advance(connection, first)
    assert by_status(connection) == counted(connection)


def test_counts_are_right_when_many_count_at_one_moment(connection, database_url):
    def sweep():
        with connections.connect(database_url, **PATIENT) as own:
            barrier.wait()
            for _ in range(5):
                count(own)

    barrier = threading.Barrier(4, timeout=20)
    threads = [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(20):
        deliver(connection, f"evt_{number}")
    for thread in threads:
        thread.join()

    assert by_status(connection) == counted(connection)


def test_counts_take_bounded_steps_through_a_long_ledger(connection, monkeypatch):
    monkeypatch.setattr(event_counts, "COUNT_BATCH", 2)
    deliver(connection, *"abcde")

    seen = []
    for _ in range(4):
        count(connection)
        seen.append(rows(connection, "until"))

    assert seen == [2, 4, 5, 5]
    assert by_status(connection) == {("stripe", "received"): 5}


def test_recount_mends_what_was_changed_by_hand(connection):
    ids = deliver(connection, "a", "b", "c")
    end_events(connection, "ignored", ids[:1])
    count(connection)
    connection.execute("DELETE FROM hookonce.queue WHERE event = %s", [ids[1]])
    connection.execute("DELETE FROM hookonce.events WHERE id = %s", [ids[1]])

    before = differences(connection)
    event_counts.recount(connection)

    assert before == {("stripe", "done"): (1, 0)}
    assert differences(connection) == {}


def rows(connection, what):
    query = "SELECT coalesce(sum(count), 0) FROM hookonce.event_counts WHERE what = %s"
    return connection.execute(query, [what]).fetchone()[0]


MANY = totals.MAX_COUNTED + 20_000


@pytest.fixture
def long_ledger(connection):
    """A source with many open events, one with as many that were ignored, and five dead ones."""
    connection.execute("SET statement_timeout = 0")
    connection.execute(
        "WITH taken AS (INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed) "
        "SELECT CASE WHEN n <= %(many)s THEN 'stripe' ELSE 'github' END, 'stripe', 'evt_' || n, 'a', '', true "
        "FROM generate_series(1, 2 * %(many)s) AS n RETURNING *), open AS ("
        "INSERT INTO hookonce.queue (event, received_at, source, type, due_at) "
        "SELECT id, received_at, source, type, now() FROM taken WHERE source = 'stripe') "
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "SELECT id, '', 1, 'ignored', 1, now() FROM taken WHERE source = 'github'",
        {"many": MANY},
    )
    end_events(connection, "dead", deliver(connection, *"abcde", source="shop"))
    return connection


def sums(connection):
    return {(each.source, each.status): (each.count, each.is_exact) for each in totals.event_sums(connection)}


def test_counts_of_many_rows_are_estimates_and_say_so(long_ledger):
    for table in ("queue", "runs"):
        long_ledger.execute(f"VACUUM ANALYZE hookonce.{table}")
    count(long_ledger)

    found = sums(long_ledger)

    assert found.pop(("shop", "dead")) == (5, True)
    assert not any(is_exact for _, is_exact in found.values())
    assert found["stripe", "received"][0] == pytest.approx(MANY, rel=0.02)
    assert found["github", "ignored"][0] == pytest.approx(MANY, rel=0.02)


def test_counts_of_many_rows_know_sources_between_the_oldest_and_the_newest(long_ledger):
    long_ledger.execute("DELETE FROM hookonce.queue WHERE event BETWEEN 10001 AND 20000 AND event % 10 <> 0")
    long_ledger.execute("UPDATE hookonce.queue SET source = 'between' WHERE event BETWEEN 10001 AND 20000")

    found = sums(long_ledger)

    assert found["between", "received"][0] == pytest.approx(1000, rel=0.1)
    assert found["stripe", "received"][0] == pytest.approx(MANY - 10_000, rel=0.02)


def test_counts_of_many_rows_are_never_less_than_what_was_counted(long_ledger):
    found = sums(long_ledger)

    assert found["stripe", "received"][0] >= totals.MAX_COUNTED
    assert found["shop", "dead"] == (5, True)


def test_counts_see_that_an_event_is_dead_once_its_last_run_has_ended(connection):
    (number,) = deliver(connection, "a")
    connection.execute("UPDATE hookonce.queue SET handler = 'b'")
    connection.execute(
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "VALUES (%s, 'a', 1, 'dead', 1, now() - interval '1 hour')",
        [number],
    )
    count(connection)
    count(connection)
    waiting = by_status(connection)

    connection.execute("DELETE FROM hookonce.queue")
    connection.execute(
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "VALUES (%s, 'b', 1, 'done', 1, now())",
        [number],
    )

    assert waiting == {("stripe", "waiting"): 1}
    assert by_status(connection) == counted(connection) == {("stripe", "dead"): 1}


def work(connection, handler, status, ids):
    """End what is open of these, by one handler, or by none that takes them."""
    connection.execute(
        "WITH free AS (SELECT event, n FROM hookonce.queue WHERE event = ANY(%s) FOR UPDATE SKIP LOCKED), gone AS ("
        "DELETE FROM hookonce.queue q USING free WHERE (q.event, q.n) = (free.event, free.n) RETURNING q.event, cycle) "
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "SELECT event, %s, cycle, %s, 1, clock_timestamp() FROM gone",
        [ids, handler, status],
    )


def test_counts_are_those_of_the_ledger_while_all_happens_at_once(connection, database_url):
    stop = threading.Event()
    ids = deliver(connection, *(f"evt_{n}" for n in range(60)))

    def repeat(what):
        def loop():
            with connections.connect(database_url, **PATIENT) as own:
                while not stop.is_set():
                    what(own)

        return threading.Thread(target=loop)

    threads = [
        repeat(lambda own: work(own, "a", "dead", ids[:20])),
        repeat(lambda own: work(own, "a", "done", ids[15:40])),
        repeat(lambda own: list(events.replay(own, ids[:40], "a test", again=True))),
        repeat(lambda own: work(own, "", "ignored", ids[45:])),
        repeat(lambda own: list(events.replay(own, ids[40:], "a test", again=True))),
        repeat(count),
        repeat(by_status),
    ]
    for thread in threads:
        thread.start()
    stop.wait(1)
    stop.set()
    for thread in threads:
        thread.join()

    before = by_status(connection)
    count(connection)
    assert before == by_status(connection) == counted(connection)
    assert differences(connection) == {}
