import threading
from datetime import date, timedelta

import psycopg
import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.ledger.replay.events import replay
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import end_events
from tests.support.waiting import PATIENT, at_once

DAY = date(2031, 5, 6)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def test_partition_is_made_while_others_read_and_write_bodies(connection, database_url):
    with psycopg.connect(database_url) as other:
        other.execute("SELECT count(*) FROM hookonce.bodies")
        store(other, [new_event()])
        partitions.make_partition(connection, DAY)

    assert "bodies_20310506" in names(connection)


def test_partition_has_the_key_of_its_table(connection):
    partitions.make_partition(connection, DAY)
    insert = (
        "INSERT INTO hookonce.bodies VALUES (1, '2031-05-06 23:59:59+00', '', '{}', '', false) "
        "ON CONFLICT DO NOTHING"
    )

    assert [connection.execute(insert).rowcount for _ in range(2)] == [1, 0]


def test_partitions_are_made_once_by_many_at_one_moment(connection, database_url):
    def make():
        with connections.connect(database_url, **PATIENT) as own:
            barrier.wait()
            for ahead in range(5):
                partitions.make_partition(own, DAY + timedelta(days=ahead))
            finished.append(True)

    finished, barrier = [], threading.Barrier(4, timeout=20)
    at_once(*[make] * 4)

    assert len(finished) == 4
    assert len([name for name in names(connection) if name.startswith("bodies_2031")]) == 5


def test_day_stays_if_an_event_of_it_is_replayed_while_it_is_dropped(connection, monkeypatch):
    today = connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date").fetchone()[0]
    store(connection, [new_event()])
    events = end_events(connection, "done")
    is_needed = partitions._is_needed  # noqa: SLF001

    def look_before_the_replay(*arguments):
        monkeypatch.setattr(partitions, "_is_needed", is_needed)
        found = is_needed(*arguments)
        list(replay(connection, events, "a test", again=True))
        return found

    monkeypatch.setattr(partitions, "_is_needed", look_before_the_replay)

    assert partitions.drop_day(connection, today) is partitions.DropResult.NEEDED
    assert connection.execute("SELECT count(*) FROM hookonce.bodies").fetchone() == (1,)


def names(connection):
    rows = connection.execute(
        "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
        "WHERE inhparent = 'hookonce.bodies'::regclass"
    )
    return [row[0] for row in rows]
