"""A handler that raises what ends processes fails its attempt, and takes nobody along, of whatever kind it is."""

import asyncio

import pytest
from sqlalchemy import text

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.jobs.attempts.test_left_in_sessions import WORKERS, worked
from tests.support.django_project import entry
from tests.support.inbox import inbox

__all__ = ["entry", "inbox"]

WRITE = text("INSERT INTO effects (event) VALUES (:event)")


def kinds(leave):  # noqa: C901  one of each
    """Return handlers of all kinds, each of which writes and then calls `leave` with its event's name."""

    def plain(event, tx):
        tx.execute(WRITE, {"event": event.event_id})
        leave(event.event_id)

    def session(event, session):
        session.execute(WRITE, {"event": event.event_id})
        leave(event.event_id)

    async def coroutine(event, tx):
        await tx.execute(WRITE, {"event": event.event_id})
        leave(event.event_id)

    async def task(event, tx):
        async def beside():
            leave(event.event_id)

        await tx.execute(WRITE, {"event": event.event_id})
        await asyncio.create_task(beside())

    def block(event):
        leave(event.event_id)
        with event.tx() as tx:
            tx.execute(WRITE, {"event": event.event_id})

    def inside_block(event):
        with event.tx() as tx:
            tx.execute(WRITE, {"event": event.event_id})
            leave(event.event_id)

    def step(event, tx):
        tx.execute(WRITE, {"event": event.event_id})
        event.step("only", lambda _: leave(event.event_id))

    def batch(events, tx):
        for event in events:
            tx.execute(WRITE, {"event": event.event_id})
            leave(event.event_id)

    return {
        "plain": (plain, {}),
        "session": (session, {}),
        "coroutine": (coroutine, {}),
        "task": (task, {}),
        "block": (block, {"tx": "none"}),
        "inside_block": (inside_block, {"tx": "none"}),
        "step": (step, {}),
        "batch": (batch, {"batch": BatchSize(2)}),
    }


def leaving(error):
    """Return what raises an error, once, for the event `a`."""
    left = []

    def leave(name):
        if name == "a" and not left:
            left.append(name)
            raise error

    return leave


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("kind", kinds(None))
@pytest.mark.parametrize("worker", WORKERS)
def test_handler_that_leaves_fails_and_takes_nobody_along(inbox, worker, kind, error):
    function, options = kinds(leaving(error))[kind]
    inbox.on(function, **options)

    with WORKERS[worker](inbox) as work:
        inbox.deliver("a", "b", "c")
        worked(inbox, work)
        inbox.deliver("d")
        worked(inbox, work)

    assert inbox.effects() == ["a", "b", "c", "d"]
    assert [(event, status) for event, _, status, _ in inbox.runs()] == [(event, "done") for event in "abcd"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.usefixtures("entry")
def test_handler_in_django_that_leaves_fails_and_takes_nobody_along(inbox, worker, error):
    leave = leaving(error)

    def writes(event, connection):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO effects (event) VALUES (%s)", [event.event_id])
        leave(event.event_id)

    inbox.on(writes)
    inbox.transactions = DjangoTransactions

    with WORKERS[worker](inbox) as work:
        inbox.deliver("a", "b", "c")
        worked(inbox, work)

    assert inbox.effects() == ["a", "b", "c"]
    assert [(event, status) for event, _, status, _ in inbox.runs()] == [(event, "done") for event in "abc"]
