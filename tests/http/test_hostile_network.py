"""What strangers do to a port on the open network costs honest senders nothing: they get their answer in time."""

import contextlib
import itertools
import json
import socket
import statistics
import struct
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from hookonce.receiver.web.http.application import THREADS
from hookonce.receiver.web.http.limits import LARGE_BODY
from tests.http.conftest import serving
from tests.support.raw_http import connect, converse, exchange, request
from tests.support.waiting import in_one_of_three

HEAD = b"POST /hooks/stripe HTTP/1.1\r\nHost: test\r\nStripe-Signature: t=1,v1=" + b"0" * 64 + b"\r\n"
PROMPT = 1
"""Seconds an honest sender waits at most."""


pytestmark = pytest.mark.usefixtures("many_files")


@pytest.fixture(scope="module")
def server(fresh_database, fresh_redis, tmp_path_factory):
    """One worker with the settings that users get."""
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        serving(
            tmp_path_factory.mktemp("serve"),
            database_url,
            redis_url,
            max_body=25 * 1024 * 1024,
            HOOKONCE_ADMIN_TOKEN="t" * 40,
        ) as running,
    ):
        yield running
        assert "Traceback" not in running.logged()


def event():
    return json.dumps({"id": f"evt_{uuid.uuid4().hex}", "type": "a"}).encode()


def honest_waits(server, times=7):
    """Deliver new events, one by one, each over a connection of its own; give the seconds each took."""
    waits = []
    for _ in range(times):
        data = server.signed(event())
        started = time.monotonic()
        answer = server.exchange(data)
        waits.append(time.monotonic() - started)
        assert (answer.status, answer.document["status"]) == (200, "accepted")
    return waits


def assert_prompt(server, strangers=contextlib.nullcontext):
    """Honest senders are answered within a second beside strangers, who are others in each round."""

    def beside_them():
        with strangers():
            return honest_waits(server)

    in_one_of_three(
        beside_them, lambda waits: sorted(waits)[-2] < PROMPT and statistics.median(waits) < PROMPT / 2
    )


@contextlib.contextmanager
def clients(server, number, data=b""):
    """Connections that have sent `data` and now do nothing."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(number):
            client = stack.enter_context(connect(server.port))
            client.sendall(data)
            opened.append(client)
        yield opened


@contextlib.contextmanager
def dripping(opened, drops, pause=0.05):
    """Send one byte of `drops` after the other to each connection, again and again, in the background."""
    enough = threading.Event()

    def drip():
        for drop in itertools.cycle(drops):
            for client in opened:
                with contextlib.suppress(OSError):
                    client.send(drop, socket.MSG_DONTWAIT)
            if enough.wait(pause):
                return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


STALLS = {
    "1,000 that say nothing": (1000, b""),
    "300 that stall in the request line": (300, b"POST /hoo"),
    "300 that stall in the head": (300, HEAD),
    "300 that stall before the body": (300, HEAD + b"Content-Length: 1000\r\n\r\n"),
    "300 that stall in the body": (300, HEAD + b"Content-Length: 1000\r\n\r\n" + b"x" * 500),
    "300 that stall in a chunk": (300, HEAD + b"Transfer-Encoding: chunked\r\n\r\nfff\r\nabc"),
    "300 that announce 25 MB": (300, HEAD + b"Content-Length: 26214400\r\n\r\n"),
    "200 that asked and never close": (200, request("GET", "/livez", {"Connection": "close"})),
    "200 that were refused and never close": (200, request("PUT", headers={"Content-Length": "9"})),
    "200 that speak TLS": (200, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "200 that read none of 20 answers": (200, request("GET", "/livez") * 20),
}


@pytest.mark.parametrize(("number", "data"), STALLS.values(), ids=STALLS)
def test_receiver_answers_promptly_beside_stalled_clients(server, number, data):
    assert_prompt(server, partial(clients, server, number, data))


def test_console_answers_promptly_beside_forms_that_stall(server):
    page = request("GET", "/admin/sign-in")
    cookie, _, _ = server.exchange(page).headers["set-cookie"].partition(";")
    form = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
    small = request(target="/admin/sign-in", headers=form | {"Content-Length": "1000"}) + b"x"
    large = request(target="/admin/sign-in", headers=form | {"Content-Length": str(4 * LARGE_BODY)})

    def beside_them():
        with (
            clients(server, 2 * THREADS, small),
            clients(server, 2 * THREADS, large + b"x" * 2 * LARGE_BODY),
        ):
            started = time.monotonic()
            assert server.exchange(page).status == 200
            return time.monotonic() - started

    in_one_of_three(beside_them, lambda took: took < PROMPT)


DRIPS = {
    "heads": (b"POST /hooks/stripe HTTP/1.1\r\n", [b"a", b":", b"b", b"\r", b"\n"]),
    "bodies": (HEAD + b"Content-Length: 1000\r\n\r\n", [b"x"]),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", [b"1", b"\r", b"\n", b"x", b"\r", b"\n"]),
}


@pytest.mark.parametrize(("start", "drops"), DRIPS.values(), ids=DRIPS)
def test_receiver_answers_promptly_beside_dripping_clients(server, start, drops):
    @contextlib.contextmanager
    def strangers():
        with clients(server, 200, start) as opened, dripping(opened, drops):
            yield

    assert_prompt(server, strangers)


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("data", [b"", HEAD, HEAD + b"Content-Length: 1000\r\n\r\nabc"])
@pytest.mark.parametrize("leave", [lambda client: client.shutdown(socket.SHUT_WR), reset])
def test_receiver_survives_clients_that_leave_in_the_middle(server, data, leave):
    with clients(server, 200, data) as opened:
        for client in opened:
            leave(client)

    assert_prompt(server)


@contextlib.contextmanager
def flooding(server, number, start, more):
    """Clients that send `start` and then `more` without end, reconnecting whenever they are cut off."""
    enough = threading.Event()

    def flood():
        while not enough.is_set():
            with contextlib.suppress(OSError), connect(server.port, 1) as client:
                client.sendall(start)
                while not enough.wait(0.01):
                    client.sendall(more)

    threads = [threading.Thread(target=flood) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        enough.set()
        for thread in threads:
            thread.join()


FLOODS = {
    "endless heads": (b"POST / HTTP/1.1\r\n", b"A: " + b"b" * 4000 + b"\r\n"),
    "endless request lines": (b"POST /", b"a" * 8000),
    "endless chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"),
    "endless trailers": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n" * 500),
    "endless chunk extensions": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;a=", b"b" * 8000),
    "smuggled requests": (
        b"",
        HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /livez",
    ),
    "junk": (b"", bytes(range(256)) * 16),
}


@pytest.mark.parametrize(("start", "more"), FLOODS.values(), ids=FLOODS)
def test_receiver_answers_promptly_beside_floods(server, start, more):
    assert_prompt(server, partial(flooding, server, 20, start, more))


def test_receiver_keeps_its_memory_bounded_under_large_bodies(server):
    [worker] = server.workers
    body = b"x" * server.max_body
    data = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)

    with ThreadPoolExecutor(50) as pool:
        strangers = [pool.submit(exchange, server.port, data + body, seconds=60) for _ in range(50)]
        waits = honest_waits(server, 3)
        answers = [stranger.result() for stranger in strangers]

    assert {answer.status for answer in answers} <= {401, 503}
    assert {answer.code for answer in answers} <= {"bad_signature", "overloaded"}
    assert all(answer.status != 503 or answer.headers["retry-after"] for answer in answers)
    assert server.workers == [worker]
    assert peak_megabytes(worker) < 256
    assert min(waits) < 5


def peak_megabytes(pid):
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def test_receiver_tells_a_client_that_still_sends_why(server):
    answer = server.exchange(HEAD + b"Content-Length: 99999999\r\n\r\n" + b"x" * 30_000_000)

    assert (answer.status, answer.code) == (413, "too_large")


def test_receiver_takes_a_large_body_when_others_are_gone(server):
    start = event()[:-1] + b',"filler":"'
    body = start + b"x" * (server.max_body - len(start) - 2) + b'"}'

    answer = server.deliver(body, extra=[("Connection", "close")])

    assert (answer.status, answer.document["status"]) == (200, "accepted")


def test_receiver_serves_a_connection_again_and_again(server):
    with connect(server.port) as connection:
        answers = list(
            converse(connection, b"".join(server.signed(event()) for _ in range(50)), half_close=True)
        )

    assert [answer.status for answer in answers] == [200] * 50
