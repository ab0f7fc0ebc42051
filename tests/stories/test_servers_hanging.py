"""A server that hangs without hanging up: senders hear from us in time, whatever we have to say."""

import contextlib
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.ledger.database import migrate
from tests.support.stories.stack import Stack, p99, running, stay_away, until

HUNG_P99 = 0.3
"""Seconds in which a sender has its answer while Redis hangs, once the breaker has opened."""
LOOK = 0.7
ANSWERS = 20


@pytest.fixture(scope="module")
def servers_of_ours(disk):
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    with contextlib.ExitStack() as started:
        started.callback(shutil.rmtree, directory)
        postgres = Postgres.start(directory, durable=False)
        started.callback(postgres.stop)
        valkey = Valkey.start(directory)
        started.callback(valkey.stop)
        migrate.upgrade(postgres.url)
        yield postgres, valkey


@pytest.fixture(scope="module")
def running_stack(servers_of_ours, tmp_path_factory):
    postgres, valkey = servers_of_ours
    stack = Stack(tmp_path_factory.mktemp("stack"), postgres.url, valkey.url, workers=1)
    with running(stack.make_effects()):
        stack.insist(stack.event())
        yield stack


@contextlib.contextmanager
def frozen(server):
    server.kill(signal.SIGSTOP)
    try:
        yield time.monotonic()
    finally:
        server.kill(signal.SIGCONT)


def test_senders_hear_503_in_time_while_postgresql_hangs(stack, servers_of_ours):
    stack.history.faults += len(stack.workers) + len(stack.receivers)

    with stack.load(senders=10, slow=0.02), frozen(servers_of_ours[0]) as began:
        until(lambda: stack.refused(began), what="a refusal")
        stay_away(began)
        assert not any(answer.is_new for answer in stack.since(began))

    assert {answer.status for answer in stack.since(began)} == {200, 503}


def test_senders_have_their_answer_in_time_while_redis_hangs(stack, servers_of_ours):
    with stack.load(breath=0.02), frozen(servers_of_ours[1]) as began:
        until(lambda: is_prompt(stack), what="a breaker that is open in every process")
        stay_away(began)
        handled = stack.event()
        stack.insist(handled)
        done = "SELECT 1 FROM hookonce.event_states WHERE event_id = %s AND status = 'done'"
        until(lambda: stack.query(done, [handled.events()[0].event_id]), what="the handling")

    assert {answer.status for answer in stack.since(began)} == {200}


def is_prompt(stack):
    """Whether senders have their answers in time, of those that they get in a while."""
    since = time.monotonic()
    time.sleep(LOOK)
    answers = [answer.seconds for answer in stack.since(since)]
    return len(answers) > ANSWERS and p99(answers) < HUNG_P99
