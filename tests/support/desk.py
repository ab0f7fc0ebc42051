"""What the desk tells of workers and handlers, made by what makes it in a worker."""

import uuid
from contextlib import contextmanager, suppress
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from hookonce.jobs.handlers import GiveUp, Handler, Registry
from hookonce.jobs.stopping import stopping
from hookonce.receiver.ledger.runs import breakers, takeover
from hookonce.receiver.ledger.runs.breakers import Failure
from hookonce.receiver.ledger.runs.run_limits import BatchSize, Rate, RunLimit
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.worker_slots import LongAttempt, SlotReport
from hookonce.receiver.ledger.store import store
from tests.support import claiming
from tests.support.inbox import Inbox
from tests.support.new_event import new_event


def report(connection, *attempts, slots=4, busy=3, lost=0, name="host:1"):
    """Report as a worker does; `attempts` are (handler, event, backend)."""
    long = [LongAttempt(*each) for each in attempts]
    worker_slots.report(connection, uuid.uuid4(), name, SlotReport(slots, busy, lost), long)


def age(connection, seconds):
    """Have all reports been made so long ago."""
    connection.execute(
        "UPDATE hookonce.worker_slots SET seen_at = now() - make_interval(secs => %s)", [seconds]
    )


def suspects(connection, handler, count):
    """Have a process die that had so many runs under way."""
    _deliver(connection, count)
    assert len(claiming.claim(connection, _handlers(handler), slots=count).runs) == count
    connection.execute("UPDATE hookonce.claims SET lease_until = now() - interval '1 s'")
    takeover.take_over(connection)


def wait_for_place(connection, handler, count):
    """Have one run of a handler take the only place of its limit, and so many others wait for it."""
    _claim_within(connection, handler, count + 1, RunLimit(concurrency=1))


def wait_for_rate(connection, handler, count):
    """Have so many runs of a handler be given times, six seconds apart."""
    _claim_within(connection, handler, count, RunLimit(rate=Rate.parse("10/m")))


def fail_in_a_row(connection, handler, count, *, limit, error="ConnectionError (shop.py:7)"):
    """Have a handler fail so often; its breaker opens at `limit`."""
    with connection.transaction():
        for _ in range(count):
            breakers.failed(connection, handler, Failure(error, limit))


def stop(connection, handler, count, **options):
    """Have a handler fail until its breaker opens, and so many events wait for it."""
    fail_in_a_row(connection, handler, 5, limit=5, **options)
    delivered = _deliver(connection, count)
    claiming.claim(connection, _handlers(handler))
    for table, key in (("events", "id"), ("queue", "event")):
        connection.execute(
            f"UPDATE hookonce.{table} SET received_at = now() - interval '90 s' WHERE {key} = ANY(%s)",  # noqa: S608
            [[each.id for each in delivered.values()]],
        )


def halve(settings, connection, handler, error):
    """Have a handler take three events in a batch, then fail with eight, and its worker stop before it tries a half."""

    def take(events):
        if len(events) > 3:
            raise ValueError(error)

    _take_batches(settings, connection, handler, take, (3, 8))


def give_up_first(settings, connection, handler):
    """Have a handler give up the first of three events, and its worker stop before it tries the others."""

    def take(events):
        raise GiveUp("of no use", event=events[0])

    _take_batches(settings, connection, handler, take, (3,))


@contextmanager
def waiting(url, *, writes=True, aborts=False, **options):
    """A transaction that waits for something else, after it has written or without; gives its backend."""
    with psycopg.connect(url, **options) as connection:
        if writes:
            connection.execute("SELECT pg_current_xact_id()")
        else:
            connection.execute("SELECT 1")
        if aborts:
            with suppress(psycopg.errors.DivisionByZero):
                connection.execute("SELECT 1/0")
        yield connection.info.backend_pid
        connection.rollback()


def _take_batches(settings, connection, handler, take, counts):
    inbox = Inbox(settings, connection)

    def stops_when_it_fails(events, tx):  # noqa: ARG001
        try:
            take(events)
        except Exception:
            stopping.set()
            raise

    stops_when_it_fails.__name__ = handler
    inbox.on(stops_when_it_fails, batch=BatchSize(8, timedelta(0)))
    try:
        for count in counts:
            _deliver(connection, count)
            inbox.work()
        assert stopping.is_set()
    finally:
        stopping.clear()
        for drain in inbox.drains:
            drain.close()


def _deliver(connection, count):
    return store(connection, [new_event(uuid.uuid4().hex) for _ in range(count)])


def _claim_within(connection, handler, count, limit):
    _deliver(connection, count)
    claiming.claim(connection, _handlers(handler, limit=limit))


def _handlers(name, **options):
    registry = Registry()
    pauses = {"backoff": (timedelta(0), timedelta(0)), "timeout": timedelta(seconds=5)}
    registry.add(Handler(name, "stripe", "*", print, attempts=3, **pauses, **options))
    return registry


@contextmanager
def stranger(connection, database_url):
    """The database's URL for a role that may read the ledger, and sees nobody's session but its own."""
    name = f"stranger_{uuid.uuid4().hex[:12]}"
    role = sql.Identifier(name)
    connection.execute(
        sql.SQL(
            "CREATE ROLE {0}; GRANT USAGE ON SCHEMA hookonce TO {0}; "
            "GRANT SELECT ON ALL TABLES IN SCHEMA hookonce TO {0}"
        ).format(role)
    )
    separator = "&" if "?" in database_url else "?"
    try:
        yield f"{database_url}{separator}options=-c%20role%3D{name}"
    finally:
        connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))


@pytest.fixture
def soon(monkeypatch):
    """Have reports come every 50 ms, and what lasts for a tenth of a second take long."""
    monkeypatch.setattr(worker_slots, "REPORT_INTERVAL", timedelta(milliseconds=50))
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
