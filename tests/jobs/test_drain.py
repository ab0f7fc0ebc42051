import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
import redis
from inbox import effect
from psycopg.rows import dict_row
from sqlalchemy import text

from jobs import GiveUp, RetryLater
from jobs import drain as drains

ROOT = Path(__file__).parents[2]


def test_drain_runs_every_handler_of_an_event_once(desk):
    def second(event, tx):
        effect(event, tx)

    desk.on(effect)
    desk.on(second)
    desk.deliver("a", "b")

    assert desk.work() == 4
    assert desk.effects() == ["a", "a", "b", "b"]
    assert desk.work() == 0


def test_drain_goes_on_with_whatever_is_due_after_the_events_that_rang(desk):
    desk.on(effect)
    _, second = desk.deliver("a", "b")

    desk.work([second])

    assert desk.effects() == ["a", "b"]


def test_handler_gets_the_event_as_it_was_sent(desk):
    seen = []
    desk.on(lambda event, _: seen.append(event))
    desk.deliver(
        "evt_1", body=b'{"id": "evt_1", "type": "invoice.paid", "n": 1}', headers='{"user-agent": "Stripe"}'
    )

    desk.work()

    (event,) = seen
    assert (event.event_id, event.source, event.provider, event.type) == (
        "evt_1",
        "stripe",
        "stripe",
        "invoice.paid",
    )
    assert (event.attempt, event.repeat_of, event.headers) == (1, None, {"user-agent": "Stripe"})
    assert event.raw == b'{"id": "evt_1", "type": "invoice.paid", "n": 1}'
    assert event.data["n"] == 1


def test_handler_result_is_stored_with_the_run(desk):
    desk.on(lambda *_: {"credited": True})
    desk.deliver("a")

    desk.work()

    assert desk.rows("SELECT status, result FROM runs") == [("done", {"credited": True})]


@pytest.mark.parametrize("result", [object(), float("nan"), {1: {2}}], ids=["object", "nan", "set"])
def test_handler_result_that_is_no_json_is_a_failed_attempt(desk, result):
    desk.on(lambda *_: result, attempts=1)
    desk.deliver("a")

    desk.work()

    assert desk.rows("SELECT status, result FROM runs") == [("dead", None)]
    assert "handler returns None or JSON" in desk.rows("SELECT error FROM failures")[0][0]


def test_failed_attempt_leaves_no_effect_and_is_tried_again(desk):
    def shaky(event, tx):
        effect(event, tx)
        if event.attempt < 3:
            raise RuntimeError("not yet")

    desk.on(shaky)
    desk.deliver("a")

    assert desk.work() == 3
    assert desk.effects() == ["a"]
    assert desk.runs() == [("a", "shaky", "done", 3)]
    assert desk.rows("SELECT attempt, split_part(error, ' (', 1) FROM failures ORDER BY id") == [
        (1, "RuntimeError: not yet"),
        (2, "RuntimeError: not yet"),
    ]


def test_failure_names_the_line_of_the_handler_and_no_line_of_a_library(desk):
    def broken(*_):
        json.loads("no")

    desk.on(broken, attempts=1)
    desk.deliver("a")

    desk.work()

    line = broken.__code__.co_firstlineno + 1
    assert desk.rows("SELECT error FROM failures")[0][0].endswith(f"test_drain.py:{line})")


def test_savepoint_left_open_is_committed_and_does_not_reach_the_next(desk):
    def careless(event, tx):
        effect(event, tx)
        nested.append(tx.in_nested_transaction())
        tx.begin_nested()

    nested = []
    desk.on(careless)
    desk.deliver("a", "b", "c")

    desk.work()

    assert desk.effects() == ["a", "b", "c"]
    assert nested == [False] * 3


def test_handler_finds_what_the_one_before_has_committed(desk):
    def counting(event, tx):
        effect(event, tx)
        seen.append(desk.effects())

    seen = []
    desk.on(counting)
    desk.deliver("a", "b")

    desk.work()

    assert seen == [[], ["a"]]


def test_effect_that_breaks_a_deferred_constraint_is_a_failed_attempt(desk):
    desk.connection.execute("CREATE TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")

    def twice(event, tx):
        effect(event, tx)
        tx.execute(text("INSERT INTO once VALUES (1), (:n)"), {"n": 1 if event.event_id == "a" else 2})

    desk.on(twice, attempts=1)
    desk.deliver("a", "b", "c")

    desk.work()

    assert [row[2] for row in desk.runs()] == ["dead", "done", "dead"]
    assert desk.effects() == ["b"]


def test_run_is_dead_after_its_last_attempt(desk):
    def broken(*_):
        raise RuntimeError("no")

    desk.on(broken)
    desk.deliver("a")

    assert desk.work() == 3
    assert desk.runs() == [("a", "broken", "dead", 3)]
    assert desk.rows("SELECT status, due_at FROM events") == [("dead", None)]


def test_give_up_ends_a_run_at_once(desk):
    def hopeless(*_):
        raise GiveUp("no such customer")

    desk.on(hopeless)
    desk.deliver("a")

    assert desk.work() == 1
    assert desk.runs() == [("a", "hopeless", "dead", 1)]
    assert desk.rows("SELECT error FROM failures") == [("GiveUp: no such customer",)]


def test_retry_later_waits_without_counting(desk):
    def patient(*_):
        raise RetryLater(timedelta(hours=1))

    desk.on(patient)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "patient", "waiting", 0)]
    assert desk.rows("SELECT due_at > now() + interval '59 minutes' FROM events") == [(True,)]


def test_retry_later_may_ask_for_ages(desk):
    def patient(*_):
        raise RetryLater(timedelta.max)

    desk.on(patient)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "patient", "waiting", 0)]


def test_verdict_that_says_nothing_sensible_ends_its_run_and_no_other(desk):
    class Speechless(GiveUp):
        def __str__(self):
            raise ValueError

    class Never(RetryLater):
        def __init__(self):
            pass  # and so without a delay

    def hopeless(*_):
        raise Speechless

    def patient(*_):
        raise Never

    for handler in (hopeless, patient, effect):
        desk.on(handler, attempts=1)
    desk.deliver("a")

    assert desk.work() == 3
    assert desk.runs() == [
        ("a", "effect", "done", 1),
        ("a", "hopeless", "dead", 1),
        ("a", "patient", "dead", 1),
    ]


def test_one_failing_handler_does_not_keep_another_from_running(desk):
    def broken(*_):
        raise RuntimeError("no")

    desk.on(broken, attempts=1)
    desk.on(effect)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "broken", "dead", 1), ("a", "effect", "done", 1)]
    assert desk.effects() == ["a"]


@pytest.mark.parametrize("forbidden", ["commit", "rollback", "close"])
def test_handler_can_not_end_the_transaction_it_is_given(desk, forbidden):
    def meddler(event, tx):
        effect(event, tx)
        getattr(tx, forbidden)()

    desk.on(meddler, attempts=1)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "meddler", "dead", 1)]
    assert desk.effects() == []


@pytest.mark.parametrize(
    "statement",
    [
        *("COMMIT", "  commit", "ROLLBACK", "end;", "BEGIN", "abort", "start transaction"),
        *("/* so */ COMMIT", "-- so\nCOMMIT", ";COMMIT", "SELECT 1; COMMIT", "SELECT 1;\nrollback work ;"),
        "SELECT 1; COMMIT AND CHAIN",
    ],
)
def test_handler_can_not_end_its_transaction_by_sql(desk, statement):
    def meddler(event, tx):
        effect(event, tx)
        tx.exec_driver_sql(statement)

    desk.on(meddler, attempts=1)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "meddler", "dead", 1)]
    assert desk.effects() == []


@pytest.mark.parametrize(
    "statement",
    ["SELECT 'no; commit'", "DO $$ BEGIN NULL; END; $$", "SELECT 1; ROLLBACK TO mine", "SELECT 1;"],
)
def test_handler_may_use_words_that_end_no_transaction(desk, statement):
    def careful(event, tx):
        effect(event, tx)
        tx.exec_driver_sql("SAVEPOINT mine")
        tx.exec_driver_sql(statement)

    desk.on(careful)
    desk.deliver("a")

    desk.work()

    assert desk.effects() == ["a"]


def test_handler_may_use_savepoints(desk):
    def careful(event, tx):
        with tx.begin_nested() as savepoint:
            effect(event, tx)
            savepoint.rollback()
        effect(event, tx)

    desk.on(careful)
    desk.deliver("a")

    desk.work()

    assert desk.effects() == ["a"]


def test_handler_that_swallows_a_database_error_has_failed(desk):
    def swallower(_, tx):
        with contextlib.suppress(Exception):
            tx.execute(text("SELECT 1 / 0"))

    desk.on(swallower, attempts=1)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "swallower", "dead", 1)]


def test_error_of_a_statement_is_kept_without_its_parameters(desk):
    def careless(_, tx):
        tx.execute(text("INSERT INTO nowhere VALUES (:card)"), {"card": "4242-4242"})

    desk.on(careless, attempts=1)
    desk.deliver("a")

    desk.work()

    ((error,),) = desk.rows("SELECT error FROM failures")
    assert "INSERT INTO nowhere" in error
    assert "4242" not in error


class Unspeakable(BaseException):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "error", [SystemExit, MemoryError, RecursionError, asyncio.CancelledError, Unspeakable]
)
def test_handler_may_raise_anything(desk, error):
    def wild(*_):
        raise error

    desk.on(wild, attempts=1)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "wild", "dead", 1)]


def test_handler_is_cut_off_at_its_time_limit(desk):
    def slow(event, tx):
        effect(event, tx)
        with contextlib.suppress(Exception):
            time.sleep(30)

    desk.on(slow, attempts=1, timeout=timedelta(seconds=0.1))
    desk.on(effect)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "effect", "done", 1), ("a", "slow", "dead", 1)]
    assert "longer than 0.1 s" in desk.rows("SELECT error FROM failures")[0][0]
    assert desk.effects() == ["a"]


def test_handler_is_cut_off_inside_a_query(desk):
    def slow(_, tx):
        tx.execute(text("SELECT pg_sleep(30)"))

    desk.on(slow, attempts=1, timeout=timedelta(seconds=0.1))
    desk.deliver("a", "b")

    desk.work()

    assert desk.runs() == [("a", "slow", "dead", 1), ("b", "slow", "dead", 1)]


def test_stale_worker_can_not_finish_what_another_has_taken(desk):
    def overtaken(event, tx):
        effect(event, tx)
        desk.connection.execute("UPDATE runs SET token = gen_random_uuid()")

    desk.on(overtaken)
    desk.deliver("a")

    desk.work()

    assert desk.effects() == []
    assert desk.runs() == [("a", "overtaken", "running", 1)]


def test_drain_calls_for_help_when_more_is_due_than_a_batch(desk, redis_url, monkeypatch):
    monkeypatch.setattr(drains, "BATCH", 1)
    desk.on(effect)
    desk.deliver("a", "b")

    desk.work()

    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("rq:queue:hookonce") == 1


def test_worker_says_which_event_no_handler_takes(desk, caplog):
    desk.on(effect, pattern="invoice.*")
    desk.deliver("a", type="invoice.paid")
    (ignored,) = desk.deliver("b", type="charge.failed")

    with caplog.at_level(logging.INFO):
        desk.work()

    said = [each for each in caplog.records if each.getMessage() == "ignored"]
    assert [(each.event, each.source, each.type) for each in said] == [(ignored, "stripe", "charge.failed")]


def test_worker_runs_at_once_what_others_had_ignored(desk):
    desk.deliver("a")
    desk.work()
    desk.on(effect)

    desk.drains[0].wake_ignored()

    assert desk.effects() == ["a"]


def test_drain_over_its_budget_lets_go_and_rings(desk, redis_url, monkeypatch):
    monkeypatch.setattr(drains, "BUDGET", timedelta(seconds=0.05))

    def slow(event, tx):
        effect(event, tx)
        time.sleep(0.06)

    desk.on(slow)
    desk.deliver("a", "b", "c")

    assert desk.work() == 1
    assert [row[2:] for row in desk.runs()] == [("done", 1), ("waiting", 0), ("waiting", 0)]
    assert desk.rows("SELECT count(*) FROM events WHERE due_at <= now()") == [(2,)]
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("rq:queue:hookonce") == 1


def test_drain_asked_to_stop_finishes_one_attempt_and_lets_go_of_the_rest(desk):
    def stopper(event, tx):
        effect(event, tx)
        drains.stopping.set()

    desk.on(stopper)
    desk.deliver("a", "b")

    assert desk.work() == 1
    assert [row[2:] for row in desk.runs()] == [("done", 1), ("waiting", 0)]


def test_drain_goes_on_when_its_connection_was_cut(desk):
    desk.on(effect)
    desk.deliver("a")
    desk.work()
    desk.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname = current_database()"
    )
    desk.deliver("b")

    desk.work()
    desk.work()

    assert desk.effects() == ["a", "b"]


def test_drain_says_once_that_the_ledger_is_away(desk, caplog, monkeypatch):
    desk.on(effect)
    desk.work()
    monkeypatch.setattr(drains.claims, "claim", away)

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            desk.work()
        monkeypatch.undo()
        desk.work()

    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "the ledger is away",
        "the ledger is back",
    ]


def away(*_, **__):
    raise psycopg.OperationalError


def test_event_whose_body_was_dropped_is_dead_and_says_why(desk):
    desk.on(effect)
    desk.deliver("a")
    desk.connection.execute("DELETE FROM bodies")

    desk.work()

    assert desk.runs() == [("a", "effect", "dead", 1)]
    assert "dropped by retention" in desk.rows("SELECT error FROM failures")[0][0]


def test_idempotency_key_is_the_same_for_every_attempt_and_differs_by_handler(desk):
    def one(event, _):
        keys.append(event.idempotency_key)
        if event.attempt == 1:
            raise RuntimeError

    def two(event, _):
        keys.append(event.idempotency_key)

    keys = []
    desk.on(one)
    desk.on(two)
    desk.deliver("a")

    desk.work()

    assert len(keys) == 3
    assert len(set(keys)) == 2


def test_drain_does_not_let_quick_events_wait_for_slow_ones(desk):
    order = []

    def slow(event, _):
        order.append(event.event_id)
        desk.registry.note("slow", timedelta(seconds=1))

    def quick(event, _):
        order.append(event.event_id)

    desk.on(slow, pattern="slow")
    desk.on(quick, pattern="quick")
    desk.registry.note("slow", timedelta(seconds=1))
    for n in range(3):
        desk.deliver(f"slow-{n}", type="slow")
    desk.deliver(*[f"quick-{n}" for n in range(5)], type="quick")

    desk.work()

    assert order == [f"quick-{n}" for n in range(5)] + [f"slow-{n}" for n in range(3)]


@pytest.mark.parametrize(
    "statement",
    [
        "SET application_name = 'mine'",
        "SELECT set_config('a.b', 'x', false)",
        "SELECT pg_try_advisory_lock(1)",
        "/* why; a */ SET application_name = 'mine'",
        "SELECT 1; -- so\nRESET ALL",
        "PREPARE mine AS SELECT 1",
        "SELECT 1 INTO TEMP mine",
    ],
)
def test_handler_leaves_nothing_of_its_session_to_the_next(desk, statement):
    sessions = []

    def changer(_, tx):
        tx.execute(text(statement))
        sessions.append(tx.exec_driver_sql("SELECT pg_backend_pid()").scalar())

    desk.on(changer)
    desk.deliver("a", "b")

    desk.work()

    assert len(set(sessions)) == 2


def test_handler_leaves_nothing_of_its_transaction_to_the_next(desk):
    def serial(event, tx):
        if event.event_id == "a":
            tx.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        levels.append(tx.exec_driver_sql("SHOW transaction_isolation").scalar())

    levels = []
    desk.on(serial)
    desk.deliver("a", "b")

    desk.work()

    assert levels == ["serializable", "read committed"]


def test_handler_that_ended_its_transaction_gets_no_further_attempt(desk):
    def meddler(event, tx):
        effect(event, tx)
        tx.get_transaction().commit()

    desk.on(meddler)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "meddler", "dead", 1)]


def test_handler_that_ended_its_transaction_and_failed_gets_no_further_attempt(desk):
    def meddler(event, tx):
        effect(event, tx)
        tx.connection.driver_connection.execute("COMMIT")
        raise RuntimeError("after all")

    desk.on(meddler)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "meddler", "dead", 1)]


@pytest.mark.parametrize("block", [lambda driver: driver, lambda driver: driver.transaction()])
def test_handler_commits_nothing_by_a_block_of_the_driver(desk, block):
    def meddler(event, tx):
        driver = tx.connection.driver_connection
        with block(driver):
            driver.execute("INSERT INTO effects VALUES (%s)", [event.event_id])
        raise RuntimeError("after all")

    desk.on(meddler)
    desk.deliver("a")

    desk.work()

    assert desk.effects() == []
    assert desk.runs() == [("a", "meddler", "dead", 3)]


def test_handler_that_leaves_a_copy_open_does_not_hang_its_worker(desk):
    def leaver(_, tx):
        copies.append(tx.connection.driver_connection.cursor().copy("COPY effects FROM STDIN"))
        copies[-1].__enter__()

    copies = []
    desk.on(leaver, attempts=1)
    desk.on(effect)
    desk.deliver("a")

    desk.work()

    assert [row[2] for row in desk.runs()] == ["done", "dead"]
    for copy in copies:
        with contextlib.suppress(psycopg.Error):
            copy.__exit__(None, None, None)


@pytest.mark.parametrize(
    "statement",
    [
        "SET LOCAL search_path TO shop",
        "SET search_path TO shop",
        "SELECT set_config('search_path', 'shop', true)",
        "SET LOCAL ROLE pg_monitor",
    ],
)
def test_run_ends_in_the_ledger_wherever_its_handler_has_gone(desk, statement):
    desk.connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.events (LIKE events)")

    def mover(event, tx):
        effect(event, tx)
        tx.exec_driver_sql(statement)

    desk.on(mover)
    desk.deliver("a", "b")

    desk.work()

    assert desk.effects() == ["a", "b"]
    assert desk.runs() == [("a", "mover", "done", 1), ("b", "mover", "done", 1)]


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: tx.execution_options(stream_results=True),
        lambda tx: tx.execution_options(schema_translate_map={None: "shop"}),
        lambda tx: setattr(tx.connection.driver_connection, "row_factory", dict_row),
    ],
    ids=["stream_results", "schema_translate_map", "row_factory"],
)
def test_handler_leaves_nothing_of_its_options_to_the_next(desk, change):
    def changer(event, tx):
        effect(event, tx)
        if event.event_id == "a":
            change(tx)

    desk.on(changer)
    desk.deliver("a", "b")

    desk.work()
    desk.deliver("c")
    desk.work()

    assert [row[2:] for row in desk.runs()] == [("done", 1)] * 3


def test_handler_may_do_other_things_longer_than_the_server_lets_transactions_idle(desk):
    (database_name,) = desk.rows("SELECT current_database()")[0]
    desk.connection.execute(f'ALTER DATABASE "{database_name}" SET idle_in_transaction_session_timeout = 50')

    def slow(event, tx):
        effect(event, tx)
        time.sleep(0.2)

    desk.on(slow)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "slow", "done", 1)]


def test_failure_of_a_cut_connection_is_written_at_once(desk):
    def cutter(_, tx):
        tx.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    desk.on(cutter, attempts=1)
    desk.deliver("a")

    desk.work()

    assert desk.runs() == [("a", "cutter", "dead", 1)]


def test_error_without_end_is_kept_in_part(desk):
    def verbose(_event, _tx):
        raise ValueError("x" * 1_000_000)

    desk.on(verbose)
    desk.deliver("a")

    desk.work()

    kept = desk.rows("SELECT error FROM failures")[0][0]
    assert kept.startswith("ValueError: xxx")
    assert len(kept) < 2_000


def test_attempt_that_is_interrupted_leaves_nothing_to_the_next_job(desk):
    interrupted = []

    def once(event, tx):
        effect(event, tx)
        if not interrupted:
            interrupted.append(event)
            raise KeyboardInterrupt

    desk.on(once)
    desk.deliver("a")

    with pytest.raises(KeyboardInterrupt):
        desk.work()
    desk.deliver("b")
    desk.work()

    assert desk.effects() == ["b"]
    assert ("b", "once", "done", 1) in desk.runs()


def test_child_that_a_handler_forks_can_not_end_its_run(desk):
    def forker(event, tx):
        effect(event, tx)
        child = os.fork()
        if child == 0:
            raise SystemExit
        os.waitpid(child, 0)

    desk.on(forker)
    desk.deliver("a", "b")

    desk.work()

    assert desk.effects() == ["a", "b"]
    assert [row[2:] for row in desk.runs()] == [("done", 1), ("done", 1)]


def test_handler_that_nothing_ends_ends_with_its_process():
    code = """
import time
from datetime import timedelta
from jobs import alarm
alarm.GRACE = timedelta(seconds=0.2)
with alarm.Alarm() as clock, clock.limit(timedelta(seconds=0.1)):
    while True:
        try:
            time.sleep(10)
        except BaseException:
            pass
"""

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=20, check=False
    )

    assert done.returncode == 1
