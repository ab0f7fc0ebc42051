"""`event.after_commit`, and what is approximate, in handlers, batches and commands."""

import pytest

import hookonce
from hookonce.jobs.handlers import BatchSize
from hookonce.receiver.redis import approximate
from hookonce.testing import event as event_of
from tests.support.inbox import effect, inbox

__all__ = ["inbox"]


@pytest.fixture
def clicks(redis_url):
    approximate._known.clear()  # noqa: SLF001  a declaration stays for a process
    approximate.use(redis_url)
    yield hookonce.approximate("clicks", keep="1h", most=1000)
    approximate.use("")


def test_call_is_made_once_the_run_is_done(inbox):
    def leaves(event, tx):
        effect(event, tx)
        event.after_commit(lambda: seen.append(inbox.runs()))

    seen = []
    inbox.on(leaves)
    inbox.deliver("a")

    inbox.work()

    assert seen == [[("a", "leaves", "done", 1)]]


def test_coroutine_is_awaited(inbox):
    async def leaves(event, _tx):
        event.after_commit(later)

    async def later():
        seen.append(inbox.runs())

    seen = []
    inbox.on(leaves)
    inbox.deliver("a")

    inbox.work()

    assert seen == [[("a", "leaves", "done", 1)]]


def test_handler_without_a_transaction_leaves_calls_too(inbox):
    def leaves(event):
        event.after_commit(lambda: seen.append(event.event_id))

    seen = []
    inbox.on(leaves, tx="none")
    inbox.deliver("a")

    inbox.work()

    assert seen == ["a"]


def test_only_what_was_counted_is_known(inbox, clicks):
    """A batch that fails marks nothing: its ids are new again on the next attempt."""

    def count(events, tx):
        new = clicks.new(event.event_id for event in events)
        events[0].after_commit(lambda: clicks.mark(new))
        if events[0].attempt == 1:
            raise ValueError
        for event in events:
            if event.event_id in new:
                effect(event, tx)

    inbox.on(count, batch=BatchSize(10))
    inbox.deliver("a", "b")
    for _ in range(4):
        inbox.work()

    assert inbox.effects() == ["a", "b"]
    assert clicks.new(["a", "b", "c"]) == ["c"]


@pytest.mark.parametrize("is_async", [False, True])
def test_command_can_not_ask_what_is_approximate(clicks, is_async):
    async def asks_later(_event, _tx):
        return clicks.new(["a"])

    def asks(_event, _tx):
        return clicks.new(["a"])

    called = approximate.exact(asks_later if is_async else asks)
    coroutine = called(None, None) if is_async else None

    with pytest.raises(ValueError, match="asked by a command"):
        coroutine.send(None) if is_async else called(None, None)


def test_event_outside_of_a_run_says_so():
    with pytest.raises(RuntimeError, match="being handled"):
        event_of("stripe", "invoice.paid").after_commit(print)
