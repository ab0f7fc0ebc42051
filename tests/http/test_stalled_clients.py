"""Clients that stall or drip are hung up on: by the time of a head, the rate of a body, or gunicorn's `keepalive`."""

import contextlib
import time

import pytest

from hookonce.receiver.web.http.limits import HEAD_TIMEOUT
from tests.http.conftest import serving
from tests.http.test_hostile_network import DRIPS, STALLS, clients, dripping
from tests.support.raw_http import connect, converse, request
from tests.support.waiting import until

KEEPALIVE = 2
"""Seconds; by default 75."""


@pytest.fixture(scope="module")
def server(fresh_database, fresh_redis, tmp_path_factory):
    """A worker that keeps idle connections for a short time."""
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        serving(
            tmp_path_factory.mktemp("serve"),
            database_url,
            redis_url,
            max_body=25 * 1024 * 1024,
            options=[f"--keep-alive={KEEPALIVE}"],
        ) as running,
    ):
        yield running
        assert "Traceback" not in running.logged()


def test_receiver_hangs_up_on_clients_that_stall_or_drip(server):
    with contextlib.ExitStack() as stack:
        left = [stack.enter_context(clients(server, 10, data)) for _, data in STALLS.values()]
        for start, drops in DRIPS.values():
            left.append(stack.enter_context(clients(server, 10, start)))
            stack.enter_context(dripping(left[-1], drops))
        left = [client for group in left for client in group]

        until(lambda: [client for client in left if not hung_up(client)], [], seconds=60)


def test_time_of_a_head_is_apart_from_that_of_an_idle_connection(server):
    asked = request("GET", "/livez")
    with connect(server.port) as new, connect(server.port) as kept:
        new.sendall(asked[:9])
        kept.sendall(asked)
        answered = time.monotonic()

        while kept.recv(65536):
            pass
        idle = time.monotonic() - answered
        new.sendall(asked[9:])

        assert KEEPALIVE - 1 < idle < HEAD_TIMEOUT.total_seconds() - 2
        assert next(converse(new, b"")).status == 200


def hung_up(client):
    """Whether the receiver has ended the connection; what it said before is read and forgotten."""
    client.settimeout(0)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
