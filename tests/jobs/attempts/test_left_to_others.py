"""Whatever a handler leaves in its process or keeps of what it was given: no other handler finds or feels it."""

import asyncio
import contextlib
import contextvars
import threading
import time
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from psycopg import postgres
from psycopg.adapt import Loader
from sqlalchemy import text
from sqlalchemy.event import listen, remove
from sqlalchemy.pool import Pool

from hookonce.jobs.attempts.driver_cursors import GivenCursor
from tests.jobs.attempts.test_left_in_sessions import WORKERS, needs_a_pooler, worked
from tests.support.inbox import effect, inbox
from tests.support.pooler import pooling

__all__ = ["inbox"]


def errors(inbox):
    return [row[0] for row in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id")]


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
def test_context_variable_of_a_handler_is_not_seen_by_the_next(inbox, worker):
    def handler(event, _):
        seen.append(tenant.get())
        tenant.set(event.event_id)

    tenant, seen = contextvars.ContextVar("tenant", default="nobody"), []
    inbox.on(handler)
    inbox.deliver(*(str(n) for n in range(20)))

    with worker(inbox) as work:
        worked(inbox, work)

    assert seen == ["nobody"] * 20


def fetching(result):
    with contextlib.suppress(Exception):
        result.fetchmany(100)


@pytest.mark.parametrize("use", [fetching, lambda result: result.close()], ids=["fetched", "closed"])
def test_stream_that_is_kept_does_not_break_the_next_transaction(inbox, use):
    def handler(event, tx):
        if kept:
            use(kept[0])
        else:
            numbers = text("SELECT generate_series(1, 10000)")
            kept.append(tx.execute(numbers, execution_options={"stream_results": True}))
            kept[0].fetchone()
        effect(event, tx)

    kept = []
    inbox.on(handler, attempts=1)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == ["a", "b"]


def test_loop_that_a_handler_has_stopped_goes_on_with_the_next(inbox):
    async def handler(event, _):
        if event.event_id == "a":
            loop = asyncio.get_running_loop()
            loop.call_later(0.01, loop.stop)
        else:
            await asyncio.sleep(0.05)

    inbox.on(handler, attempts=1)
    inbox.deliver("a", "b")

    inbox.work()

    assert errors(inbox) == []


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
def test_result_that_takes_no_end_is_cut_off_at_the_time_limit(inbox, worker):
    class Lazy(dict):
        def items(self):
            while True:
                time.sleep(0.01)

    def handler(*_):
        return Lazy(a=1)

    inbox.on(handler, attempts=1, timeout=timedelta(seconds=0.2))
    inbox.deliver("a")

    with worker(inbox) as work:
        worked(inbox, work)

    assert errors(inbox) == ["took longer than 0.2 s"]


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
def test_session_that_a_handler_opens_by_the_engine_goes_to_nobody_else(inbox, worker):
    def handler(_, tx):
        found.append(tx.exec_driver_sql("SELECT coalesce(current_setting('app.tenant', true), '')").scalar())
        with tx.engine.connect() as other:
            other.exec_driver_sql("SET app.tenant = 'acme'")
            other.commit()
        assert tx.connection.driver_connection  # so that another session follows

    found = []
    inbox.on(handler)
    inbox.deliver(*(str(n) for n in range(10)))

    with worker(inbox) as work:
        worked(inbox, work)

    assert found == [""] * 10


class Strange(Loader):
    def load(self, data):
        return "strange" if data else None


@pytest.fixture
def strange_adapters():
    """What a module of handlers has registered for the whole program."""
    for name in (
        "bool",
        "int2",
        "int4",
        "int8",
        "uuid",
        "timestamptz",
        "interval",
        "bytea",
        "json",
        "numeric",
    ):
        psycopg.adapters.register_loader(name, Strange)
    yield
    postgres.register_default_adapters(psycopg.adapters)


@pytest.mark.usefixtures("strange_adapters")
def test_adapters_of_the_whole_program_are_for_handlers_and_not_for_us(inbox):
    def handler(event, tx):
        if event.event_id == "b" and event.attempt == 1:
            inbox.drains[0]._heartbeat.beat()  # noqa: SLF001
            effect(event, tx)
            tx.connection.driver_connection.execute("COMMIT")
        return tx.exec_driver_sql("SELECT 7").scalar()

    inbox.on(handler, breaker=2)
    inbox.deliver("a", "b", "c")

    inbox.work()

    status = {event: status for event, _, status, _ in inbox.runs()}
    assert status == {"a": "done", "b": "dead", "c": "done"}
    assert inbox.rows("SELECT result FROM hookonce.runs WHERE status = 'done'") == [("strange",)] * 2


def set_path(connection, _):
    connection.cursor().execute("SET search_path = app, public")


@pytest.fixture
def listener():
    """What a program does with each connection of SQLAlchemy's."""
    listen(Pool, "connect", set_path)
    yield
    remove(Pool, "connect", set_path)


@pytest.mark.usefixtures("listener")
def test_what_a_listener_to_all_pools_has_set_stays_from_run_to_run(inbox):
    def handler(_, tx):
        found.append(tx.exec_driver_sql("SHOW search_path").scalar())

    found = []
    inbox.on(handler)
    inbox.deliver("a", "b")

    inbox.work()

    assert found == ["app, public"] * 2


def test_statement_of_a_thread_that_waited_for_the_connection_is_not_the_next_ones(inbox, monkeypatch):
    def insert(tx):
        with contextlib.suppress(RuntimeError):
            tx.exec_driver_sql("INSERT INTO effects VALUES ('stray')")

    def handler(event, tx):
        effect(event, tx)
        if event.event_id == "a":
            threads.append(threading.Thread(target=insert, args=[tx]))
            threads[0].start()
            assert looked.wait(20)
        else:
            returned.set()
            threads[0].join()

    def execute(cursor, query, *args, **options):
        if "stray" in query:
            looked.set()
            returned.wait(20)
        return psycopg.Cursor.execute(cursor, query, *args, **options)

    looked, returned, threads = threading.Event(), threading.Event(), []
    monkeypatch.setattr(GivenCursor, "execute", execute)
    inbox.on(handler)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == ["a", "b"]


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
def test_error_that_takes_no_end_to_be_told_is_cut_off(inbox, worker):
    class EndlessError(Exception):
        def __str__(self):
            return endless()

    def endless():
        while True:
            time.sleep(0.01)

    def handler(*_):
        raise EndlessError

    inbox.on(handler, attempts=1, timeout=timedelta(seconds=0.2))
    inbox.deliver("a")

    with worker(inbox) as work:
        worked(inbox, work)

    assert errors(inbox) == ["took longer than 0.2 s"]


@needs_a_pooler
def test_level_that_a_database_is_used_to_is_not_ours_behind_a_pooler(inbox, data_directory):
    def handler(_, tx):
        found.append(tx.exec_driver_sql("SHOW transaction_isolation").scalar())

    found = []
    name = inbox.connection.info.dbname
    inbox.connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    inbox.on(handler)
    inbox.deliver("a", "b")

    with pooling(inbox.settings.database_url, data_directory, settings="SET timezone = UTC") as url:
        inbox.settings = replace(inbox.settings, database_url=url)
        inbox.work()
        inbox.drains.pop().close()

    assert found == ["read committed"] * 2
