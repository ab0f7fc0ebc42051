"""The database's clock was ahead for a while and is set back: nothing waits for it to come there again."""

import os
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from hookonce.jobs.handlers import RetryLater
from hookonce.jobs.maintenance.tasks import MaintenanceTasks
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.dev.embedded.postgres import Postgres
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.records import Claim, Key, State, Terms
from hookonce.receiver.ledger.database import connections, migrate
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.runs import queue_pages as clocks
from hookonce.receiver.ledger.runs.claimed import LEASE
from hookonce.receiver.ledger.runs.run_limits import BatchSize, Rate, RunLimit
from hookonce.receiver.redis.client import connect
from tests.support import claiming
from tests.support.inbox import Inbox, effect, inbox
from tests.support.rewording import reword
from tests.support.waiting import until

__all__ = ["inbox"]

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
OPTIONS = {"FAKETIME_NO_CACHE": 1, "FAKETIME_DONT_FAKE_MONOTONIC": 1}


def set_back(inbox, table, *columns):
    """Have the clock set back, as a table sees it: its times are that far in the future then."""
    changes = ", ".join(f"{column} = {column} + interval '3 hours'" for column in columns)
    inbox.connection.execute(f"UPDATE hookonce.{table} SET {changes}")  # noqa: S608  columns of the test's


def work_until(inbox, names):
    until(lambda: (inbox.work(), inbox.effects())[1], sorted(names))


@pytest.fixture
def ahead(inbox):
    """A handler of 600 a minute whose rate has put off some events while the clock was ahead."""
    inbox.on(effect, limit=RunLimit(Rate.parse("600/m")))
    names = [f"evt_{n:03}" for n in range(70)]
    inbox.deliver(*names)
    inbox.work()
    set_back(inbox, "limits", "head", "given_at")
    set_back(inbox, "queue", "due_at", "slot_at")
    return [*names, "new"]


def test_rate_goes_on_after_the_clock_was_set_back(inbox, ahead, caplog):
    inbox.deliver("new")
    inbox.work()

    inbox.drains[0].tend_rates()

    work_until(inbox, ahead)
    assert "the database's clock was set back by 2:59:5" in caplog.text
    assert limit_gate.delays(inbox.connection).get("effect", timedelta(0)) < timedelta(minutes=1)


def test_breaker_tries_again_after_the_clock_was_set_back(inbox):
    def fails(_event, _tx):
        raise ArithmeticError

    inbox.on(fails, breaker=1, attempts=9)
    inbox.deliver("a", "b")
    inbox.work()
    set_back(inbox, "breakers", "opened_at", "try_at")

    tried = breakers.try_one(inbox.connection, inbox.registry.with_breakers)

    assert len(tried) == 1
    assert breakers.breakers(inbox.connection)[0].try_at is not None
    assert breakers.try_one(inbox.connection, inbox.registry.with_breakers) == []


@dataclass
class AheadClock:
    """The clock of a PostgreSQL of the test's own, which is so many hours ahead."""

    file: Path

    def set(self, hours):
        beside = self.file.with_suffix(".new")
        beside.write_text(f"+{hours}h\n")
        beside.chmod(0o644)
        beside.replace(self.file)


class Clocked(Postgres):
    """A server that takes the time from a file. Its own user sets that up: a semaphore of root's is closed to it."""

    def _run(self, argv, on_death):
        if Path(argv[0]).name == "postgres":
            told = {"LD_PRELOAD": LIBRARY, "FAKETIME_TIMESTAMP_FILE": self._directory / "clock", **OPTIONS}
            argv = ["/usr/bin/env", *(f"{name}={value}" for name, value in told.items()), *argv]
        return super()._run(argv, on_death)


@pytest.fixture
def clocked(data_directory, redis_url):
    """An inbox in a PostgreSQL whose clock the test sets, and that clock."""
    if not LIBRARY.exists():
        if os.environ.get("CI"):
            raise FileNotFoundError(LIBRARY)
        pytest.skip("libfaketime is not installed")
    clock = AheadClock(data_directory / "clock")
    clock.set(0)
    server = Clocked.start(data_directory, durable=False)
    try:
        migrate.upgrade(server.url)
        environ = {"DATABASE_URL": server.url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": "/dev/null"}
        with connections.connect(server.url) as connection:
            connection.execute("CREATE TABLE effects (event text)")
            inbox = Inbox(load_settings(environ), connection)
            yield inbox, clock
        for each in inbox.drains:
            each.close()
    finally:
        server.stop()


def test_nothing_waits_for_the_clock_that_was_set_back_to_come_there_again(clocked):
    inbox, clock = clocked
    tasks = MaintenanceTasks(inbox.settings, connect(inbox.settings.redis_url))

    def fails_once(event, tx):
        if event.attempt == 1:
            raise ArithmeticError
        effect(event, tx)

    one = timedelta(seconds=1)
    inbox.on(effect, pattern="rated", limit=RunLimit(Rate.parse("600/m")))
    inbox.on(fails_once, pattern="retried", backoff=(one, one))
    names = [f"rated {n:02}" for n in range(63)]
    inbox.work()
    tasks.turn(inbox.connection)
    clock.set(3)
    inbox.deliver(*names, type="rated")
    inbox.deliver("retried", type="retried")
    inbox.work()
    inbox.deliver("received", type="rated")
    clock.set(0)
    inbox.deliver("after", type="rated")
    inbox.drains[0].tend_rates()

    expected = sorted([*names, "retried", "received", "after"])
    until(lambda: (tasks.turn(inbox.connection), inbox.work(), inbox.effects())[-1], expected)


def claimed(inbox):
    return claiming.claim(inbox.connection, inbox.registry).runs


def left_until(inbox, column, table="queue"):
    ((left,),) = inbox.rows(f"SELECT {column} - now() FROM hookonce.{table}")  # noqa: S608  columns of the test's
    return left


@pytest.mark.parametrize("columns", [("made_at", "lease_until"), ("lease_until",)], ids=["made", "renewed"])
def test_lease_of_a_worker_that_died_while_the_clock_was_ahead_ends_soon(inbox, columns):
    inbox.on(effect)
    inbox.deliver("a")
    assert claimed(inbox)
    set_back(inbox, "claims", *columns)

    assert clocks.SetBack().put_right(inbox.connection) == 1

    assert timedelta(seconds=25) < left_until(inbox, "lease_until", "claims") <= LEASE
    assert left_until(inbox, "made_at", "claims") <= timedelta(0)
    assert clocks.SetBack().put_right(inbox.connection) == 0


def test_failure_of_an_attempt_that_began_before_waits_no_longer_than_its_pause(inbox):
    def fails(_event, _tx):
        raise ArithmeticError

    inbox.on(fails, backoff=(timedelta(minutes=1), timedelta(minutes=1)))
    inbox.deliver("a")
    inbox.work()
    set_back(inbox, "failures", "failed_at")
    set_back(inbox, "queue", "due_at")

    assert clocks.SetBack().put_right(inbox.connection) == 1

    assert timedelta(seconds=30) < left_until(inbox, "due_at") <= timedelta(seconds=61)
    assert clocks.SetBack().put_right(inbox.connection) == 0


def test_event_that_was_put_off_while_the_clock_was_ahead_waits_as_long(inbox):
    inbox.deliver("a")
    set_back(inbox, "queue", "received_at", "due_at")
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = due_at + interval '10 minutes'")

    assert clocks.SetBack().put_right(inbox.connection) == 1

    assert timedelta(minutes=9) < left_until(inbox, "due_at") <= timedelta(minutes=10)
    assert clocks.SetBack().put_right(inbox.connection) == 0


@pytest.mark.parametrize("waits", [None, "suspect"])
def test_run_that_was_to_be_run_at_once_while_the_clock_was_ahead_is(inbox, waits):
    inbox.deliver("a")
    set_back(inbox, "queue", "due_at")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'effect', waits = %s", [waits])

    assert clocks.SetBack().put_right(inbox.connection) == 1

    assert left_until(inbox, "due_at") <= timedelta(0)


def count(events, tx):
    for event in events:
        effect(event, tx)


def test_batch_that_was_gathered_while_the_clock_was_ahead_is_taken(inbox):
    inbox.on(count, batch=BatchSize(10, timedelta(seconds=10)))
    inbox.deliver("a")
    inbox.work()
    assert inbox.rows("SELECT waits FROM hookonce.queue") == [("batch",)]
    set_back(inbox, "queue", "received_at", "due_at")

    inbox.work()

    assert inbox.effects() == ["a"]


def ask_for_a_day(_event, _tx):
    raise RetryLater(timedelta(days=1))


def test_what_was_asked_for_is_left_alone(inbox):
    inbox.on(ask_for_a_day)
    inbox.deliver("a")
    inbox.work()

    assert clocks.SetBack().put_right(inbox.connection) == 0
    assert left_until(inbox, "due_at") > timedelta(hours=23)


def test_what_was_asked_for_while_the_clock_was_ahead_waits_no_longer(inbox):
    inbox.on(ask_for_a_day)
    inbox.deliver("a")
    inbox.work()
    set_back(inbox, "queue", "due_at")
    inbox.connection.execute(
        "UPDATE hookonce.queue SET schedule = 'put off@' || extract(epoch FROM now() + interval '3 hours')"
    )

    assert clocks.SetBack().put_right(inbox.connection) == 1

    assert timedelta(hours=23) < left_until(inbox, "due_at") < timedelta(hours=25)
    assert clocks.SetBack().put_right(inbox.connection) == 0


def test_running_attempt_keeps_its_lease(inbox):
    inbox.on(effect)
    inbox.deliver("a")
    assert claimed(inbox)

    assert clocks.SetBack().put_right(inbox.connection) == 0


def test_sweep_goes_through_a_queue_of_which_little_is_of_the_future(inbox, monkeypatch):
    reword(monkeypatch, clocks, ("FETCH FIRST 2000 ROWS", "FETCH FIRST 2 ROWS"))
    monkeypatch.setattr(clocks, "LOOK", timedelta(0))
    inbox.deliver(*"abcdef")
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() + event * interval '1 minute'")
    inbox.connection.execute(
        "UPDATE hookonce.queue SET received_at = received_at + interval '3 hours', "
        "due_at = due_at + interval '3 hours' WHERE event > (SELECT max(event) - 2 FROM hookonce.queue)"
    )
    notices = clocks.SetBack()

    counts = [notices.put_right(inbox.connection) for _ in range(4)]

    assert counts == [0, 0, 2, 0]


def test_clock_that_is_wrong_for_a_moment_has_nothing_forgotten(clocked):
    inbox, clock = clocked
    settings = inbox.settings
    inbox.on(effect)
    inbox.deliver("evt_1")
    work_until(inbox, ["evt_1"])
    keys, days = PostgresStore.at(settings.database_url), partitions.days(inbox.connection)
    paid = Claim(Key("pay", "order-1"), b"f" * 32, uuid4(), Terms(timedelta(minutes=1), timedelta(days=1)))
    keys.complete(keys.claim(paid), State.COMPLETED, None)
    MaintenanceTasks(settings, connect(settings.redis_url)).turn(inbox.connection)

    clock.set(400 * 24)
    for _ in range(2):  # one that began before, and one that begins now
        MaintenanceTasks(settings, connect(settings.redis_url)).turn(inbox.connection)
    again = keys.claim(replace(paid, owner=uuid4()))
    clock.set(0)
    MaintenanceTasks(settings, connect(settings.redis_url)).turn(inbox.connection)

    assert partitions.days(inbox.connection).keys() >= days.keys()
    assert again is not None
    assert again.state is State.COMPLETED
    inbox.deliver("evt_1")
    inbox.work()
    assert inbox.effects() == ["evt_1"]
    keys.close()
