"""What `hookonce doctor` says of workers: connections, slots that are lost, suspects, transactions that wait."""

import re
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import redis
from rq import Worker

from hookonce.jobs.children import CHILDREN as STARTED
from hookonce.jobs.claimer import STEP_CONNECTIONS
from hookonce.receiver.cli.doctor import slots
from hookonce.receiver.cli.doctor.slots import ALONE, BESIDES, CHILDREN, OF_CHILD, STEPS
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.worker_slots import WorkerSlots
from tests.support import desk
from tests.support.waiting import until

CHECKS = ("connections", "slots", "suspects", "transaction")


@pytest.fixture
def findings(inbox, rings, hookonce):  # noqa: ARG001
    """What doctor finds of workers: level and text by check."""

    def examine():
        examined = hookonce("doctor", "--json")
        assert examined.code == 0, examined.err
        return {
            row["check"]: (row["level"], row["text"]) for row in examined.documents if row["check"] in CHECKS
        }

    return examine


def worker(count):
    return WorkerSlots(name="host:1", slots=count, busy=0, lost=0, seen_at=datetime.now(UTC), seconds_ago=0)


@pytest.mark.parametrize(
    ("reported", "configured", "workers", "needed"),
    [
        ([], 1, 0, 0),
        ([], 1, 2, 2 * ALONE),
        ([], 16, 2, 2 * (16 + BESIDES)),
        ([worker(16)], 16, 1, 16 + BESIDES),
        ([worker(16), worker(4)], 1, 3, 16 + 4 + 2 * BESIDES + ALONE),
        ([worker(16), worker(4)], 16, 1, 16 + 4 + 2 * BESIDES),
    ],
)
def test_connections_are_enough_up_to_the_last_and_not_beyond(reported, configured, workers, needed):
    others = 7

    fits = slots.judge_connections(needed + others, others, reported, configured, workers)
    exceeds = slots.judge_connections(needed + others - 1, others, reported, configured, workers)

    assert (fits.level, exceeds.level) == ("ok", "warn")
    assert f"need {needed} connections, 7 others are open, of {needed + others}" in fits.text
    assert "raise max_connections" in exceeds.text


@pytest.mark.parametrize(
    ("reported", "besides", "needed"),
    [
        ([], {"has_steps": True}, 2 * (ALONE + STEPS)),
        ([worker(16)], {"has_steps": True}, 16 + BESIDES + ALONE + 2 * STEPS),
        ([worker(16)], {"suspects": 1}, 16 + BESIDES + ALONE + OF_CHILD),
        ([worker(16)], {"suspects": 900}, 16 + BESIDES + ALONE + CHILDREN * OF_CHILD),
        ([worker(16)], {"has_steps": True, "suspects": 1}, 16 + BESIDES + ALONE + OF_CHILD + 3 * STEPS),
        ([], {"suspects": 900}, 2 * ALONE),
    ],
)
def test_steps_and_the_children_that_run_suspects_need_connections_too(reported, besides, needed):
    found = slots.judge_connections(100, 0, reported, 1, 2, **besides)

    assert f"need {needed} connections" in found.text


def test_steps_need_as_many_connections_as_a_worker_keeps_for_them():
    assert STEPS == STEP_CONNECTIONS


def test_children_are_counted_up_to_as_many_as_a_supervisor_starts():
    assert CHILDREN == STARTED


def test_steps_that_the_ledger_holds_are_counted(findings, ledger):
    desk.report(ledger, slots=4)
    desk.suspects(ledger, "shop.credit", 1)
    ledger.execute(
        "INSERT INTO hookonce.steps (event, handler, name, state, owner) "
        "SELECT event, handler, 'charge', 'completed', gen_random_uuid() FROM hookonce.run_states"
    )

    assert f"may need {4 + BESIDES + OF_CHILD + 2 * STEPS} connections" in findings()["connections"][1]


def test_connections_of_a_server_are_those_that_are_not_reserved(findings, ledger):
    (most,) = ledger.execute("SHOW max_connections").fetchone()
    (reserved,) = ledger.execute("SHOW superuser_reserved_connections").fetchone()

    level, text = findings()["connections"]

    assert level == "ok"
    assert text.endswith(f"of {int(most) - int(reserved)}")


def test_slots_that_no_server_has_connections_for_are_warned_of(findings, ledger):
    desk.report(ledger, slots=10_000)

    level, text = findings()["connections"]

    assert level == "warn"
    assert f"workers may need {10_000 + BESIDES} connections" in text


def test_worker_of_this_inbox_is_no_other_and_one_of_another_inbox_is(ledger, database_url, fresh_database):
    every = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    named = {"application_name": "hookonce worker"}
    with (
        fresh_database() as elsewhere,
        psycopg.connect(database_url, **named),
        psycopg.connect(elsewhere, **named),
        ledger.transaction(),  # in which nobody's coming or going is seen
    ):
        _, others, _ = slots.connections(ledger)

        assert ledger.execute(every).fetchone() == (others + 1,)


def test_role_that_sees_no_sessions_counts_them_all_the_same(
    findings, ledger, stranger, database_url, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", stranger)
    with psycopg.connect(database_url), psycopg.connect(database_url):
        found = findings()

    assert int(re.search(r"(\d+) others", found["connections"][1])[1]) >= 3
    assert ledger.execute("SELECT 1").fetchone()


def test_role_that_sees_no_sessions_finds_lost_slots_and_suspects(
    findings, ledger, stranger, database_url, monkeypatch
):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    monkeypatch.setenv("DATABASE_URL", stranger)
    desk.suspects(ledger, "shop.credit", 2)
    with desk.waiting(database_url) as pid:
        desk.report(ledger, ("shop.credit", 1, pid), lost=1)
        until(lambda: worker_slots.long_transactions(ledger))

        assert findings().keys() == {"connections", "slots", "suspects"}


@pytest.fixture
def stranger(ledger, database_url):
    with desk.stranger(ledger, database_url) as url:
        yield url


def test_worker_that_only_redis_knows_runs_one_at_a_time(findings, ledger, rings, redis_url):
    desk.report(ledger, slots=4)
    before = findings()["connections"][1]
    with redis.Redis.from_url(redis_url) as client:
        for name in ("one", "two"):
            Worker(["hookonce"], connection=client, name=name).register_birth()

        after = findings()["connections"][1]

    assert rings() == 0
    assert f"may need {4 + BESIDES} connections" in before
    assert f"may need {4 + BESIDES + ALONE} connections" in after


def test_nothing_is_said_of_workers_that_are_well(findings, ledger):
    desk.report(ledger, slots=4, busy=4)

    assert findings().keys() == {"connections"}


def test_lost_slots_of_all_workers_are_summed(findings, ledger):
    desk.report(ledger, name="host:1", slots=16, lost=2)
    desk.report(ledger, name="host:2", slots=16, lost=1)

    level, text = findings()["slots"]

    assert level == "warn"
    assert text.startswith("3 lost")


@pytest.mark.parametrize(("seconds", "checks"), [(29, {"connections", "slots"}), (31, {"connections"})])
def test_worker_that_reports_no_more_has_lost_nothing(findings, ledger, seconds, checks):
    desk.report(ledger, lost=1)
    desk.age(ledger, seconds)

    assert findings().keys() == checks


def test_suspects_of_all_handlers_are_summed(findings, ledger):
    desk.suspects(ledger, "shop.credit", 2)
    desk.suspects(ledger, "shop.mail", 3)

    level, text = findings()["suspects"]

    assert (level, text.split()[0]) == ("warn", "5")


def test_transaction_that_wrote_and_waits_is_named_with_what_to_do(
    findings, ledger, database_url, monkeypatch
):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with desk.waiting(database_url) as pid, desk.waiting(database_url, writes=False) as reader:
        desk.report(ledger, ("shop.credit", 7, pid), ("shop.mail", 8, reader))
        until(lambda: worker_slots.long_transactions(ledger))

        level, text = findings()["transaction"]

    assert level == "warn"
    assert re.match(r"handler shop\.credit \(event 7\) wrote and waits .* open for \d+ s; .*tx='none'", text)


def test_handler_that_calls_itself_by_escapes_moves_no_terminal(
    hookonce, inbox, ledger, database_url, monkeypatch
):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with desk.waiting(database_url) as pid:
        desk.report(ledger, ("shop\x1b[2J", 7, pid))
        until(lambda: worker_slots.long_transactions(ledger))

        said = hookonce("doctor").out

    assert inbox.exists()
    assert b"handler shop\\x1b[2J (event 7)" in said


def test_limit_of_the_role_is_compared_where_it_is_the_tightest(database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE ROLE few_connections LOGIN CONNECTION LIMIT 3")
        connection.execute("SET SESSION AUTHORIZATION few_connections")

        found = slots.connections(connection)
        connection.rollback()

    assert found == (3, 0, "the CONNECTION LIMIT of role few_connections")
