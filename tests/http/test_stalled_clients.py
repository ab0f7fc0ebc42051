"""Clients that stall or drip are hung up on: a head after gunicorn's `keepalive`, a body by its rate."""

import contextlib

import pytest

from tests.http.conftest import serving
from tests.http.test_hostile_network import DRIPS, STALLS, clients, dripping
from tests.support.waiting import until

KEEPALIVE = 2
"""Seconds; by default 15."""


@pytest.fixture(scope="module")
def server(fresh_database, fresh_redis, tmp_path_factory):
    """A worker that gives a head little time."""
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
