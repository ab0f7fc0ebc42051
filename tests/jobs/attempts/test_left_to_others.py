"""Whatever a handler leaves in its process or keeps of what it was given: no other handler finds or feels it."""

import asyncio
import contextlib
import contextvars
import time
from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.jobs.attempts.test_left_in_sessions import WORKERS, worked
from tests.support.inbox import effect, inbox

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
