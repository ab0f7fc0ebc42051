"""What handlers write is kept with their attempts: done, failed, put off; and is dropped with bodies."""

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from hookonce import GiveUp, RetryLater
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.maintenance import erasure, partitions
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.store import store
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.kept_lines import keeping_lines
from tests.support.new_event import new_event

log = logging.getLogger("shop")


@pytest.fixture
def keeps_lines():
    """Have this process keep what its handlers log."""
    with keeping_lines():
        yield


def logs(inbox, event=1):
    found = event_details.detail(inbox.connection, event, inbox.settings.keyring).with_content()
    return [(each.cycle, each.attempt, [line.text for line in each.lines]) for each in found.logs]


def shared_logs(inbox, event):
    """The lines of an event's batches, as its page has them at its end and as it goes on, each with the first event."""
    keyring = inbox.settings.keyring
    ways = [
        event_details.detail(inbox.connection, event, keyring, goes_on=goes_on).with_content()
        for goes_on in (False, True)
    ]
    whole, going_on = (
        [(each.batch, [line.text for line in each.lines]) for each in way.logs] for way in ways
    )
    assert going_on[-1:] == whole[-1:]
    return whole


def test_each_attempt_keeps_what_its_handler_logged(inbox, keeps_lines):  # noqa: ARG001
    tries = []

    def handler(event, tx):  # noqa: ARG001
        tries.append(1)
        log.info("try %s", len(tries))
        if len(tries) == 1:
            raise RetryLater(0)
        if len(tries) == 2:
            raise ValueError("no")

    inbox.on(handler, attempts=3, backoff=(timedelta(0), timedelta(0)))
    inbox.deliver("a")

    for _ in range(3):
        inbox.work()

    assert logs(inbox) == [(1, 1, ["try 1"]), (1, 1, ["try 2"]), (1, 2, ["try 3"])]


def test_nothing_is_written_where_nothing_is_logged(inbox, keeps_lines):  # noqa: ARG001
    inbox.on(lambda *_: None)
    inbox.deliver("a")

    inbox.work()

    assert inbox.rows("SELECT count(*) FROM hookonce.run_logs") == [(0,)]


def test_lines_go_with_the_bodies_of_their_day(inbox, keeps_lines):  # noqa: ARG001
    inbox.on(lambda *_: log.info("told"))
    inbox.deliver("a")
    inbox.work()
    day = timedelta(days=1)
    kept = Retention(30 * day, 2 * day, day, day)

    passed = [list(RetentionPass(kept).steps(inbox.connection)) and logs(inbox)]
    inbox.connection.execute("UPDATE hookonce.run_logs SET received_at = now() - interval '4 days'")
    passed.append(list(RetentionPass(kept).steps(inbox.connection)) and logs(inbox))

    assert passed == [[(1, 1, ["told"])], []]


def test_lines_stay_with_the_bodies_of_a_day_that_is_needed(inbox, keeps_lines):  # noqa: ARG001
    def handler(*_):
        log.info("told")
        raise RetryLater(60)

    inbox.on(handler)
    inbox.deliver("a")
    inbox.work()
    connection, day = inbox.connection, timedelta(days=1)
    old = (datetime.now(UTC) - 4 * day).date()
    first = partitions.day_bounds(old).first
    partitions.make_partition(connection, old)
    for table in ("queue", "run_logs"):
        connection.execute(f"UPDATE hookonce.{table} SET received_at = %s", [first])  # noqa: S608
    keeping = RetentionPass(Retention(30 * day, 2 * day, day, day))

    list(keeping.steps(connection))

    assert (len(keeping.done.needed), logs(inbox)) == (1, [(1, 1, ["told"])])


def test_secrets_are_masked_and_lines_sealed_as_bodies_are(inbox, keeps_lines):  # noqa: ARG001
    environ = {"DATABASE_URL": inbox.settings.database_url, "REDIS_URL": inbox.settings.redis_url}
    environ |= {"HOOKONCE_CONFIG": "/dev/null", "HOOKONCE_SECRET__STRIPE": "whsec_abcdefgh"}
    inbox.settings = replace(load_settings(environ), keyring=Keyring([bytes(32)]))
    inbox.on(lambda *_: log.info("GET /?key=whsec_abcdefgh"))
    store(inbox.connection, [sealed(new_event("a"), inbox.settings.keyring)])

    inbox.work()

    assert logs(inbox) == [(1, 1, ["GET /?key=[secret]"])]
    ((kept,),) = inbox.rows("SELECT lines FROM hookonce.run_logs")
    assert b"GET" not in kept


def test_source_that_keeps_no_bodies_keeps_no_lines(inbox, keeps_lines):  # noqa: ARG001
    inbox.on(lambda *_: log.info("told"))
    inbox.deliver("a")
    inbox.connection.execute("UPDATE hookonce.events SET keep_body = false")

    inbox.work()

    assert inbox.rows("SELECT status FROM hookonce.run_states") == [("done",)]
    assert logs(inbox) == []


def telling(events, tx):  # noqa: ARG001
    for event in events:
        log.info("crediting %s", event.event_id)


def on_batches(inbox, handler):
    inbox.on(handler, batch=BatchSize(10, timedelta(0)))


@pytest.mark.parametrize("keys", [(), (bytes(32),)], ids=["open", "sealed"])
def test_lines_of_a_batch_are_kept_once_and_shown_with_each_of_its_events(inbox, keys, keeps_lines):  # noqa: ARG001
    inbox.settings = replace(inbox.settings, keyring=Keyring(keys))
    on_batches(inbox, telling)
    store(inbox.connection, [sealed(new_event(name), inbox.settings.keyring) for name in "abc"])

    inbox.work()

    lines = ["crediting a", "crediting b", "crediting c"]
    assert [shared_logs(inbox, event) for event in (1, 2, 3)] == [
        [(None, lines)],
        [(1, lines)],
        [(1, lines)],
    ]
    assert inbox.rows(
        "SELECT count(*) FILTER (WHERE octet_length(lines) > 60), count(*) FROM hookonce.run_logs"
    ) == [(1, 3)]


def test_handler_sees_no_number_that_the_lines_before_it_were_given(inbox, keeps_lines):  # noqa: ARG001
    seen = []

    def handler(_, tx):
        log.info("told")
        with suppress(DBAPIError), tx.begin_nested():
            seen.append(tx.execute(text("SELECT lastval()")).scalar())

    inbox.on(handler)
    inbox.deliver("a", "b", "c")

    inbox.work()

    assert len(logs(inbox, 3)) == 1
    assert not seen


def test_each_half_of_a_batch_that_fails_keeps_what_it_wrote(inbox, keeps_lines):  # noqa: ARG001
    def handler(events, tx):
        telling(events, tx)
        if any(event.event_id == "c" for event in events):
            raise GiveUp("no")

    on_batches(inbox, handler)
    inbox.deliver("a", "b", "c", "d")

    while inbox.work():
        pass

    every = ["crediting a", "crediting b", "crediting c", "crediting d"]
    assert shared_logs(inbox, 2) == [(1, every), (1, every[:2])]
    assert shared_logs(inbox, 4) == [(1, every), (3, every[2:]), (None, every[3:])]


def test_page_says_where_the_lines_of_a_batch_went(inbox, keeps_lines):  # noqa: ARG001
    on_batches(inbox, telling)
    inbox.deliver("a", "b")
    inbox.work()
    inbox.connection.execute("DELETE FROM hookonce.run_logs WHERE event = 1")

    (found,) = event_details.detail(inbox.connection, 2, inbox.settings.keyring).with_content().logs

    assert (found.lines, found.unreadable) == ([], "they went with event 1")


@pytest.mark.parametrize("keys", [(), (bytes(32),)], ids=["open", "sealed"])
def test_lines_of_a_batch_are_erased_with_any_of_its_events(inbox, keys, keeps_lines):  # noqa: ARG001
    inbox.settings = replace(inbox.settings, keyring=Keyring(keys))
    on_batches(inbox, telling)
    store(inbox.connection, [sealed(new_event(name), inbox.settings.keyring) for name in "abc"])
    inbox.work()

    erasure.erase(inbox.connection, [2], "somebody", inbox.settings.keyring)

    assert inbox.rows("SELECT event FROM hookonce.run_logs") == [(3,)]
    assert shared_logs(inbox, 3) == [(1, [])]


def test_batch_with_an_event_whose_source_keeps_no_bodies_keeps_no_lines(inbox, keeps_lines):  # noqa: ARG001
    on_batches(inbox, telling)
    inbox.deliver("a", "b")
    inbox.connection.execute("UPDATE hookonce.events SET keep_body = false WHERE id = 1")

    inbox.work()

    assert [row[2] for row in inbox.runs()] == ["done", "done"]
    assert logs(inbox) == logs(inbox, 2) == []
