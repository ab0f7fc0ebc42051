"""The WSGI application behind the door (PEP 3333): called in a few threads, none of which waits for a client for long.

A small body is there before the application is called, and an answer in one piece is sent when it has returned, as is
the last part of one made piece by piece. So clients that drip or do not read hold a thread only with large bodies, of
which a part of the threads may be waiting, and with answers made piece by piece that are longer than such a part
(`limits.STREAMED_SIZE`).
"""

import asyncio
import io
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from hookonce.receiver.web.http import answer as answers
from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.answer import Answer, BadAnswer
from hookonce.receiver.web.http.body_stream import BlockingStream
from hookonce.receiver.web.http.request import Environ, IncomingRequest
from hookonce.receiver.web.request import GENUINE

Connection = Any
"""The connection on which an answer goes (`connection.Connection`), which imports this module."""

THREADS = 8
LARGE_BODIES = THREADS // 2
"""Threads that may wait at once for the rest of a body of more than `limits.LARGE_BODY`."""

Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class _LastPart(NamedTuple):
    """The rest of an answer in pieces that is still to be sent, and whether the connection is kept after it."""

    data: bytes
    keeps: bool


class ApplicationThreads:
    """The application of a process and the threads that call it; to be made on its event loop."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="hookonce-application")
        self._large_bodies = asyncio.Semaphore(LARGE_BODIES)

    async def answer(
        self, request: IncomingRequest, answer: Answer, environ: Environ, exchange: Connection
    ) -> bool:
        """Have the application answer a request; whether the connection is kept. Raises what the application raises."""
        if await request.stream.read_ahead(limits.LARGE_BODY):
            return await self._call(request, answer, environ, exchange)
        async with self._large_bodies:
            return await self._call(request, answer, environ, exchange)

    async def _call(
        self, request: IncomingRequest, answer: Answer, environ: Environ, exchange: Connection
    ) -> bool:
        environ["wsgi.input"] = io.BufferedReader(BlockingStream(request.stream, self._loop))
        said = await self._loop.run_in_executor(self._threads, self._run, environ, request, answer, exchange)
        request.is_genuine = GENUINE in environ
        if isinstance(said, bytes):
            return await _send_whole(request, answer, said, exchange)
        await exchange.send(said.data)
        return said.keeps

    def _run(
        self, environ: Environ, request: IncomingRequest, answer: Answer, exchange: Connection
    ) -> "bytes | _LastPart":
        """Call the application, in a thread; give the body of its answer, or the last part of one in pieces."""
        said: Iterable[bytes] = ()
        began = time.thread_time()
        try:
            said = self._application(environ, answer.begin)
            if isinstance(said, (list, tuple)) or answer.written:
                return b"".join([*answer.written, *said])
            return self._send_streamed(request, answer, said, exchange)
        finally:
            close = getattr(said, "close", None)
            if close is not None:
                close()
            self._loop.call_soon_threadsafe(exchange.charge, time.thread_time() - began)

    def _send_streamed(
        self, request: IncomingRequest, answer: Answer, said: Iterable[bytes], exchange: Connection
    ) -> "bytes | _LastPart":
        """Send an answer piece by piece, from a thread, but for the last part; no bytes where there is no piece.

        Without a length it is chunked, or ends with the connection.
        """
        head = request.head
        is_chunked, keeps, has_body = False, False, True
        held: list[bytes] = []
        for piece in said:
            if not answer.is_sent:
                has_body = answers.has_body(answer.status, head.method)
                keeps = not answer.closes and exchange.keeps(head, request.stream)
                is_chunked = has_body and answer.length is None and head.version == (1, 1)
                keeps = keeps and (is_chunked or not has_body or answer.length is not None)
                begun = answer.head(
                    closes=not keeps, says_keep_alive=head.version == (1, 0), is_chunked=is_chunked
                )
                held.append(begun)
                answer.is_sent = True
            if has_body:
                answer.size += len(piece)
                held.append(answers.chunk(piece) if is_chunked else piece)
            if sum(map(len, held)) > limits.STREAMED_SIZE:
                self._send_from_thread(b"".join(held), exchange)
                held.clear()
        if not answer.is_sent:
            return b""
        if is_chunked:
            held.append(answers.LAST_CHUNK)
        keeps = keeps and (
            is_chunked or answer.length is None or not has_body or answer.length == answer.size
        )
        return _LastPart(b"".join(held), keeps)

    def _send_from_thread(self, data: bytes, exchange: Connection) -> None:
        asyncio.run_coroutine_threadsafe(exchange.send(data), self._loop).result()


async def _send_whole(request: IncomingRequest, answer: Answer, body: bytes, exchange: Connection) -> bool:
    """Send an answer in one piece; whether the connection is kept. Raises `BadAnswer`."""
    head, stream = request.head, request.stream
    if not answer.has_begun:
        raise BadAnswer("the application did not call start_response")
    has_body = answers.has_body(answer.status, head.method)
    if answer.length is None and answer.status[:3] not in {"204", "304"} and (has_body or body):
        answer.headers.append(("Content-Length", str(len(body))))
    elif has_body and answer.length is not None and answer.length != len(body):
        raise BadAnswer("the body is not as long as the answer says")
    keeps = not answer.closes and exchange.keeps(head, stream)
    if answer.closes and not stream.is_complete:
        await exchange.slow_down()
    data = answer.head(closes=not keeps, says_keep_alive=head.version == (1, 0))
    answer.is_sent, answer.size = True, len(body)
    await exchange.send(data + body if has_body else data)
    return keeps
