"""What the ledger tells of workers: whose report counts, and which transactions hold vacuum back."""

import uuid
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import limit_gate
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.worker_slots import SlotReport
from tests.support import desk
from tests.support.desk import soon
from tests.support.waiting import until

__all__ = ["soon"]


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@contextmanager
def reported(connection, database_url, *attempts):
    """Report attempts beside one that is named; go on when it is, so that whoever is to be named is by now."""
    with desk.waiting(database_url) as backend:
        desk.report(connection, *attempts, ("yardstick", 2, backend))
        until(lambda: "yardstick" in named(connection))
        yield


def named(connection):
    return [each.handler for each in worker_slots.long_transactions(connection)]


@pytest.mark.parametrize(("seconds", "count"), [(29, 1), (31, 0)])
def test_worker_is_listed_until_its_report_is_half_a_minute_old(connection, seconds, count):
    desk.report(connection)
    desk.age(connection, seconds)

    assert len(worker_slots.workers(connection)) == count


@pytest.mark.parametrize(("seconds", "names"), [(29, ["new", "old"]), (31, ["new"])])
def test_report_of_another_forgets_who_is_gone(connection, seconds, names):
    desk.report(connection, name="old")
    desk.age(connection, seconds)

    desk.report(connection, name="new")

    rows = connection.execute("SELECT name FROM hookonce.worker_slots ORDER BY name").fetchall()
    assert [name for (name,) in rows] == names


def test_report_waits_for_nobody_who_reports_at_the_same_time(connection, database_url):
    desk.report(connection, name="back")
    desk.age(connection, 31)
    with psycopg.connect(database_url) as other:
        other.execute("UPDATE hookonce.worker_slots SET seen_at = now()")
        connection.execute("SET lock_timeout = '2 s'")

        desk.report(connection, name="new")

    assert {each.name for each in worker_slots.workers(connection)} == {"back", "new"}


def test_report_takes_the_place_of_the_one_before(connection):
    worker = uuid.uuid4()
    for busy in (1, 4):
        worker_slots.report(connection, worker, "host:1", SlotReport(8, busy, busy // 2), [])

    (each,) = worker_slots.workers(connection)
    assert (each.name, each.slots, each.busy, each.lost) == ("host:1", 8, 4, 2)


@pytest.mark.parametrize(("slots", "count"), [(1, 0), (2, 1)])
def test_worker_that_runs_one_at_a_time_is_not_listed(connection, slots, count):
    desk.report(connection, slots=slots)

    assert len(worker_slots.workers(connection)) == count


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("how", "is_named"),
    [({}, True), ({"writes": False}, False), ({"aborts": True}, False)],
    ids=["wrote", "has not written", "has failed"],
)
def test_transaction_that_waits_is_named_if_it_wrote_and_may_commit(connection, database_url, how, is_named):
    with (
        desk.waiting(database_url, **how) as pid,
        reported(connection, database_url, ("one", 1, pid)),
    ):
        assert ("one" in named(connection)) == is_named


@pytest.mark.usefixtures("soon")
def test_transaction_that_is_at_a_statement_is_not_named(connection, database_url):
    with psycopg.connect(database_url) as busy:
        busy.execute("SELECT pg_current_xact_id()")
        busy.pgconn.send_query(b"SELECT pg_sleep(60)")
        try:
            with reported(connection, database_url, ("one", 1, busy.info.backend_pid)):
                assert named(connection) == ["yardstick"]
        finally:
            busy.cancel_safe()
            busy.close()


@pytest.mark.usefixtures("soon")
def test_transaction_of_another_database_is_not_named(connection, database_url, fresh_database):
    with (
        fresh_database() as elsewhere,
        desk.waiting(elsewhere) as pid,
        reported(connection, database_url, ("one", 1, pid)),
    ):
        assert named(connection) == ["yardstick"]


@pytest.mark.usefixtures("soon")
def test_transaction_that_began_after_the_report_may_be_of_another_attempt(connection, database_url):
    with psycopg.connect(database_url) as kept:
        desk.report(connection, ("one", 1, kept.info.backend_pid))
        kept.execute("SELECT pg_current_xact_id()")

        with reported(connection, database_url):
            assert named(connection) == ["yardstick"]


@pytest.mark.usefixtures("soon")
def test_transactions_that_wait_are_named_the_longest_first(connection, database_url):
    with desk.waiting(database_url) as first, desk.waiting(database_url) as second:
        desk.report(connection, ("second", 2, second), ("first", 1, first), ("without", 3, None))
        until(lambda: len(named(connection)), 2)
        found = worker_slots.long_transactions(connection)

    assert [(each.handler, each.event) for each in found] == [("first", 1), ("second", 2)]
    assert found[0].seconds > found[1].seconds > worker_slots.LONG_AFTER.total_seconds()


@pytest.mark.parametrize(("after", "is_named"), [(0.1, True), (60, False)])
def test_transaction_is_named_once_it_has_waited_long(connection, database_url, monkeypatch, after, is_named):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with desk.waiting(database_url) as pid, reported(connection, database_url, ("one", 1, pid)):
        monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(seconds=after))

        assert ("one" in named(connection)) == is_named


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("gone_after", "is_named"), [(30, True), (0, False)])
def test_transaction_is_named_as_long_as_its_worker_is_there(
    connection, database_url, monkeypatch, gone_after, is_named
):
    with desk.waiting(database_url) as pid, reported(connection, database_url, ("one", 1, pid)):
        monkeypatch.setattr(worker_slots, "GONE_AFTER", timedelta(seconds=gone_after))

        assert ("one" in named(connection)) == is_named


@pytest.fixture
def stranger(connection, database_url):
    with desk.stranger(connection, database_url) as url, connections.connect(url) as other:
        yield other


@pytest.mark.usefixtures("soon")
def test_role_that_sees_no_sessions_names_none_and_lists_the_rest(connection, database_url, stranger):
    with reported(connection, database_url):
        assert worker_slots.long_transactions(stranger) == []
        assert worker_slots.workers(stranger) == worker_slots.workers(connection) != []


def test_suspects_are_counted_by_handler(connection):
    desk.suspects(connection, "shop.mail", 2)
    desk.suspects(connection, "shop.credit", 3)

    assert worker_slots.suspects(connection) == {"shop.credit": 3, "shop.mail": 2}


def test_rate_tells_for_how_long_its_times_are_given_away(connection):
    desk.wait_for_rate(connection, "shop.mail", 5)
    desk.wait_for_place(connection, "shop.credit", 2)

    delays = limit_gate.delays(connection)

    assert list(delays) == ["shop.mail"]
    assert timedelta(seconds=20) < delays["shop.mail"] <= timedelta(seconds=30)


def test_rate_that_has_caught_up_delays_nothing(connection):
    desk.wait_for_rate(connection, "shop.mail", 5)
    connection.execute("UPDATE hookonce.limits SET head = head - interval '31 s'")

    assert limit_gate.delays(connection) == {}
