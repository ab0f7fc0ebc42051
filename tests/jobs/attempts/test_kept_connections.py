"""A thread or a callback that goes on with what its handler was given: it gets an error, and keeps no worker at it."""

import contextlib
import threading

import pytest
from sqlalchemy import text

from hookonce.jobs.attempts import failure_callbacks, transaction_guard
from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.ledger.database import engines
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.support.django_project import entry
from tests.support.inbox import effect, inbox
from tests.support.waiting import until

__all__ = ["entry", "inbox"]

ENOUGH = 20.0
INSERT = text("INSERT INTO effects (event) VALUES ('kept')")
THROWN_AWAY = "belongs to no attempt, and was thrown away"


def by_tx(tx):
    return lambda: tx.execute(INSERT)


def by_the_driver(tx):
    driver = tx.connection.driver_connection
    return lambda: driver.execute("INSERT INTO effects (event) VALUES ('kept')")


def by_a_cursor(tx):
    cursor = tx.execute(text("SELECT 1")).cursor
    return lambda: cursor.execute("INSERT INTO effects (event) VALUES ('kept')")


def by_a_savepoint(tx):
    return tx.begin_nested


def by_a_new_transaction(tx):
    return tx.begin


KEPT = {
    each.__name__: each for each in (by_tx, by_the_driver, by_a_cursor, by_a_savepoint, by_a_new_transaction)
}


def tried(use):
    """Use what was kept, and tell what came of it."""
    try:
        use()
    except Exception as error:  # noqa: BLE001  whatever it is
        return type(error).__name__
    return "went through"


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_thread_that_goes_on_after_its_handler_gets_an_error(inbox, keep):
    def starter(event, tx):
        effect(event, tx)
        if event.event_id == "a":
            kept.append(keep(tx))

    def other(event, tx):
        effect(event, tx)
        thread = threading.Thread(target=lambda: outcomes.append(tried(kept[0])))
        thread.start()
        thread.join()

    kept, outcomes = [], []
    inbox.on(starter, pattern="invoice.*")
    inbox.on(other, pattern="charge.*")
    inbox.deliver("a", type="invoice.paid")
    inbox.deliver("b", type="charge.paid")

    inbox.work()
    outcomes.append(tried(kept[0]))
    inbox.deliver("c", type="invoice.paid")
    inbox.work()

    assert "went through" not in outcomes
    assert inbox.effects() == ["a", "b", "c"]


def test_session_that_a_callback_has_kept_is_closed(inbox, monkeypatch):
    def handler(event, session):
        session.execute(text("INSERT INTO effects (event) VALUES (:event)"), {"event": event.event_id})
        kept.append(session)
        if event.event_id == "a":
            raise LookupError("after all")

    def callback(_):
        outcomes.append(tried(lambda: kept[0].execute(INSERT)))

    kept, outcomes = [], []
    monkeypatch.setattr(failure_callbacks, "callbacks", [callback])
    inbox.on(handler, attempts=1)
    inbox.deliver("a", "b")

    inbox.work()
    inbox.deliver("c")
    inbox.work()

    assert outcomes == ["ResourceClosedError"]
    assert inbox.effects() == ["b", "c"]


def left_open(connection):
    """Begin a transaction on what a worker has, past everything that is watched, as a thread of a handler's could."""
    engines.raw(connection._connection).execute("INSERT INTO effects (event) VALUES ('stray')")  # noqa: SLF001


def left_failed(connection):
    with contextlib.suppress(Exception):
        engines.raw(connection._connection).execute("SELECT 1/0")  # noqa: SLF001


@pytest.mark.parametrize("leave", [left_open, left_failed])
@pytest.mark.parametrize("batch", [None, BatchSize(2)], ids=["by itself", "in batches"])
def test_connection_that_is_not_idle_before_a_claim_is_thrown_away_and_said(inbox, caplog, leave, batch):
    def handler(given, tx):
        for event in given if batch else [given]:
            effect(event, tx)

    inbox.on(handler, batch=batch)
    inbox.deliver("a", "b")
    inbox.work()
    leave(inbox.drains[0].executor.connection)
    before = now_of_the_worker(inbox)

    inbox.deliver("c", "d")
    inbox.work()

    assert inbox.effects() == ["a", "b", "c", "d"]
    assert [record.message for record in caplog.records if THROWN_AWAY in record.message]
    assert now_of_the_worker(inbox) != before
    until(
        lambda: inbox.rows(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%stray%' AND pid <> pg_backend_pid()"
        ),
        [(0,)],
    )


def now_of_the_worker(inbox):
    ledger = inbox.drains[0].executor.idle_ledger
    found = ledger.execute("SELECT now()").fetchone()
    ledger.rollback()
    return found


def test_thread_that_is_at_a_statement_holds_no_claim_up(inbox, caplog):
    inbox.on(effect)
    inbox.deliver("a")
    inbox.work()
    driver = engines.raw(inbox.drains[0].executor.connection._connection)  # noqa: SLF001  as a handler's thread has it
    thread = threading.Thread(target=lambda: tried(lambda: driver.execute("SELECT pg_sleep(60)")))
    thread.start()
    until(lambda: driver.info.transaction_status.name, "ACTIVE")

    inbox.deliver("b")
    inbox.work()

    assert inbox.effects() == ["a", "b"]
    assert THROWN_AWAY in caplog.text
    thread.join(ENOUGH)
    assert not thread.is_alive()


def test_slot_meets_no_transaction_that_somebody_has_left_open(inbox, caplog):
    inbox.on(effect)
    pool = Pool(inbox.settings, inbox.registry, slots=1)
    try:
        inbox.deliver("a")
        until(lambda: (pool.run_due(), inbox.effects())[1], ["a"])
        until(lambda: int(pool.is_idle), 1)
        left_open(pool._slots[0].executor.connection)  # noqa: SLF001
        inbox.deliver("b")
        until(lambda: (pool.run_due(), inbox.effects())[1], ["a", "b"])
    finally:
        pool.close()
        stopping.clear()
        hurrying.clear()

    assert THROWN_AWAY in caplog.text


def test_block_of_a_long_run_is_closed_with_its_connection(inbox):
    def handler(event):
        with event.tx() as tx:
            effect(event, tx)
        outcomes.append(tried(by_tx(tx)))

    outcomes = []
    inbox.on(handler, tx="none")
    inbox.deliver("a")

    inbox.work()

    assert outcomes == ["ResourceClosedError"]
    assert inbox.effects() == ["a"]


@pytest.mark.usefixtures("entry")
def test_transaction_left_open_in_django_is_thrown_away_and_said(inbox, caplog):
    from django.db import connection  # noqa: PLC0415

    def handler(event, connection):
        connection.cursor().execute("INSERT INTO effects (event) VALUES (%s)", [event.event_id])

    inbox.transactions = DjangoTransactions
    inbox.on(handler)
    inbox.deliver("a")
    inbox.work()
    connection.set_autocommit(False)
    connection.cursor().execute("INSERT INTO effects (event) VALUES ('stray')")

    inbox.deliver("b")
    inbox.work()

    assert inbox.effects() == ["a", "b"]
    assert THROWN_AWAY in caplog.text


def test_withdrawn_connection_is_closed_and_what_takes_its_place_goes_on(inbox):
    """What is private in SQLAlchemy and changes one day is noticed here."""
    engine = engines.engine(inbox.settings.database_url)
    kept = engine.connect()
    transaction = kept.begin()
    kept.begin_nested()

    fresh = transaction_guard.withdraw(kept, engine)

    assert kept.closed
    assert not kept.in_transaction()
    assert tried(by_tx(kept)) == "ResourceClosedError"
    assert fresh.get_transaction() is transaction
    assert not fresh.in_nested_transaction()
    fresh.execute(INSERT)
    transaction.commit()
    assert inbox.effects() == ["kept"]
    fresh.close()
    engine.dispose()
