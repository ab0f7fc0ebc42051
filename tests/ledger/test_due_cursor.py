from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import psycopg
import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import due_cursor, due_rows, parking
from hookonce.receiver.ledger.runs.due_cursor import DueCursor, Paced, SweepMark
from hookonce.receiver.ledger.store import store
from tests.ledger.test_runs import Plan, Planner
from tests.support import claiming
from tests.support.new_event import new_event

CROWD = 120
PARKED = "SELECT event_id, waits FROM hookonce.event_states WHERE waits IS NOT NULL"
HANDLED = """
INSERT INTO hookonce.queue (event, received_at, source, type, due_at)
SELECT n, now(), 'stripe', 'invoice.paid', now() - interval '1 min' FROM generate_series(1000001, 1005000) AS n
"""


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def clock():
    class Clock:
        now = 1000.0

        def __call__(self):
            return self.now

    return Clock()


def put(connection, *ids, type_="invoice.paid", due="0 s"):
    store(connection, [new_event(event_id, type=type_) for event_id in ids])
    change = """UPDATE hookonce.queue q SET due_at = now() + %s::interval FROM hookonce.events e
                WHERE e.id = q.event AND e.event_id = ANY(%s)"""
    connection.execute(change, [due, list(ids)])


def claim(connection, cursor):
    found = claiming.claim(connection, Planner(Plan("credit")), cursor=cursor)
    return [run.event.event_id for run in found.runs]


def crowd(connection):
    put(connection, *(f"crowd_{n:03}" for n in range(CROWD)), due="-1 min")


def test_what_comes_behind_a_crowd_is_claimed_by_the_next_look(connection):
    crowd(connection)
    put(connection, "other", type_="invoice.sent")
    cursor = DueCursor()

    looks = [claim(connection, cursor) for _ in range(3)]

    assert [len(looks[0]), looks[1], len(looks[2])] == [50, ["other"], 50]


def test_crowd_alone_is_claimed_batch_after_batch(connection):
    crowd(connection)
    cursor = DueCursor()

    assert [len(claim(connection, cursor)) for _ in range(4)] == [50, 50, 20, 0]


def test_mixture_has_no_crowd(connection):
    for n in range(CROWD):
        put(connection, f"evt_{n:03}", type_=f"type.{n % 10}", due=f"{n - 1000} s")
    cursor = DueCursor()

    assert [claim(connection, cursor)[0] for _ in range(2)] == ["evt_000", "evt_050"]


def test_what_was_made_due_long_before_it_was_committed_is_found_by_a_full_look(connection, clock):
    cursor = DueCursor(clock)
    put(connection, "first")
    claim(connection, cursor)
    put(connection, "late", due="-1 min")

    before = claim(connection, cursor)
    clock.now += due_cursor.FULL_LOOK_INTERVAL.total_seconds()

    assert (before, claim(connection, cursor)) == ([], ["late"])


def test_what_was_committed_a_moment_late_is_found_at_once(connection):
    cursor = DueCursor()
    put(connection, "first")
    claim(connection, cursor)
    put(connection, "late", due="-1 s")

    assert claim(connection, cursor) == ["late"]


def test_what_was_committed_late_is_looked_for_the_more_seldom_the_longer_that_takes(clock):
    cursor, moment = DueCursor(clock), datetime(2026, 1, 1, tzinfo=UTC)
    went_back = []
    for _ in range(200):
        for look in cursor.looks():
            clock.now += 0.02 if look.since is None or moment - look.since == due_cursor.LATE else 0.01
            if look.since is not None:
                went_back.append(moment - look.since)
            cursor.found(
                look, [SimpleNamespace(due_at=moment, event=SimpleNamespace(source="s", type="t"))], 50
            )

    late = [back == due_cursor.LATE for back in went_back]
    assert late[:5] == [True] * 5, "a tenth of a second in advance"
    spent = [0.02 if is_late else 0.01 for is_late in late]
    assert 0.03 < 0.02 * sum(late[10:]) / sum(spent[10:]) < 0.07, "a twentieth of the time"


def test_look_that_finds_nothing_does_not_make_the_next_one_a_full_one(connection, clock):
    cursor = DueCursor(clock)
    put(connection, "first")
    claim(connection, cursor)
    clock.now += due_cursor.FULL_LOOK_INTERVAL.total_seconds()
    claim(connection, cursor)

    assert [look.since is None for look in cursor.looks()] == [False]


def test_full_looks_that_take_long_are_seldom(clock):
    looks = Paced(due_cursor.FULL_LOOK_INTERVAL, clock)
    looks.begin()
    clock.now += 0.5
    looks.end()

    begun = []
    for seconds in (5, 2, 2):
        clock.now += seconds
        begun.append(looks.begin())

    assert begun == [False, False, True]


def test_look_that_a_server_held_up_does_not_put_off_the_next_for_long(clock):
    looks = Paced(timedelta(0), clock)
    looks.begin()
    clock.now += 600
    looks.end()

    begun = []
    for seconds in (14, 2):
        clock.now += seconds
        begun.append(looks.begin())

    assert begun == [False, True]


def test_look_that_failed_is_made_again_at_once(clock):
    looks = Paced(timedelta(seconds=5), clock)
    looks.begin()
    clock.now += 2

    assert looks.begin()


def test_claim_of_what_is_behind_a_crowd_says_that_there_is_more(connection):
    crowd(connection)
    put(connection, "other", type_="invoice.sent")
    cursor, planner = DueCursor(), Planner(Plan("credit"))

    looks = [claiming.claim(connection, planner, cursor=cursor) for _ in range(4)]

    assert [(len(look.runs), look.is_more) for look in looks] == [
        (50, True),
        (1, True),
        (50, True),
        (20, False),
    ]


def test_sweep_passes_over_what_was_not_due_a_moment_ago(connection, clock):
    mark = SweepMark(clock)
    put(connection, "first")
    claim(connection, DueCursor())
    looks = [due_rows.is_anything_due(connection, mark)]
    put(connection, "now")
    looks.append(due_rows.is_anything_due(connection, mark))
    claim(connection, DueCursor())
    put(connection, "early", due="-1 min")
    looks.append(due_rows.is_anything_due(connection, mark))
    clock.now += due_cursor.FULL_LOOK_INTERVAL.total_seconds()
    looks.append(due_rows.is_anything_due(connection, mark))

    assert looks == [False, True, False, True]


def test_entries_that_a_snapshot_keeps_from_vacuum_are_not_walked(connection, database_url):
    with psycopg.connect(database_url) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM hookonce.event_states")
        connection.execute(HANDLED)
        connection.execute("DELETE FROM hookonce.queue")
        put(connection, "now")
        (since,) = connection.execute("SELECT min(due_at) FROM hookonce.queue").fetchone()

        read = [claiming.pages_read(connection, since) for since in (None, since)]

    assert read[0] > 10 * read[1]


def test_cursor_looks_from_the_beginning_first():
    assert [look.since for look in DueCursor().looks()] == [None]


def test_what_a_paused_source_left_before_the_cursor_is_parked_all_the_same(connection, clock):
    cursor = DueCursor(clock)
    put(connection, "first")
    claim(connection, cursor)
    put(connection, "early", due="-1 min")
    pauses.pause(connection, "source", "stripe", "test")

    claim(connection, cursor)

    assert connection.execute(PARKED).fetchall() == [("early", "source:stripe")]


def test_parking_passes_over_what_lies_before_a_time(connection):
    put(connection, "early", due="-1 min")
    put(connection, "late")
    pauses.pause(connection, "source", "stripe", "test")
    (since,) = connection.execute("SELECT max(due_at) FROM hookonce.queue").fetchone()

    parked = [parking.park_rows(connection, since), parking.park_rows(connection)]

    assert parked == [1, 1]


def test_where_to_park_is_not_walked_again_and_again(connection, clock, monkeypatch):
    asked = []

    def slow(_connection, since):
        asked.append(since)
        clock.now += 2
        return 0

    monkeypatch.setattr(parking, "park_rows", slow)
    cursor = DueCursor(clock)
    put(connection, "first")
    claim(connection, cursor)
    pauses.pause(connection, "source", "stripe", "test")
    for _ in range(3):
        claim(connection, cursor)

    assert asked == [None, cursor.since, cursor.since]
