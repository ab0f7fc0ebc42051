"""What a handler commits itself stays, whatever it does next: its run is dead at once, and nothing is done twice."""

import contextlib
import time
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from hookonce import GiveUp, RetryLater
from tests.support.inbox import effect

HIDDEN = [
    "select 1; END; BEGIN",
    "select 1; COMMIT/**/; BEGIN",
    "select 1; COMMIT AND CHAIN -- x",
    "select 1; END AND CHAIN",
    "/* /* */ select 1 */ COMMIT AND CHAIN",
    "-- x\rCOMMIT AND CHAIN /*\n select 1 */",
]
PLAIN = ["COMMIT", "COMMIT AND CHAIN", "COMMIT; BEGIN", "end"]
WITH_ROLLBACKS = ["COMMIT; BEGIN; ROLLBACK; BEGIN"]


def by_sqlalchemy(statement):
    return lambda tx: tx.exec_driver_sql(statement)


def by_the_driver(statement):
    return lambda tx: tx.connection.driver_connection.execute(statement)


def by_a_cursor(statement):
    return lambda tx: psycopg.ClientCursor(tx.connection.driver_connection).execute(statement)


def by_a_pipeline(tx):
    driver = tx.connection.driver_connection
    with driver.pipeline():
        driver.execute("COMMIT AND CHAIN")


def by_libpq(tx):
    tx.connection.driver_connection.pgconn.exec_(b"COMMIT AND CHAIN")


def by_the_cursor_of_a_result(tx):
    tx.execute(text("SELECT 1")).cursor.execute("COMMIT AND CHAIN")


def by_the_driver_of_a_result(tx):
    tx.execute(text("SELECT 1")).cursor.connection.execute("COMMIT AND CHAIN")


def by_a_driver_asked_for_in_an_error(tx):
    with contextlib.suppress(Exception), tx.begin_nested():
        try:
            tx.execute(text("SELECT 1 / 0"))
        except Exception:
            driver = tx.connection.driver_connection
            raise
    driver.execute("COMMIT AND CHAIN")


COMMITS = {
    **{f"sqlalchemy: {statement}": by_sqlalchemy(statement) for statement in HIDDEN},
    **{f"driver: {statement}": by_the_driver(statement) for statement in HIDDEN + PLAIN},
    **{f"cursor: {statement}": by_a_cursor(statement) for statement in PLAIN + WITH_ROLLBACKS},
    "pipeline": by_a_pipeline,
    "libpq": by_libpq,
    "cursor of a result": by_the_cursor_of_a_result,
    "driver of a result": by_the_driver_of_a_result,
    "driver asked for in an error": by_a_driver_asked_for_in_an_error,
}


def fails(_, __):
    raise LookupError("after all")


def gives_up(_, __):
    raise GiveUp("after all")


def asks_for_later(_, __):
    raise RetryLater(0)


def fails_in_the_database(_, tx):
    tx.execute(text("SELECT 1 / 0"))


def swallows_an_error_of_the_database(_, tx):
    with contextlib.suppress(Exception):
        tx.execute(text("SELECT 1 / 0"))


def rolls_back(_, tx):
    tx.connection.driver_connection.rollback()


def returns(_, __):
    return {"fine": True}


def writes_on(event, tx):
    effect(event, tx)


def takes_too_long(_, __):
    time.sleep(5)


def loses_its_connection(_, tx):
    tx.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")


def leaves_a_copy_open(_, tx):
    tx.connection.driver_connection.cursor().copy("COPY effects FROM STDIN").__enter__()


def require_dead_and_done_once(inbox):
    assert inbox.runs() == [
        ("a", "meddler", "done", 1),
        ("b", "meddler", "dead", 1),
        ("c", "meddler", "done", 1),
    ]
    assert inbox.effects() == ["a", "b", "c"]
    ((error,),) = inbox.rows("SELECT error FROM hookonce.failures")
    assert "the handler committed the transaction it was given" in error


@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS)
@pytest.mark.parametrize("go_on", [fails, returns])
def test_handler_that_commits_by_any_means_gets_no_further_attempt(inbox, commit, go_on):
    def meddler(event, tx):
        effect(event, tx)
        if event.event_id == "b":
            commit(tx)
            go_on(event, tx)

    inbox.on(meddler)
    inbox.deliver("a", "b", "c")

    inbox.work()

    require_dead_and_done_once(inbox)


@pytest.mark.parametrize(
    "go_on",
    [
        *(
            gives_up,
            asks_for_later,
            fails_in_the_database,
            swallows_an_error_of_the_database,
            rolls_back,
            writes_on,
        ),
        *(takes_too_long, loses_its_connection, leaves_a_copy_open),
    ],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["first of its claim", "chained"])
def test_handler_that_commits_gets_no_further_attempt_whatever_it_does_next(inbox, go_on, is_first):
    def meddler(event, tx):
        effect(event, tx)
        if event.event_id == "b":
            tx.connection.driver_connection.execute("COMMIT AND CHAIN")
            go_on(event, tx)

    inbox.on(meddler, timeout=timedelta(seconds=0.5))
    for ids in [("a",), ("b",), ("c",)] if is_first else [("a", "b", "c")]:
        inbox.deliver(*ids)
        inbox.work()
        inbox.work()

    require_dead_and_done_once(inbox)


def test_error_of_a_handler_that_committed_says_both(inbox):
    def meddler(event, tx):
        effect(event, tx)
        tx.connection.driver_connection.execute("COMMIT")
        raise LookupError("no such customer")

    inbox.on(meddler)
    inbox.deliver("a")

    inbox.work()

    ((error,),) = inbox.rows("SELECT error FROM hookonce.failures")
    assert error.startswith("the handler committed")
    assert "then it failed with LookupError: no such customer (" in error


@pytest.mark.parametrize("end", [fails, returns])
def test_handler_that_commits_before_it_writes_gets_no_further_attempt(inbox, end):
    def meddler(event, tx):
        tx.connection.driver_connection.execute("COMMIT AND CHAIN")
        end(event, tx)

    inbox.on(meddler)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "meddler", "dead", 1)]


def test_stale_worker_that_committed_leaves_the_run_to_its_owner(inbox):
    def overtaken(event, tx):
        effect(event, tx)
        inbox.steal()
        tx.connection.driver_connection.execute("COMMIT AND CHAIN")

    inbox.on(overtaken)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "overtaken", "running", 1)]


def test_handler_that_asks_nothing_of_the_database_holds_no_vacuum_back(inbox):
    def caller(*_):
        seen.extend(
            inbox.rows("SELECT backend_xid, backend_xmin FROM pg_stat_activity WHERE state LIKE 'idle in%'")
        )

    seen = []
    inbox.on(caller)
    inbox.deliver("a")

    inbox.work()

    assert seen == [(None, None)]


def test_handler_does_not_leave_an_aborted_transaction_by_a_commit(inbox):
    def meddler(event, tx):
        effect(event, tx)
        tx.exec_driver_sql("SAVEPOINT x")
        with contextlib.suppress(Exception):
            tx.exec_driver_sql("SELECT 1 / 0")
        tx.exec_driver_sql("ROLLBACK TO x; END; BEGIN")

    inbox.on(meddler)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == []
    assert {row[0].partition(":")[0] for row in inbox.rows("SELECT error FROM hookonce.failures")} == {
        "RuntimeError"
    }


def test_driver_that_is_kept_from_another_attempt_commits_nothing(inbox):
    kept = []

    def meddler(event, tx):
        effect(event, tx)
        kept.append(tx.connection.driver_connection)
        if event.event_id == "b":
            kept[0].execute("COMMIT AND CHAIN")
            raise LookupError("after all")

    inbox.on(meddler, attempts=1)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == ["a"]


@pytest.mark.parametrize(
    "statements",
    [
        ["ROLLBACK TO mine; INSERT INTO effects VALUES ('a'); COMMIT"],
        ["/* /* */ */ ROLLBACK TO mine; INSERT INTO effects VALUES ('a'); COMMIT"],
        ["SELECT 1; ROLLBACK TO mine", "INSERT INTO effects VALUES ('a')", "COMMIT"],
        ["ROLLBACK; BEGIN; INSERT INTO effects VALUES ('a'); COMMIT"],
        ["ROLLBACK", "INSERT INTO effects VALUES ('a')", "COMMIT"],
        ["ROLLBACK AND CHAIN", "INSERT INTO effects VALUES ('a')", "COMMIT"],
    ],
)
def test_handler_that_commits_behind_a_rollback_has_no_effect_twice(inbox, statements):
    def meddler(_, tx):
        tx.exec_driver_sql("SAVEPOINT mine")
        driver = tx.connection.driver_connection
        for statement in statements:
            driver.execute(statement)
        raise LookupError("after all")

    inbox.on(meddler, attempts=3)
    inbox.deliver("a")

    inbox.work()

    assert [status for _, _, status, _ in inbox.runs()] == ["dead"]
    assert inbox.effects() in ([], ["a"])
