"""What `/metrics` says of workers, and of what holds handlers up."""

from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookonce import approximate as declare
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.reasons import REASONS
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.redis import approximate
from tests.support import desk
from tests.support.waiting import until

ODD = 'shop."credit"\\n{}\n'
LAST = "hookonce_oldest_event_seconds"
"""What is read last: a page without it has broken off."""


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@contextmanager
def application(database_url, redis_url):
    app = create_app(Settings(database_url, redis_url, {}, desk="door"))
    try:
        yield app
    finally:
        app.extensions["hookonce"].close()


def scraped(database_url, redis_url):
    """All samples of a fresh page by name: their values by their only label, or by nothing."""
    with application(database_url, redis_url) as app:
        page = app.test_client().get("/metrics").text
    assert f"# TYPE {LAST} gauge" in page
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            label = next(iter(sample.labels.values())) if len(sample.labels) == 1 else None
            found.setdefault(sample.name, {})[label] = sample.value
    return found


@pytest.fixture
def scrape(database_url, redis_url):
    return lambda: scraped(database_url, redis_url)


def test_slots_of_all_workers_are_summed_by_state(scrape, connection):
    desk.report(connection, name="host:1", slots=16, busy=9, lost=2)
    desk.report(connection, name="host:2", slots=4, busy=1)
    desk.report(connection, name="host:3", slots=1, busy=1)

    assert scrape()["hookonce_slots"] == {"busy": 10, "free": 8, "lost": 2}


@pytest.mark.parametrize(("seconds", "busy"), [(29, 3), (31, 0)])
def test_slots_of_a_worker_that_reports_no_more_are_not_summed(scrape, connection, seconds, busy):
    desk.report(connection, busy=3)
    desk.age(connection, seconds)

    assert scrape()["hookonce_slots"]["busy"] == busy


def test_nothing_is_said_of_handlers_that_nothing_holds_up(scrape):
    assert not scrape().keys() & {
        "hookonce_suspects",
        "hookonce_long_transaction_seconds",
        "hookonce_waiting_for_limit",
        "hookonce_rate_delay_seconds",
        "hookonce_breaker_open",
        "hookonce_batches_total",
        "hookonce_batch_parts_waiting",
    }


def test_suspects_are_counted_by_handler(scrape, connection):
    desk.suspects(connection, ODD, 2)
    desk.suspects(connection, "shop.mail", 3)

    assert scrape()["hookonce_suspects"] == {ODD: 2, "shop.mail": 3}


def test_what_is_parked_is_counted_by_its_reason(scrape, connection):
    desk.suspects(connection, ODD, 2)

    assert scrape()["hookonce_parked"] == {each.word: 0 for each in REASONS if each.word} | {"suspect": 2}


def test_transaction_that_wrote_and_waits_is_the_oldest_of_its_handler(
    scrape, connection, database_url, monkeypatch
):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with desk.waiting(database_url) as first:
        desk.report(connection, (ODD, 1, first))
        until(lambda: [1 for age in ages(connection) if age > 1])
        with desk.waiting(database_url) as second, desk.waiting(database_url, writes=False) as reader:
            desk.report(connection, (ODD, 2, second), ("shop.mail", 3, reader))
            until(lambda: len(ages(connection)) == 2)
            oldest, _ = ages(connection)

            told = scrape()["hookonce_long_transaction_seconds"]

    assert told.keys() == {ODD}
    assert told[ODD] > oldest


def ages(connection):
    return [each.seconds for each in worker_slots.long_transactions(connection)]


def test_runs_that_wait_for_a_limit_and_a_rate_are_told(scrape, connection):
    desk.wait_for_place(connection, ODD, 2)
    desk.wait_for_rate(connection, "shop.sms", 5)

    told = scrape()

    assert told["hookonce_waiting_for_limit"] == {ODD: 2}
    assert told["hookonce_rate_delay_seconds"].keys() == {"shop.sms"}
    assert 20 < told["hookonce_rate_delay_seconds"]["shop.sms"] <= 30


def test_breaker_is_one_from_its_limit_on(scrape, connection):
    desk.fail_in_a_row(connection, ODD, 5, limit=5)
    desk.fail_in_a_row(connection, "shop.mail", 4, limit=5)

    assert scrape()["hookonce_breaker_open"] == {ODD: 1, "shop.mail": 0}


def test_batches_are_counted_with_their_events_halvings_and_parts(
    scrape, connection, database_url, redis_url
):
    desk.halve(Settings(database_url, redis_url, {}), connection, ODD, "no such place")

    told = scrape()

    assert {name: told[name] for name in told if name.startswith("hookonce_batch")} == {
        "hookonce_batches_total": {ODD: 1},
        "hookonce_batch_events_total": {ODD: 3},
        "hookonce_batch_halvings_total": {ODD: 1},
        "hookonce_batch_parts_waiting": {ODD: 2},
    }


@pytest.fixture
def stranger(connection, database_url):
    with desk.stranger(connection, database_url) as url:
        yield url


def test_role_that_sees_no_sessions_scrapes_the_rest(
    connection, database_url, redis_url, stranger, monkeypatch
):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with desk.waiting(database_url) as pid, psycopg.connect(database_url, autocommit=True) as admin:
        desk.report(connection, ("shop.credit", 7, pid))
        until(lambda: worker_slots.long_transactions(admin))

        told = scraped(stranger, redis_url)

    assert told["hookonce_slots"]["busy"] == 3
    assert "hookonce_long_transaction_seconds" not in told


def test_approximate_sets_tell_how_full_they_are(scrape, redis_url):
    approximate.use(redis_url)
    declare("clicks_of_metrics", keep="1h", most=100).mark(["a", "b"])
    approximate.use("")

    assert scrape()["hookonce_approximate_fill"] == {"clicks_of_metrics": 0.02}


def test_keys_in_progress_are_summed_by_operation_without_tenant_and_actor(scrape, connection):
    for scope in ('["pay", "acct_1"]', '["pay", "acct_2"]', "sha256:" + "0" * 64, "7"):
        connection.execute(
            "INSERT INTO hookonce.idempotency (scope, key, fingerprint, state) VALUES (%s, 'k', '', 'in_progress')",
            [scope],
        )

    assert scrape()["hookonce_operations_in_progress"] == {"pay": 2, "": 1, "api": 1}
