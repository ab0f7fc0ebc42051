"""A client that leaves its answers unread: how many of them are held for it, and that the last one is not lost."""

import asyncio
import socket
from types import SimpleNamespace

import uvloop

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.clients import Clients
from hookonce.receiver.web.http.connection import Connection
from hookonce.receiver.web.http.crowd import Crowd, Graves
from hookonce.receiver.web.http.transport import Transport
from hookonce.receiver.web.http.turns import Turns
from hookonce.receiver.web.response import Response
from tests.support.raw_http import request

DATA = request(body=b"{}")
BODY = b"x" * 4096


class Endpoint:
    """Accepts everything; behind the request that has the number `last` it asks for the end of the connection."""

    def __init__(self, last=None):
        self.came, self.last = 0, last

    async def answer(self, request, _waits):
        await request.stream.read()
        request.is_genuine = True
        return self._said()

    def begin(self, request, _body, _waits, land):
        request.is_genuine = True
        asyncio.get_running_loop().call_soon(land, self._said())
        return True

    def _said(self):
        self.came += 1
        return Response(200, BODY, "text/plain", (("Connection", "close"),) if self.came == self.last else ())


def connected(client_does, endpoint):
    """What somebody does who is connected, by a socket for which no kernel holds many answers."""

    async def go():
        loop = asyncio.get_running_loop()
        house = SimpleNamespace(
            clients=Clients(),
            crowd=Crowd(10),
            turns=Turns(loop),
            graves=Graves(10, 1.0),
            head_limits=(4094, 100, 65536),
            keepalive=15.0,
            is_closing=False,
            is_logged=False,
            waits=None,
            endpoint_at=lambda _part, _path: endpoint,
            count_request=lambda: None,
        )
        ours, client = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        ours.settimeout(0)
        client.settimeout(0)
        transport = Transport(loop)
        await loop.connect_accepted_socket(lambda: transport, ours)
        served = loop.create_task(Connection(house, transport, {}, ("127.0.0.1", "1")).serve())
        with client:
            done = await asyncio.wait_for(client_does(loop, client), 20)
        await asyncio.wait_for(served, 20)
        return done

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(go())


async def sends_until_nobody_comes(loop, client, endpoint, most):
    """Send requests, each when the one before was taken; return how many were."""
    for number in range(1, most + 1):
        await loop.sock_sendall(client, DATA)
        for _ in range(50):
            if endpoint.came == number:
                break
            await asyncio.sleep(0.002)
        else:
            return endpoint.came
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return endpoint.came


def test_client_that_does_not_read_is_soon_not_read_from():
    endpoint = Endpoint()

    connected(lambda loop, client: sends_until_nobody_comes(loop, client, endpoint, 100), endpoint)

    assert 1 < endpoint.came < 10


def test_client_that_reads_late_has_every_answer_and_goes_on():
    endpoint = Endpoint()

    async def does(loop, client):
        came = await sends_until_nobody_comes(loop, client, endpoint, 100)
        while endpoint.came == came:
            await loop.sock_recv(client, limits.READ_SIZE)
            await asyncio.sleep(0)
        return came

    came = connected(does, endpoint)

    assert endpoint.came == came + 1


def test_last_answer_is_not_lost_where_the_client_reads_late():
    endpoint = Endpoint()
    last = connected(lambda loop, client: sends_until_nobody_comes(loop, client, endpoint, 100), endpoint)
    endpoint = Endpoint(last)  # for its answer the kernel has no room

    async def does(loop, client):
        await sends_until_nobody_comes(loop, client, endpoint, last)
        await asyncio.sleep(0.02)
        read = b""
        while data := await loop.sock_recv(client, limits.READ_SIZE):
            read += data
        return read

    read = connected(does, endpoint)

    assert read.count(BODY) == endpoint.came == last
