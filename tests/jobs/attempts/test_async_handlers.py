import asyncio
import contextlib
import contextvars
import threading
import time
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from tests.support.inbox import effect

IS_WAITING = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
EFFECT = text("INSERT INTO effects (event) VALUES (:event)")


def errors(inbox):
    return [row[0] for row in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id")]


async def write(event, tx):
    await tx.execute(EFFECT, {"event": event.event_id})


def test_async_handler_commits_with_its_run_and_returns_its_result(inbox):
    async def credit(event, tx):
        await write(event, tx)
        seen.append(inbox.effects())
        return {"credited": (await tx.execute(text("SELECT event FROM effects"))).scalars().all()}

    seen = []
    inbox.on(credit)
    inbox.deliver("a", "b")

    inbox.work()

    assert seen == [[], ["a"]]
    assert inbox.effects() == ["a", "b"]
    assert inbox.rows("SELECT result FROM hookonce.run_states ORDER BY event") == [
        ({"credited": ["a"]},),
        ({"credited": ["a", "b"]},),
    ]


def test_async_handler_that_fails_leaves_no_effect_and_is_tried_again(inbox):
    async def shaky(event, tx):
        await write(event, tx)
        if event.attempt < 3:
            raise LookupError("not yet")

    inbox.on(shaky)
    inbox.on(effect)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == ["a", "a"]
    assert inbox.runs() == [("a", "effect", "done", 1), ("a", "shaky", "done", 3)]


def test_statement_of_an_async_handler_does_not_hold_up_its_other_tasks(inbox):
    async def patient(_, tx):
        async def let_go():
            while not inbox.rows(IS_WAITING):  # noqa: ASYNC110  of another session
                await asyncio.sleep(0.005)
            inbox.connection.execute("SELECT pg_advisory_unlock(1)")

        await asyncio.gather(tx.execute(text("SELECT pg_advisory_xact_lock(1)")), let_go())

    inbox.connection.execute("SELECT pg_advisory_lock(1)")
    inbox.on(patient, attempts=1, timeout=timedelta(seconds=20))
    inbox.deliver("a")

    inbox.work()

    assert errors(inbox) == []


def test_tasks_of_an_async_handler_take_turns_on_its_connection(inbox):
    async def gathering(event, tx):
        await asyncio.gather(*(write(event, tx) for _ in range(20)))

    inbox.on(gathering)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == ["a"] * 20


def test_savepoint_and_stream_work_in_an_async_handler(inbox):
    inbox.connection.execute("ALTER TABLE effects ADD UNIQUE (event)")

    async def careful(event, tx):
        await write(event, tx)
        with contextlib.suppress(IntegrityError):
            async with tx.begin_nested():
                await write(event, tx)
        rows = await tx.stream(text("SELECT generate_series(1, 500)"))
        return sum([row[0] async for row in rows])

    inbox.on(careful)
    inbox.deliver("a")

    inbox.work()

    assert errors(inbox) == []
    assert inbox.rows("SELECT result FROM hookonce.run_states") == [(125250,)]
    assert inbox.effects() == ["a"]


def test_async_handler_may_not_commit_the_transaction_it_is_given(inbox):
    async def meddler(_, tx):
        await tx.commit()

    inbox.on(meddler, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert "the transaction is hookonce's" in errors(inbox)[0]


async def sleep(*_):
    with contextlib.suppress(Exception):
        await asyncio.sleep(30)


async def query(_, tx):
    await tx.execute(text("SELECT pg_sleep(30)"))


async def block(*_):
    time.sleep(30)  # noqa: ASYNC251  what must be cut off too


async def spin(*_):
    while True:  # noqa: ASYNC110  never waiting
        await asyncio.sleep(0)


async def swallow(*_):
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(30)


async def wait_for_a_task(*_):
    await asyncio.gather(asyncio.sleep(30), asyncio.sleep(20))


@pytest.mark.parametrize("slow", [sleep, query, block, spin, swallow, wait_for_a_task])
def test_async_handler_is_cut_off_at_its_time_limit(inbox, slow):
    async def handler(event, tx):
        await write(event, tx)
        await slow(event, tx)

    inbox.on(handler, attempts=1, timeout=timedelta(seconds=0.1))
    inbox.on(write)
    inbox.deliver("a", "b")

    while inbox.work():  # its budget may end before
        pass

    assert inbox.runs() == [
        ("a", "handler", "dead", 1),
        ("a", "write", "done", 1),
        ("b", "handler", "dead", 1),
        ("b", "write", "done", 1),
    ]
    assert all("took longer than 0.1 s" in error for error in errors(inbox))
    assert inbox.effects() == ["a", "b"]


def test_handler_that_is_cut_off_can_still_clean_up(inbox):
    async def tidy(*_):
        try:
            await asyncio.sleep(0 if cleaned else 30)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    cleaned = []
    inbox.on(tidy, attempts=9, timeout=timedelta(seconds=0.1))  # one of which begins in time
    inbox.deliver("a")

    inbox.work()

    assert cleaned


def test_async_handler_keeps_its_own_time_limit_for_a_statement(inbox):
    async def hasty(event, tx):
        await write(event, tx)
        if event.attempt == 1:
            async with asyncio.timeout(0.05):
                await query(event, tx)

    inbox.on(hasty)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "hasty", "done", 2)]
    assert errors(inbox)[0].startswith("TimeoutError")
    assert inbox.effects() == ["a"]


def test_handler_that_swallows_a_cancelled_statement_has_failed(inbox):
    async def careless(event, tx):
        await write(event, tx)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await query(event, tx)

    inbox.on(careless, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "careless", "dead", 1)]
    assert "a statement was cancelled" in errors(inbox)[0]
    assert inbox.effects() == []


def test_tasks_left_behind_are_a_failed_attempt_that_names_them(inbox):
    async def notify():
        await asyncio.sleep(30)

    async def forgetful(event, tx):
        await write(event, tx)
        tasks.append(asyncio.create_task(notify()))

    tasks = []
    inbox.on(forgetful, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "forgetful", "dead", 1)]
    assert "notify" in errors(inbox)[0]
    assert tasks[0].cancelled()
    assert inbox.effects() == []


def test_runs_share_a_loop_and_no_context_variables(inbox):
    async def looking(*_):
        seen.append((asyncio.get_running_loop(), mark.get("clean"), threading.current_thread()))
        mark.set("stained")

    seen, mark = [], contextvars.ContextVar("mark")
    inbox.on(looking)
    inbox.deliver("a", "b")

    inbox.work()

    loop = seen[0][0]
    assert seen == [(loop, "clean", threading.main_thread())] * 2


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, RecursionError])
def test_async_handler_may_raise_anything(inbox, error):
    async def wild(*_):
        await asyncio.sleep(0)
        raise error

    inbox.on(wild, attempts=1)
    inbox.on(write)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "wild", "dead", 1), ("a", "write", "done", 1)]


def test_plain_function_that_returns_a_coroutine_has_failed_and_says_why(inbox):
    inbox.on(lambda event, tx: write(event, tx), attempts=1)  # noqa: PLW0108  a decorator may do so
    inbox.deliver("a")

    inbox.work()

    assert "returned a coroutine" in errors(inbox)[0]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_handler_that_raises_what_ends_processes_fails_and_leaves_no_task(inbox, kind):
    async def once(event, tx):
        await write(event, tx)
        if not interrupted:
            interrupted.append(event)
            raise kind

    interrupted = []
    inbox.on(once)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == ["a", "b"]
    assert inbox.rows("SELECT count(*) FROM hookonce.failures") == [(1,)]


def test_blocking_code_on_the_connection_of_an_async_handler_blocks_and_works(inbox):
    async def mixed(event, tx):
        driver = tx.sync_connection.connection.dbapi_connection
        driver.execute("INSERT INTO effects VALUES (%s)", [event.event_id])
        waiting = asyncio.create_task(tx.execute(text("SELECT pg_sleep(0.2)")))
        await asyncio.sleep(0.05)
        try:
            driver.execute("SELECT 1")
        finally:
            await waiting

    inbox.on(mixed, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert "another task's statement is under way" in errors(inbox)[0]
    ((trace,),) = inbox.rows("SELECT convert_from(traceback, 'UTF8') FROM hookonce.failures")
    assert "MissingGreenlet" not in trace
