"""PostgreSQL crashes while handlers have the driver's connection: nobody else's commit is taken for theirs."""

import os
import signal
from functools import partial

import psycopg
import pytest

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.receiver.dev.embedded import Postgres
from hookonce.receiver.ledger.database import migrate
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.support import waiting
from tests.support.django_project import entry
from tests.support.inbox import OPEN
from tests.support.inbox import inbox as plain_inbox

__all__ = ["entry", "plain_inbox"]


@pytest.fixture
def database_url(data_directory):
    """A server of the test's own, which may crash."""
    server = Postgres.start(data_directory, durable=True)
    migrate.upgrade(server.url)
    yield server.url
    server.stop()


until = partial(waiting.until, away=psycopg.OperationalError)
"""Wait until it is so, while PostgreSQL is away and comes back; return what it was."""


def crash(url, victim, neighbour):
    """Kill a backend, so that PostgreSQL recovers; then commit, under ids that were given out before.

    At once: within a fifth of a second PostgreSQL flushes what it has, and remembers the ids in it.
    """
    os.kill(victim.info.backend_pid, signal.SIGKILL)
    until(lambda: is_gone(neighbour))
    with until(lambda: psycopg.connect(url, autocommit=True)) as other:
        for _ in range(30):
            other.execute("INSERT INTO effects VALUES ('another')")


def is_gone(connection):
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        connection.close()
    return connection.closed


@pytest.fixture
def inbox(plain_inbox):
    """The inbox; the connection that a test opens in the place of one that broke is closed."""
    yield plain_inbox
    plain_inbox.connection.close()


@pytest.mark.parametrize("kind", ["run", "batch", "django"])
def test_crash_of_postgresql_leaves_no_innocent_run_dead(inbox, database_url, request, kind):
    """Ids that were not flushed are given out again: what others commit under them says nothing of a handler."""

    def copies(given, tx):
        others = [psycopg.connect(database_url, autocommit=True) for _ in range(0 if calls else 2)]
        names = [event.event_id for event in (given if isinstance(given, list) else [given])]
        driver = tx.connection if kind == "django" else tx.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy("COPY effects FROM STDIN") as copy:
            for name in names:
                copy.write_row([name])
        calls.append(names)
        if len(calls) == 1:
            crash(database_url, *others)
            others[0].close()
            raise LookupError("after all")

    def left():
        inbox.work()
        if inbox.connection.closed or inbox.connection.broken:
            inbox.connection = psycopg.connect(database_url, autocommit=True)
        return not inbox.rows(OPEN)

    calls = []
    if kind == "django":
        request.getfixturevalue("entry")
        inbox.transactions = DjangoTransactions
    inbox.on(copies, batch=BatchSize(3) if kind == "batch" else None)
    inbox.deliver("a", "b", "c")

    until(left)

    assert {row[2] for row in inbox.runs()} == {"done"}
    assert [name for name in inbox.effects() if name != "another"] == ["a", "b", "c"]
