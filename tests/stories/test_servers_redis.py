"""Redis is an accelerator: whatever befalls it, deliveries are taken, fast, and every event is handled once."""

import contextlib
import shutil
import tempfile
import threading
import time
from pathlib import Path

import pytest
import redis

from hookonce.receiver.dev.embedded import Valkey
from hookonce.receiver.dev.embedded import valkey as embedded_valkey
from tests.support.stories.stack import OUTAGE, Stack, running, stay_away, until

LOADING = max(20, OUTAGE)
"""Seconds that Redis would load its data for; it is let go as soon as the story has seen enough."""
KEYS_A_SECOND = 300
NEW = 40
"""Events that are taken while Redis is flushed."""


@pytest.fixture(scope="module")
def valkey(disk):
    """A server that can be told to load its data again, slowly."""
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    with pytest.MonkeyPatch.context() as patch:  # also for each restart
        patch.setitem(embedded_valkey.SETTINGS, "enable-debug-command", "local")
        patch.setitem(embedded_valkey.SETTINGS, "loading-process-events-interval-bytes", "1024")
        server = Valkey.start(directory)
        yield server
        server.stop()
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def running_stack(valkey, fresh_database, tmp_path_factory):
    with (
        fresh_database() as url,
        running(Stack(tmp_path_factory.mktemp("stack"), url, valkey.url, workers=1).make_effects()) as stack,
    ):
        stack.insist(stack.event())
        yield stack


@pytest.fixture
def stack(running_stack):
    """The stack, to be left with nothing lost and nothing doubled; no sender ever hears of Redis's troubles."""
    began = time.monotonic()
    yield running_stack
    assert running_stack.violations() == []
    print(running_stack.figures(began))  # noqa: T201  for `make soak`
    assert {answer.status for answer in running_stack.since(began)} == {200}
    assert all(process.poll() is None for process in running_stack.processes.values())


@pytest.fixture
def client(valkey):
    with redis.Redis.from_url(valkey.url) as client:
        yield client


def remembered(client):
    """How many events the window knows."""
    return len(client.keys("hookonce:*"))


def handled_with_redis_as_it_is(stack):
    """Deliver an event and wait until it is done."""
    message = stack.event()
    stack.insist(message)
    done = "SELECT 1 FROM hookonce.event_states WHERE event_id = %s AND status = 'done'"
    until(lambda: stack.query(done, [message.events()[0].event_id]), what="the handling")


def test_senders_and_workers_go_on_while_redis_is_killed_and_comes_back_empty(stack, valkey, client):
    with stack.load():
        began = time.monotonic()
        valkey.kill()
        handled_with_redis_as_it_is(stack)
        stay_away(began)
        valkey.restart()
        until(lambda: remembered(client), what="the use of the new Redis")

    handled_with_redis_as_it_is(stack)


def test_nothing_is_lost_or_doubled_while_redis_is_flushed_all_the_time(stack, client):
    began = time.monotonic()
    with stack.load():
        until(lambda: client.flushall() and is_over(stack, began), what="the events")


def is_over(stack, began):
    return sum(each.is_new for each in stack.since(began)) > NEW and time.monotonic() > began + OUTAGE


def test_nothing_is_lost_or_doubled_while_redis_is_restarted_again_and_again(stack, valkey):
    with stack.load():
        for _ in range(5):
            valkey.restart()
            stack.insist(stack.event())


def test_senders_and_workers_go_on_while_redis_is_out_of_memory(stack, client):
    began = time.monotonic()
    with stack.load(), memory_full(client):
        handled_with_redis_as_it_is(stack)
        stay_away(began)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("hookonce:test", "x")

    handled_with_redis_as_it_is(stack)


def test_senders_and_workers_go_on_while_redis_loads_its_data(stack, valkey, client):
    with stack.load(), loading(valkey, client):
        with pytest.raises(redis.exceptions.BusyLoadingError):
            client.get("hookonce:test")
        handled_with_redis_as_it_is(stack)
        with pytest.raises(redis.exceptions.BusyLoadingError):
            client.get("hookonce:test")

    handled_with_redis_as_it_is(stack)


@contextlib.contextmanager
def loading(valkey, client):
    """Have the server load its data again, which it takes its time for as long as the block lasts."""
    keys = LOADING * KEYS_A_SECOND
    with client.pipeline(transaction=False) as fill:
        for n in range(keys):
            fill.set(f"hookonce:test:{n}", "x" * 100)
        fill.execute()
    client.config_set("key-load-delay", int(1e6 / KEYS_A_SECOND))
    with redis.Redis.from_url(valkey.url, socket_timeout=None) as other:
        reload = threading.Thread(target=other.execute_command, args=["DEBUG", "RELOAD"])
        reload.start()
        until(lambda: is_loading(client), what="the loading")
        began = time.monotonic()
        yield
        stay_away(began)
        client.config_set("key-load-delay", 0)
        reload.join()


def is_loading(client):
    return client.info("persistence")["loading"] == 1


@contextlib.contextmanager
def memory_full(client):
    client.config_set("maxmemory", 1)
    try:
        yield
    finally:
        client.config_set("maxmemory", 0)
