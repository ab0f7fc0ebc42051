"""PostgreSQL or Valkey hangs: whoever waits for it waits a bounded time, and nobody else waits at all.

This is what shows that psycopg and redis-py let the other greenlets of the process go on.
"""

import contextlib
import json
import shutil
import signal
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.ledger.database import migrate
from hookonce.receiver.redis.client import REDIS_TIMEOUT
from tests.http.conftest import serving
from tests.support.raw_http import connect, request
from tests.support.waiting import until

SLOW_COMMIT, CROWD = 1.2, 900
"""Seconds that each statement takes which stores events, and deliveries that come at once."""
DELIVERY_DEADLINE, PROBE_DEADLINE = 9, 4
"""Seconds: senders give ten or more, what asks for readiness five."""


@pytest.fixture(scope="module")
def own(tmp_path_factory, disk):
    """Servers of this module's own, to be frozen."""
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        postgres = Postgres.start(directory, durable=False)
        stack.callback(postgres.stop)
        valkey = Valkey.start(directory)
        stack.callback(valkey.stop)
        migrate.upgrade(postgres.url)
        with serving(tmp_path_factory.mktemp("serve"), postgres.url, valkey.url) as server:
            yield server, postgres, valkey
            assert "Traceback" not in server.logged()


@contextlib.contextmanager
def frozen(process):
    process.kill(signal.SIGSTOP)
    try:
        yield
    finally:
        process.kill(signal.SIGCONT)


def event():
    return json.dumps({"id": f"evt_{uuid.uuid4().hex}", "type": "a"}).encode()


def until_accepted(server, body):
    """Send again as a sender would until it is taken; give the last answer."""
    return until(lambda: accepted(server, body), what="a 200")


def accepted(server, body):
    answer = server.deliver(body)
    return answer if answer.status == 200 else None


class Frozen(NamedTuple):
    """What was answered while PostgreSQL hung, and after that."""

    others: list
    """To requests that need no ledger, in turn: /livez, a forged delivery."""
    were_first: bool
    """Whether these had their answers before any that needs the ledger."""
    ready: object
    seconds: dict
    """How long the slowest delivery and the probe took."""
    known: object
    fresh: list
    retried: list
    again: list


@pytest.fixture(scope="module")
def hang(own):
    """Have PostgreSQL hang once, with twenty new deliveries, a known one, a probe and others under way."""
    server, postgres, _ = own
    known, fresh = event(), [event() for _ in range(20)]
    until_accepted(server, known)
    with frozen(postgres), ThreadPoolExecutor(22) as pool:
        waiting = [pool.submit(timed, server.deliver, body) for body in (known, *fresh)]
        probe = pool.submit(timed, server.exchange, request("GET", "/readyz"))
        others = [call() for _ in range(5) for call in unconcerned(server)]
        were_first = not any(each.done() for each in waiting[1:])
        delivered, delays = zip(*[each.result() for each in waiting], strict=True)
    ready, ready_after = probe.result()
    seconds = {"delivery": max(delays), "probe": ready_after}
    retried = [until_accepted(server, body) for body in fresh]
    again = [server.deliver(body) for body in fresh]
    return Frozen(others, were_first, ready, seconds, delivered[0], delivered[1:], retried, again)


def timed(call, *arguments):
    began = time.monotonic()
    return call(*arguments), time.monotonic() - began


def test_receiver_stays_responsive_while_postgresql_hangs(hang):
    assert [(each.status, each.code) for each in hang.others] == [(200, None), (401, "bad_signature")] * 5
    assert hang.were_first
    assert {(each.status, each.code) for each in hang.fresh} == {(503, "ledger_unavailable")}
    assert all(each.headers["retry-after"] for each in hang.fresh)
    assert hang.known.status in {200, 503}
    assert hang.seconds["delivery"] < DELIVERY_DEADLINE


def unconcerned(server):
    """Requests that need no ledger."""
    forged = server.signed(event())
    forged = forged[:-3] + b"!" + forged[-2:]
    return (
        lambda: server.exchange(request("GET", "/livez")),
        lambda: server.exchange(forged),
    )


def test_receiver_recovers_by_itself_when_postgresql_thaws(hang):
    assert {answer.status for answer in hang.fresh} == {503}
    assert {answer.status for answer in hang.retried} == {200}
    assert {answer.document["status"] for answer in hang.again} == {"duplicate"}


def test_readiness_tells_that_postgresql_hangs(hang):
    assert (hang.ready.status, hang.ready.document["database"]) == (503, "unreachable")
    assert hang.seconds["probe"] < PROBE_DEADLINE


@contextlib.contextmanager
def slow_to_store(postgres):
    """A ledger on a busy disk: whatever stores events takes so much longer, however many there are."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql"
            f" AS 'BEGIN PERFORM pg_sleep({SLOW_COMMIT}); RETURN NULL; END'"
        )
        connection.execute(
            "CREATE TRIGGER busy AFTER INSERT ON hookonce.events EXECUTE FUNCTION public.wait()"
        )
        try:
            yield
        finally:
            connection.execute("DROP FUNCTION public.wait() CASCADE")


def test_receiver_takes_a_crowd_in_while_the_disk_is_busy(own):
    server, postgres, _ = own
    until_accepted(server, event())
    requests = [server.signed(event()) for _ in range(CROWD)]

    with slow_to_store(postgres), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(server.port, 30)) for _ in requests]
        for client, sent in zip(clients, requests, strict=True):
            client.sendall(sent)
        answers = [client.recv(4096).split(b" ", 2)[1] for client in clients]

    assert set(answers) == {b"200"}


def test_receiver_accepts_promptly_while_valkey_hangs(own):
    server, _, valkey = own
    until_accepted(server, event())

    with frozen(valkey), ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(server.deliver, event()) for _ in range(20)]
        others = [call() for _ in range(5) for call in unconcerned(server)]
        delivered = [each.result() for each in waiting]
        until(lambda: is_prompt(server), what="a breaker that is open")

    assert [each.status for each in others] == [200, 401] * 5
    assert {answer.status for answer in delivered} == {200}


def is_prompt(server):
    """Whether a delivery has its answer in time, as no wait for a Redis that hangs leaves it."""
    began = time.monotonic()
    assert server.deliver(event()).status == 200
    return time.monotonic() - began < REDIS_TIMEOUT.total_seconds()


def test_receiver_has_the_window_back_when_valkey_thaws(own):
    server, _, valkey = own
    body = event()
    with frozen(valkey):
        server.deliver(body)

    again = server.deliver(body)

    assert (again.status, again.document["status"]) == (200, "duplicate")
