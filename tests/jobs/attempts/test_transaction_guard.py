import os
from operator import methodcaller

import pytest
from psycopg.rows import dict_row

from tests.support.inbox import effect


def test_savepoint_left_open_is_committed_and_does_not_reach_the_next(inbox):
    def careless(event, tx):
        effect(event, tx)
        nested.append(tx.in_nested_transaction())
        tx.begin_nested()

    nested = []
    inbox.on(careless)
    inbox.deliver("a", "b", "c")

    inbox.work()

    assert inbox.effects() == ["a", "b", "c"]
    assert nested == [False] * 3


@pytest.mark.parametrize(
    "end",
    [
        *("COMMIT", "  commit", "ROLLBACK", "end;", "abort"),
        *("/* so */ COMMIT", "-- so\nCOMMIT", ";COMMIT", "SELECT 1; COMMIT", "SELECT 1;\nrollback work ;"),
        *("SELECT 1; COMMIT AND CHAIN", *map(methodcaller, ("commit", "rollback", "close"))),
    ],
)
def test_handler_can_not_end_the_transaction_it_is_given(inbox, end):
    def meddler(event, tx):
        effect(event, tx)
        tx.exec_driver_sql(end) if isinstance(end, str) else end(tx)

    inbox.on(meddler, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "meddler", "dead", 1)]
    assert inbox.effects() == []


@pytest.mark.parametrize(
    "statement",
    ["SELECT 'no; commit'", "DO $$ BEGIN NULL; END; $$", "BEGIN", "start transaction", "SELECT 1;"],
)
def test_handler_may_use_words_that_end_no_transaction(inbox, statement):
    def careful(event, tx):
        effect(event, tx)
        tx.exec_driver_sql("SAVEPOINT mine")
        tx.exec_driver_sql(statement)

    inbox.on(careful)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == ["a"]


def test_handler_may_use_savepoints(inbox):
    def careful(event, tx):
        with tx.begin_nested() as savepoint:
            effect(event, tx)
            savepoint.rollback()
        effect(event, tx)

    inbox.on(careful)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == ["a"]


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_handler_has_the_isolation_it_declares_and_leaves_it_to_nobody(inbox, level):
    def declared(event, tx):
        effect(event, tx)
        levels.append(tx.exec_driver_sql("SHOW transaction_isolation").scalar())

    def plain(event, tx):
        effect(event, tx)
        levels.append(tx.exec_driver_sql("SHOW transaction_isolation").scalar())

    levels = []
    inbox.on(plain, pattern="invoice.*")
    inbox.on(declared, pattern="charge.*", isolation=level)
    for event_id, kind in [
        ("a", "invoice.paid"),
        ("b", "charge.paid"),
        ("c", "charge.paid"),
        ("d", "invoice.paid"),
    ]:
        inbox.deliver(event_id, type=kind)

    inbox.work()

    assert levels == ["read committed", level, level, "read committed"]
    assert inbox.effects() == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "statement",
    [
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "set local transaction_isolation = 'serializable'",
    ],
)
def test_handler_that_sets_its_isolation_inside_is_told_to_declare_it(inbox, statement):
    inbox.on(lambda _, tx: tx.exec_driver_sql(statement), attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert (
        "declare it, as in @on(..., isolation='serializable')"
        in inbox.rows("SELECT error FROM hookonce.failures")[0][0]
    )


def test_attempt_that_meets_a_conflict_of_its_isolation_is_tried_again(inbox):
    inbox.connection.execute("CREATE TABLE stock (left_over int); INSERT INTO stock VALUES (2)")

    def take(event, tx):
        effect(event, tx)
        tx.exec_driver_sql("SELECT * FROM stock")
        if event.attempt == 1:
            inbox.connection.execute("UPDATE stock SET left_over = left_over - 1")
        tx.exec_driver_sql("UPDATE stock SET left_over = left_over - 1")

    inbox.on(take, isolation="repeatable read")
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "take", "done", 2)]
    assert inbox.effects() == ["a"]
    assert inbox.rows("SELECT left_over FROM stock") == [(0,)]


@pytest.mark.parametrize("block", [lambda driver: driver, lambda driver: driver.transaction()])
def test_handler_commits_nothing_by_a_block_of_the_driver(inbox, block):
    def meddler(event, tx):
        driver = tx.connection.driver_connection
        with block(driver):
            driver.execute("INSERT INTO effects VALUES (%s)", [event.event_id])
        raise RuntimeError("after all")

    inbox.on(meddler)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == []
    assert [row[2] for row in inbox.runs()] == ["dead"]


@pytest.mark.parametrize(
    "statement",
    [
        "SET LOCAL search_path TO shop",
        "SET search_path TO shop",
        "SELECT set_config('search_path', 'shop', true)",
        "SET LOCAL ROLE pg_monitor",
    ],
)
def test_run_ends_in_the_ledger_wherever_its_handler_has_gone(inbox, statement):
    inbox.connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.events (LIKE hookonce.events)")

    def mover(event, tx):
        effect(event, tx)
        tx.exec_driver_sql(statement)

    inbox.on(mover)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == ["a", "b"]
    assert inbox.runs() == [("a", "mover", "done", 1), ("b", "mover", "done", 1)]


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: tx.execution_options(stream_results=True),
        lambda tx: tx.execution_options(schema_translate_map={None: "shop"}),
        lambda tx: setattr(tx.connection.driver_connection, "row_factory", dict_row),
    ],
    ids=["stream_results", "schema_translate_map", "row_factory"],
)
def test_handler_leaves_nothing_of_its_options_to_the_next(inbox, change):
    def changer(event, tx):
        effect(event, tx)
        if event.event_id == "a":
            change(tx)

    inbox.on(changer)
    inbox.deliver("a", "b")

    inbox.work()
    inbox.deliver("c")
    inbox.work()

    assert [row[2:] for row in inbox.runs()] == [("done", 1)] * 3


def test_child_that_a_handler_forks_can_not_end_its_run(inbox):
    def forker(event, tx):
        effect(event, tx)
        child = os.fork()
        if child == 0:
            raise SystemExit
        os.waitpid(child, 0)

    inbox.on(forker)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == ["a", "b"]
    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("done", 1)]


def test_ledger_is_written_whatever_role_a_function_has_taken(inbox):
    inbox.connection.execute(
        "CREATE FUNCTION be_somebody() RETURNS void LANGUAGE sql AS "
        "$$ SELECT set_config('role', 'pg_monitor', false) $$; GRANT INSERT ON effects TO pg_monitor"
    )

    def somebody(event, tx):
        tx.exec_driver_sql("SELECT be_somebody()")
        effect(event, tx)

    inbox.on(somebody)
    inbox.deliver("a", "b")

    inbox.work()

    assert [row[2:] for row in inbox.runs()] == [("done", 1)] * 2
