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

import psycopg
import pytest

from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.ledger.database import migrate
from tests.http.conftest import serving
from tests.support.raw_http import connect, request

AT_ONCE = 1
SLOW_COMMIT, CROWD = 1.2, 900
"""Seconds that each statement takes which stores events, and deliveries that come at once."""
LEDGER_DEADLINE = 9
"""Seconds; some senders give three."""
RECOVERED = 20


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


def timed(call):
    started = time.monotonic()
    answer = call()
    return answer, time.monotonic() - started


def until_accepted(server, body):
    """Send again as a sender would until it is taken; give the last answer."""
    until = time.monotonic() + RECOVERED
    while (answer := server.deliver(body)).status != 200 and time.monotonic() < until:
        pass
    return answer


def test_receiver_stays_responsive_while_postgresql_hangs(own):
    server, postgres, _ = own
    known, fresh = event(), [event() for _ in range(20)]
    until_accepted(server, known)

    with frozen(postgres), ThreadPoolExecutor(21) as pool:
        waiting = [pool.submit(timed, lambda body=body: server.deliver(body)) for body in (known, *fresh)]
        others = [timed(call) for _ in range(5) for call in unconcerned(server)]
        delivered = [each.result() for each in waiting]

    assert [(answer.status, answer.code) for answer, _ in others] == [(200, None), (401, "bad_signature")] * 5
    assert max(seconds for _, seconds in others) < AT_ONCE
    assert {(answer.status, answer.code) for answer, _ in delivered[1:]} == {(503, "ledger_unavailable")}
    assert all(answer.headers["retry-after"] for answer, _ in delivered[1:])
    assert delivered[0][0].status in {200, 503}
    assert max(seconds for _, seconds in delivered) < LEDGER_DEADLINE


def unconcerned(server):
    """Requests that need no ledger."""
    forged = server.signed(event())
    forged = forged[:-3] + b"!" + forged[-2:]
    return (
        lambda: server.exchange(request("GET", "/livez")),
        lambda: server.exchange(forged),
    )


def test_receiver_recovers_by_itself_when_postgresql_thaws(own):
    server, postgres, _ = own
    bodies = [event() for _ in range(20)]
    with frozen(postgres), ThreadPoolExecutor(20) as pool:
        refused = list(pool.map(server.deliver, bodies))

    retried = [until_accepted(server, body) for body in bodies]
    again = [server.deliver(body) for body in bodies]

    assert {answer.status for answer in refused} == {503}
    assert {answer.status for answer in retried} == {200}
    assert {answer.document["status"] for answer in again} == {"duplicate"}


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


def test_readiness_tells_within_its_deadline_that_postgresql_hangs(own):
    server, postgres, _ = own
    with frozen(postgres):
        answer, seconds = timed(lambda: server.exchange(request("GET", "/readyz")))

    assert (answer.status, answer.document["database"]) == (503, "unreachable")
    assert seconds < 4


def test_receiver_accepts_promptly_while_valkey_hangs(own):
    server, _, valkey = own
    until_accepted(server, event())

    with frozen(valkey), ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(timed, lambda: server.deliver(event())) for _ in range(20)]
        others = [timed(call) for _ in range(5) for call in unconcerned(server)]
        delivered = [each.result() for each in waiting]
        later = [timed(lambda: server.deliver(event())) for _ in range(5)]

    assert max(seconds for _, seconds in others) < AT_ONCE
    assert {answer.status for answer, _ in delivered + later} == {200}
    assert max(seconds for _, seconds in delivered) < LEDGER_DEADLINE
    assert min(seconds for _, seconds in later) < 0.3


def test_receiver_has_the_window_back_when_valkey_thaws(own):
    server, _, valkey = own
    body = event()
    with frozen(valkey):
        server.deliver(body)

    again = server.deliver(body)

    assert (again.status, again.document["status"]) == (200, "duplicate")
