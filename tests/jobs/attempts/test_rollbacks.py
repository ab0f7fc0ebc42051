import contextlib

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tests.support.inbox import effect
from tests.support.shop import Credit, credited, errors


def fail_in_a_block(event, tx):
    with Session(bind=tx) as session, session.begin():
        session.add(Credit(event=event.event_id))
        session.flush()
        raise LookupError("no such customer")


def fail_to_flush(_, tx):
    with Session(bind=tx) as session:
        session.add(Credit(event="taken"))
        session.flush()


def fail_to_commit(_, tx):
    with Session(bind=tx) as session:
        session.add(Credit(event="taken"))
        session.commit()


def roll_back_and_fail(event, tx):
    with Session(bind=tx) as session:
        session.add(Credit(event=event.event_id))
        session.flush()
        session.rollback()
    raise LookupError("no such customer")


def roll_back_the_driver_and_fail(event, tx):
    tx.execute(text("INSERT INTO credits VALUES (:event)"), {"event": event.event_id})
    tx.connection.driver_connection.rollback()
    raise LookupError("no such customer")


def abort_and_go_on(_, tx):
    with contextlib.suppress(IntegrityError):
        tx.execute(text("INSERT INTO credits VALUES ('taken')"))
    tx.execute(text("SELECT 1"))


@pytest.mark.parametrize(
    ("fail", "error"),
    [
        (fail_in_a_block, "LookupError: no such customer"),
        (fail_to_flush, "IntegrityError: (psycopg.errors.UniqueViolation)"),
        (fail_to_commit, "IntegrityError: (psycopg.errors.UniqueViolation)"),
        (roll_back_and_fail, "LookupError: no such customer"),
        (roll_back_the_driver_and_fail, "LookupError: no such customer"),
        (abort_and_go_on, "InternalError: (psycopg.errors.InFailedSqlTransaction)"),
    ],
)
def test_attempt_that_rolls_back_and_fails_is_tried_again(shop, fail, error):
    def shaky(event, tx):
        effect(event, tx)
        if event.event_id == "b" and event.attempt == 1:
            fail(event, tx)
        with Session(bind=tx) as session, session.begin():
            session.add(Credit(event=event.event_id))

    shop.on(shaky)
    shop.deliver("a", "b", "c")

    shop.work()

    assert shop.runs() == [("a", "shaky", "done", 1), ("b", "shaky", "done", 2), ("c", "shaky", "done", 1)]
    assert shop.effects() == credited(shop) == ["a", "b", "c"]
    (said,) = errors(shop)
    assert said.startswith(error)


def swallow_a_failed_flush(_, tx):
    with Session(bind=tx) as session, contextlib.suppress(IntegrityError):
        session.add(Credit(event="taken"))
        session.flush()


def roll_back(_, tx):
    with Session(bind=tx) as session:
        session.execute(text("SELECT 1"))
        session.rollback()


def roll_back_and_write_again(event, tx):
    with Session(bind=tx) as session:
        session.execute(text("SELECT 1"))
        session.rollback()
        session.add(Credit(event=event.event_id))
        session.commit()


def roll_back_and_write_by_the_driver(event, tx):
    driver = tx.connection.driver_connection
    driver.rollback()
    driver.execute("INSERT INTO credits VALUES (%s)", [event.event_id])


def roll_back_and_commit(_, tx):
    tx.get_transaction().rollback()
    tx.connection.driver_connection.commit()


@pytest.mark.parametrize(
    "end",
    [
        roll_back,
        swallow_a_failed_flush,
        roll_back_and_write_again,
        roll_back_and_write_by_the_driver,
        roll_back_and_commit,
    ],
)
def test_attempt_that_rolls_back_and_returns_fails_and_says_what_to_do(shop, end):
    def shaky(event, tx):
        effect(event, tx)
        if event.event_id == "b" and event.attempt == 1:
            end(event, tx)

    shop.on(shaky)
    shop.deliver("a", "b", "c")

    shop.work()

    assert shop.runs() == [("a", "shaky", "done", 1), ("b", "shaky", "done", 2), ("c", "shaky", "done", 1)]
    assert shop.effects() == ["a", "b", "c"]
    assert credited(shop) == []
    (said,) = errors(shop)
    assert "the transaction was rolled back inside the handler; for an ORM session" in said
    assert "name the second parameter session" in said


@pytest.mark.parametrize(
    "session_of",
    [
        lambda tx: Session(bind=tx, join_transaction_mode="create_savepoint"),
        lambda tx: Session(bind=tx, join_transaction_mode="rollback_only"),
        lambda tx: Session(bind=tx),
    ],
    ids=["create_savepoint", "rollback_only", "conditional_savepoint"],
)
def test_session_that_commits_commits_with_its_run(shop, session_of):
    def careful(event, tx):
        with session_of(tx) as session:
            session.add(Credit(event=event.event_id))
            session.commit()
        seen.append(credited(shop))

    seen = []
    shop.on(careful)
    shop.deliver("a")

    shop.work()

    assert seen == [[]]
    assert credited(shop) == ["a"]


def roll_back_a_savepoint(_, tx):
    with contextlib.suppress(IntegrityError), tx.begin_nested():
        tx.execute(text("INSERT INTO credits VALUES ('taken')"))


def roll_back_a_session_on_a_savepoint(_, tx):
    with Session(bind=tx, join_transaction_mode="create_savepoint") as session:
        session.add(Credit(event="taken"))
        with contextlib.suppress(IntegrityError):
            session.flush()
        session.rollback()


def roll_back_a_session_in_a_savepoint(_, tx):
    with tx.begin_nested(), Session(bind=tx) as session:
        session.execute(text("SELECT 1"))
        session.rollback()


@pytest.mark.parametrize(
    "undo", [roll_back_a_savepoint, roll_back_a_session_on_a_savepoint, roll_back_a_session_in_a_savepoint]
)
def test_savepoint_that_is_rolled_back_costs_no_attempt(shop, undo):
    def careful(event, tx):
        effect(event, tx)
        undo(event, tx)

    shop.on(careful)
    shop.deliver("a", "b")

    shop.work()

    assert shop.runs() == [("a", "careful", "done", 1), ("b", "careful", "done", 1)]
    assert shop.effects() == ["a", "b"]
