"""Whatever a handler tries to commit its transaction by: nothing of it is written, and what is innocent is done."""

import contextlib

import psycopg
import pytest
from sqlalchemy import text

from hookonce import RetryLater
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


@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS)
def test_handler_that_commits_by_any_means_writes_nothing(inbox, commit):
    def meddler(event, tx):
        effect(event, tx)
        if event.event_id == "b":
            commit(tx)

    inbox.on(meddler, attempts=2)
    inbox.deliver("a", "b", "c")

    inbox.work()
    inbox.work()

    assert [row[2] for row in inbox.runs()] == ["done", "dead", "done"]
    assert inbox.effects() == ["a", "c"]


def goes_on(_, __):
    """Return as if nothing were."""


def writes_on(event, tx):
    effect(event, tx)


def raises_another(_, __):
    raise LookupError("after all")


def asks_for_later(_, __):
    raise RetryLater(0)


def fails_in_the_database(_, tx):
    tx.execute(text("SELECT 1 / 0"))


def rolls_back(_, tx):
    tx.get_transaction().rollback()


@pytest.mark.parametrize(
    "go_on", [goes_on, writes_on, raises_another, asks_for_later, fails_in_the_database, rolls_back]
)
@pytest.mark.parametrize("is_first", [True, False], ids=["first of its claim", "chained"])
def test_handler_that_is_refused_a_commit_gives_up_whatever_it_does_next(inbox, go_on, is_first):
    def meddler(event, tx):
        effect(event, tx)
        if event.event_id == "b":
            with contextlib.suppress(Exception):
                tx.exec_driver_sql("COMMIT AND CHAIN")
            go_on(event, tx)

    inbox.on(meddler)
    for ids in [("a",), ("b",), ("c",)] if is_first else [("a", "b", "c")]:
        inbox.deliver(*ids)
        inbox.work()

    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("dead", 1), ("done", 1)]
    assert inbox.effects() == ["a", "c"]


def test_commit_of_sqlalchemy_is_refused_and_the_run_dead_at_once(inbox):
    def meddler(event, tx):
        effect(event, tx)
        tx.get_transaction().commit()

    inbox.on(meddler)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "meddler", "dead", 1)]
    assert inbox.effects() == []
    ((error,),) = inbox.rows("SELECT error FROM hookonce.failures")
    assert "the transaction is hookonce's: return to commit it" in error


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
