"""A body as it comes, and what its connection is told of it."""

import gc
import weakref
from contextlib import suppress
from time import monotonic
from types import SimpleNamespace

import pytest

from hookonce.receiver.processes.waits import run
from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.body_stream import BodyStream, CutOff
from hookonce.receiver.web.http.chunks import BadChunks
from hookonce.receiver.web.http.clients import Clients
from hookonce.receiver.web.http.connection import Connection
from hookonce.receiver.web.http.head import HeadReader
from tests.support.raw_http import request

CHUNKED = {"Transfer-Encoding": "chunked"}
WHOLE = {
    "with a length": ({"Content-Length": "6"}, [b"abc", b"def"]),
    "that came with its head": ({"Content-Length": "6"}, [b"abcdef"]),
    "in chunks": (CHUNKED, [b"3\r\nabc\r\n", b"3\r\ndef\r\n0\r\n\r\n"]),
    "whose last chunk comes alone": (CHUNKED, [b"6\r\nabcdef\r\n", b"0\r\n\r\n"]),
}
BROKEN = {
    "that ends early": ({"Content-Length": "6"}, [b"abc"], CutOff),
    "of bad chunks": (CHUNKED, [b"3\r\nabc\r\n", b"nonsense\r\n"], BadChunks),
}


class Source:
    """A connection on which these pieces come."""

    def __init__(self, pieces):
        self.pieces = list(pieces)
        self.taken_whole = []

    async def next_bytes(self, _size):
        return self.pieces.pop(0) if self.pieces else b""

    async def next_slice(self):
        pass

    async def is_taken_whole(self, size):
        self.taken_whole.append(size)


def streamed(headers, pieces):
    head, _ = HeadReader(4094, 100, 65536).receive(request(headers=headers))
    source = Source(pieces[1:])
    return BodyStream(source, head, pieces[0], None), source


@pytest.mark.parametrize(("headers", "pieces"), WHOLE.values(), ids=WHOLE)
def test_connection_hears_once_that_a_body_is_whole(headers, pieces):
    stream, source = streamed(headers, pieces)

    body = run(stream.read())

    assert (body, run(stream.read())) == (b"abcdef", b"")
    assert source.taken_whole == [6]


@pytest.mark.parametrize(("headers", "pieces"), WHOLE.values(), ids=WHOLE)
def test_body_that_was_read_ahead_is_still_there(headers, pieces):
    stream, source = streamed(headers, pieces)

    is_all = run(stream.read_ahead(6))

    assert (is_all, source.pieces) == (True, [])
    assert (run(stream.read(2)), run(stream.read())) == (b"ab", b"cdef")


@pytest.mark.parametrize("headers", [{"Content-Length": "6"}, CHUNKED])
def test_body_larger_than_that_is_not_read_ahead(headers):
    pieces = [b"6\r\nabcdef\r\n", b"0\r\n\r\n"] if headers is CHUNKED else [b"abc", b"def"]
    stream, source = streamed(headers, pieces)

    is_all = run(stream.read_ahead(5))

    assert not is_all
    assert source.pieces == pieces[1:]
    assert run(stream.read()) == b"abcdef"


@pytest.mark.parametrize(("headers", "pieces", "error"), BROKEN.values(), ids=BROKEN)
def test_reader_is_told_what_was_wrong_with_a_body_that_was_read_ahead(headers, pieces, error):
    stream, _ = streamed(headers, pieces)

    is_all = run(stream.read_ahead(100))

    assert is_all
    for _ in range(2):
        with pytest.raises(error):
            run(stream.read())
    assert not stream.is_complete


@pytest.mark.parametrize(("headers", "pieces", "error"), BROKEN.values(), ids=BROKEN)
def test_what_was_read_of_a_broken_body_is_let_go_of(headers, pieces, error):
    stream, _ = streamed(headers, pieces)
    held = []

    async def reads():
        so_far = Source([])  # anything that a frame holds
        held.append(weakref.ref(so_far))
        await stream.read()

    gc.disable()
    try:
        for _ in range(2):
            with suppress(error):
                run(reads())
        assert [each() for each in held] == [None, None]
    finally:
        gc.enable()


def test_client_is_not_timed_while_its_whole_body_is_worked_on():
    house = SimpleNamespace(clients=Clients(), keepalive=15, turns=SimpleNamespace(answering=0))
    transport = SimpleNamespace(receive=lambda _size: b"{}")
    connection = Connection(house, transport, {}, ("127.0.0.1", "1"))
    run(connection.next_bytes(2))
    soon = monotonic() + limits.GRACE.total_seconds() + 1
    assert connection.is_late(soon)

    run(connection.is_taken_whole(2))

    assert not connection.is_late(soon + limits.BODY_TIMEOUT.total_seconds())
