"""What a handler has deferred to the end of its transaction has the time of its attempt, and no more."""

import time
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.jobs.attempts.test_left_in_sessions import WORKERS
from tests.support.django_project import entry
from tests.support.inbox import inbox
from tests.support.waiting import until

__all__ = ["entry", "inbox"]

TABLES = """
CREATE TABLE parents (id int PRIMARY KEY);
CREATE TABLE children (parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
INSERT INTO parents VALUES (1);
CREATE TABLE slow (x int);
CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $f$;
CREATE CONSTRAINT TRIGGER slowly AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION be_slow()
"""
CHILD, SLOW = "INSERT INTO children VALUES (1)", "INSERT INTO slow VALUES (1)"
LIMIT = timedelta(seconds=1)


def plain(_event, tx):
    tx.execute(text(CHILD))


def session(_event, session):
    session.execute(text(CHILD))


async def coroutine(_event, tx):
    await tx.execute(text(CHILD))


def batch(_events, tx):
    tx.execute(text(CHILD))


def driver(_event, tx):
    tx.connection.driver_connection.execute(CHILD)


def django(_event, connection):
    connection.cursor().execute(CHILD)


def slow(_event, tx):
    tx.execute(text(SLOW))


@pytest.fixture
def held(inbox, database_url):
    """An inbox beside a session that holds a row that handlers refer to."""
    inbox.connection.execute(TABLES)
    with psycopg.connect(database_url, application_name="somebody's report") as holder:
        holder.execute("DELETE FROM parents")
        yield inbox


def failed(inbox, worker):
    """Have the handler's event fail by its time limit; return the error."""
    inbox.deliver("a")
    began = time.monotonic()
    with WORKERS[worker](inbox) as work:
        until(lambda: (work(), inbox.rows("SELECT error FROM hookonce.failures"))[1])
    assert time.monotonic() - began < 20
    assert [row[2:] for row in inbox.runs()] == [("dead", 1)]
    return inbox.rows("SELECT error FROM hookonce.failures")[0][0]


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("function", [plain, session, coroutine, batch, driver])
def test_deferred_foreign_key_that_waits_fails_its_attempt_and_says_for_what(held, worker, function):
    held.on(function, attempts=1, timeout=LIMIT, batch=BatchSize(2) if function is batch else None)

    assert "waited for a lock in parents until" in failed(held, worker)


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.usefixtures("entry")
def test_deferred_foreign_key_of_django_that_waits_fails_its_attempt_and_says_for_what(held, worker):
    held.transactions = DjangoTransactions
    held.on(django, attempts=1, timeout=LIMIT)

    assert "waited for a lock in parents until" in failed(held, worker)


def test_deferred_trigger_that_takes_long_fails_its_attempt(held):
    held.on(slow, attempts=1, timeout=LIMIT)

    assert "waited for a deferred constraint or trigger until" in failed(held, "one slot")
