"""TLS handshakes that begin and fall silent keep nobody out."""

import contextlib
import json
import socket
import time
import uuid

import pytest

from tests.http.conftest import serving
from tests.support.attacks import certificate
from tests.support.waiting import in_one_of_three

BEGUN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The first bytes of a ClientHello."""
MANY = 3000
PROMPT = 2
"""Seconds an honest sender waits at most, on a machine that has other things to do."""


pytestmark = pytest.mark.usefixtures("many_files")


@pytest.fixture(scope="module")
def server(fresh_database, fresh_redis, tmp_path_factory):
    """One worker under TLS."""
    directory = tmp_path_factory.mktemp("serve")
    options, context = certificate.made(directory)
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        serving(directory, database_url, redis_url, options=options, context=context) as running,
    ):
        yield running
        assert "Traceback" not in running.logged()


@contextlib.contextmanager
def half_open(port, number, data):
    """Connections that have sent `data` and now do nothing."""
    with contextlib.ExitStack() as stack:
        for _ in range(number):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            with contextlib.suppress(OSError):  # it may have had to make room already
                client.sendall(data)
        yield


def waits(server, times=3):
    """Deliver events, each over a connection of its own; what each waited."""
    took = []
    for _ in range(times):
        began = time.monotonic()
        answer = server.deliver(json.dumps({"id": uuid.uuid4().hex, "type": "a"}).encode())
        took.append(time.monotonic() - began)
        assert (answer.status, answer.document["status"]) == (200, "accepted")
    return took


@pytest.mark.parametrize("data", [BEGUN, b""], ids=["eleven bytes", "nothing"])
def test_receiver_answers_promptly_beside_handshakes_that_fall_silent(server, data):
    waits(server, 1)  # its connections are open

    def beside_them():
        with half_open(server.port, MANY, data):
            return waits(server)

    in_one_of_three(beside_them, lambda waits: max(waits) < PROMPT)
