import threading

import psycopg
import pytest
from make import new_event

from receiver import database
from receiver.ledger import claims, counts, desk_replay, figures, runs
from receiver.ledger.store import store
from receiver.ledger.triage import Plan

SPAN = claims.timedelta(minutes=1)


class Nobody:
    """The handlers of a worker that has none."""

    def matching(self, *_):
        return []

    def named(self, _):
        return None

    def is_slow(self, *_):
        return False


class Somebody(Nobody):
    """A worker whose handler takes everything."""

    def matching(self, *_):
        return [Plan]


@pytest.fixture
def connection(database_url):
    with database.connect(database_url) as connection:
        yield connection


def deliver(connection, *ids, source="stripe"):
    answers = store(connection, [new_event(each, source=source) for each in ids])
    return [answers[source, each].id for each in ids]


def finish(connection, status, *ids):
    connection.execute("UPDATE events SET status = %s, due_at = NULL WHERE id = ANY(%s)", [status, list(ids)])


def ignore(connection):
    claims.claim(connection, Nobody(), budget=SPAN)


def count(connection):
    counts.advance(connection, counts.mark(connection))


def by_status(connection):
    return {(source, status): n for source, status, n in figures.events_by_status(connection)}


def counted(connection):
    rows = connection.execute("SELECT source, status, count(*) FROM events GROUP BY source, status")
    return {(source, status): n for source, status, n in rows}


def test_counts_are_those_of_the_ledger_before_and_after_a_sweep(connection):
    done, dead, held, _ = deliver(connection, "a", "b", "c", "d")
    deliver(connection, "a", source="github")
    for status, number in (("done", done), ("dead", dead), ("held", held)):
        finish(connection, status, number)

    before = by_status(connection)
    count(connection)

    assert before == by_status(connection) == counted(connection)
    assert len(before) == 5


def test_counts_follow_events_that_are_ignored_and_taken_up_again(connection):
    deliver(connection, "a", "b", "c")
    ignore(connection)
    count(connection)
    ignored = by_status(connection)

    desk_replay_ids = [row[0] for row in connection.execute("SELECT id FROM events ORDER BY id LIMIT 1")]
    list(desk_replay.replay(connection, desk_replay_ids, "tests"))
    replayed = by_status(connection)
    runs.wake_ignored(connection, Somebody(), SPAN)

    assert ignored == {("stripe", "ignored"): 3}
    assert replayed == {("stripe", "ignored"): 2, ("stripe", "received"): 1}
    assert by_status(connection) == counted(connection) == {("stripe", "received"): 3}


def test_counts_wait_for_a_transaction_that_may_hold_a_smaller_id(connection, database_url):
    with psycopg.connect(database_url) as late:
        late.execute(
            "INSERT INTO events (source, provider, event_id, type, fingerprint, id_is_signed, status) "
            "VALUES ('slow', 'slow', 'x', 't', '', true, 'done')"
        )
        deliver(connection, "a")
        first = counts.mark(connection)

        assert counts.advance(connection, first) == first
        assert connection.execute("SELECT FROM event_counts").rowcount == 0

    counts.advance(connection, first)
    assert by_status(connection) == counted(connection)


def test_counts_are_right_when_many_count_at_one_moment(connection, database_url):
    def sweep():
        with database.connect(database_url) as own:
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
    monkeypatch.setattr(counts, "STEP", 2)
    deliver(connection, *"abcde")

    seen = []
    for _ in range(4):
        count(connection)
        seen.append(rows(connection, "until"))

    assert seen == [2, 4, 5, 5]
    assert by_status(connection) == {("stripe", "received"): 5}


def test_recount_mends_what_was_changed_by_hand(connection):
    ids = deliver(connection, "a", "b", "c")
    count(connection)
    finish(connection, "ignored", ids[0])
    connection.execute("DELETE FROM events WHERE id = %s", [ids[1]])

    counts.recount(connection)

    assert by_status(connection) == counted(connection)


def rows(connection, what):
    query = "SELECT coalesce(sum(count), 0) FROM event_counts WHERE what = %s"
    return connection.execute(query, [what]).fetchone()[0]
