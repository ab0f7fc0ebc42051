"""An application behind the door, and clients that do not read what it answers."""

import asyncio
import contextlib
import time
from types import SimpleNamespace

import pytest

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.answer import Answer
from hookonce.receiver.web.http.application import THREADS, ApplicationThreads
from hookonce.receiver.web.http.body_stream import BodyStream
from hookonce.receiver.web.http.head import HeadReader
from tests.support.raw_http import request

PIECE = b"x" * 1000


class Client:
    """A client's connection that takes nothing until it is told to `read`."""

    def __init__(self):
        self.read = asyncio.Event()
        self.offered = asyncio.Event()
        self.sent = b""
        self.charged = 0.0

    def charge(self, seconds):
        self.charged += seconds

    async def send(self, data):
        self.offered.set()
        await self.read.wait()
        self.sent += data

    def keeps(self, _head, _stream):
        return True

    def ask(self, threads):
        head, rest = HeadReader(4094, 100, 65536).receive(request(method="GET"))
        incoming = SimpleNamespace(head=head, stream=BodyStream(None, head, rest, None), is_genuine=False)
        return asyncio.create_task(threads.answer(incoming, Answer(), {}, self))


def answering(pieces):
    def application(_environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return iter(pieces)

    return application


@pytest.mark.parametrize("count", [1, limits.STREAMED_SIZE // len(PIECE) - 1])
def test_short_streamed_answers_hold_no_thread_of_slow_readers(count):
    async def stalled():
        threads = ApplicationThreads(answering([PIECE] * count))
        slow = [Client() for _ in range(2 * THREADS)]
        asked = [client.ask(threads) for client in slow]
        await asyncio.wait_for(asyncio.gather(*(client.offered.wait() for client in slow)), 30)
        for client in slow:
            client.read.set()
        kept = await asyncio.gather(*asked)
        return [client.sent for client in slow], kept

    sent, kept = asyncio.run(stalled())

    assert all(each.startswith(b"HTTP/1.1 200 OK\r\n") and each.endswith(b"\r\n0\r\n\r\n") for each in sent)
    assert {each.count(PIECE) for each in sent} == {count}
    assert all(kept)


class BrokenError(Exception):
    """What an application raises."""


@pytest.mark.parametrize("ends", ["returns", "yields", "raises"])
def test_work_of_a_thread_is_charged_to_its_client(ends):
    def application(_environ, start_response):
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass
        if ends == "raises":
            raise BrokenError
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [PIECE] if ends == "returns" else iter([PIECE])

    async def served():
        client = Client()
        client.read.set()
        with contextlib.suppress(BrokenError):
            await client.ask(ApplicationThreads(application))
        await asyncio.sleep(0)
        return client.charged

    assert 0.05 <= asyncio.run(served()) < 0.5
