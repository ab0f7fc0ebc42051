"""PostgreSQL is the truth: while it is away senders are told to come again, and all goes on when it is back."""

import contextlib
import shutil
import signal
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from hookonce.receiver.dev.embedded import Postgres
from hookonce.receiver.ledger.database import migrate
from tests.support.stories.stack import OUTAGE, Stack, running, stay_away, until

REFUSALS = 5
SLOW = max(1, OUTAGE)
"""Seconds that a commit takes."""
STOPPED, DIED, CRASHED = signal.SIGINT, signal.SIGQUIT, signal.SIGKILL
"""SIGINT to the postmaster is `pg_ctl stop -m fast`, SIGQUIT `-m immediate`."""
LOOKS = 5
FAIL = """
CREATE SEQUENCE failed;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM nextval('failed'); RAISE 'no commit today'; END $$;
CREATE CONSTRAINT TRIGGER fail AFTER {} ON hookonce.{} DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION fail();
"""
FAILED = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM failed"
"""How often a commit has failed: no rollback undoes a sequence."""


@pytest.fixture(scope="module")
def postgres(disk):
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    server = Postgres.start(directory, durable=False)
    migrate.upgrade(server.url)
    yield server
    server.stop()
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def running_stack(postgres, fresh_redis, tmp_path_factory):
    with (
        fresh_redis() as redis_url,
        running(
            Stack(tmp_path_factory.mktemp("stack"), postgres.url, redis_url, workers=1).make_effects()
        ) as stack,
    ):
        stack.insist(stack.event())
        yield stack


def outage(stack):
    """Wait until several senders were refused; nobody is told that anything was taken."""
    stack.history.faults += len(stack.workers) + len(stack.receivers)
    began = time.monotonic()
    until(lambda: stack.refused(began) >= REFUSALS, what="refusals")
    stay_away(began)
    assert not any(answer.is_new for answer in stack.since(began))


@pytest.mark.parametrize("how", [STOPPED, DIED, CRASHED], ids=["in order", "immediately", "by SIGKILL"])
def test_senders_are_told_to_come_again_until_a_killed_postgresql_is_back(stack, postgres, how):
    with stack.load(slow=0.02):
        postgres.kill(how)
        try:
            until(lambda: not postgres.alive, what="its end")
            outage(stack)
        finally:
            postgres.restart()


def test_nobody_is_refused_while_a_commit_takes_seconds(stack, postgres):
    """As on a disk with much else to do; here a commit waits for a standby that there is not."""
    began = time.monotonic()
    with stack.load(senders=10, slow=0.02):
        with setting(postgres, "synchronous_standby_names", "nobody"):
            time.sleep(SLOW)
        until(lambda: any(answer.seconds > SLOW / 2 for answer in stack.since(began)), what="one that waited")

    assert {answer.status for answer in stack.since(began)} == {200}


def test_stack_recovers_when_others_have_left_it_a_connection_again(stack, postgres):
    with stack.load(), no_connections_left(stack, postgres):
        outage(stack)


def test_stack_recovers_when_the_database_takes_writes_again(stack, postgres):
    with stack.load(), setting(postgres, "default_transaction_read_only", "on"):
        outage(stack)


def test_nothing_is_taken_while_every_commit_of_a_delivery_fails(stack, postgres):
    with stack.load(), commits_failing(postgres, "INSERT", "events"):
        outage(stack)


def test_events_wait_uncharged_while_every_commit_of_a_worker_fails(stack, postgres):
    began = time.monotonic()
    with commits_failing(postgres, "UPDATE OR DELETE", "queue"):
        delivery = stack.insist(stack.event())
        until(lambda: stack.query(FAILED)[0][0] > 1, what="attempts at a commit")
        stay_away(began)
        stack.history.faults += stack.query(FAILED)[0][0]
    stack.rest()

    attempts = "SELECT attempts FROM hookonce.run_states JOIN hookonce.event_states ON id = event WHERE event_id = %s"
    assert stack.query(attempts, [delivery.events[0].event_id]) == [(1,)]


@contextlib.contextmanager
def commits_failing(postgres, how, table):
    """Have every transaction that writes so to a table fail at its very end."""
    with ledger(postgres) as sql:
        sql.execute(FAIL.format(how, table))
        try:
            yield
        finally:
            sql.execute("DROP FUNCTION fail CASCADE; DROP SEQUENCE failed")


@contextlib.contextmanager
def ledger(postgres):
    with psycopg.connect(postgres.url, autocommit=True) as sql:
        yield sql


@contextlib.contextmanager
def setting(postgres, name, value):
    """Change a setting of the database for everyone, and have everyone notice."""
    with ledger(postgres) as sql:
        sql.execute(f"ALTER SYSTEM SET {name} = {value}")
        sql.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            sql.execute(f"ALTER SYSTEM RESET {name}")
            sql.execute("SELECT pg_reload_conf()")


@contextlib.contextmanager
def no_connections_left(stack, postgres):
    """Take every connection there is, also those that the stack had: each that is ended may be at an attempt."""
    with contextlib.ExitStack() as others, ledger(postgres) as sql:
        calm = 0

        def is_calm():
            """Whether none was left, several times: one that was ended may leave a place to the stack after a look."""
            nonlocal calm
            ended = sql.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND application_name LIKE 'hookonce%%'"
            ).fetchall()
            stack.history.faults += len(ended)
            calm = 0 if ended or take_all(postgres, others) else calm + 1
            return calm >= LOOKS

        until(is_calm, what="the last connection")
        yield


def take_all(postgres, others):
    """Take every connection that is left; count them."""
    count = 0
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            others.enter_context(psycopg.connect(postgres.url, application_name="others"))
            count += 1
    return count
