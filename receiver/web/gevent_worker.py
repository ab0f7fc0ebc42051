"""gunicorn's gevent worker, made fit for an open network.

gunicorn 27 alone would: answer what is not HTTP with HTML that quotes the request, with 414, 417, 431 and
501, and write the sender's text to the log; drop an answer's `Connection: close` and then read the rest of a
refused body, however long; keep up to 6.5 MB of a request's head per connection, searching
all of it again at each read; wait for ever for a client that does not read its answer; hang up while the
client is still sending, so that it sees a reset instead of the 413.

Imported before gevent patches the process: nothing here may import psycopg.
"""

import contextlib
import errno
import gc
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import IO, Any, TypeVar

from gevent import Timeout
from gunicorn.http.errors import LimitRequestHeaders, ParseException
from gunicorn.workers import ggevent
from gunicorn.workers.base_async import AsyncWorker

from hookonce.receiver.logs import limited
from hookonce.receiver.web import problem_details

log = limited(__name__)

Argument = TypeVar("Argument")
Result = TypeVar("Result")

MAX_HEAD_SIZE = 128 * 1024
"""Bytes of request line and headers together; the longest genuine ones have a few KB."""
STALL_TIMEOUT = timedelta(seconds=20)
"""For one read, and for the whole of an answer; a body has its own time (`receiver.web.body.BODY_TIMEOUT`)."""
MAX_BUFFERED = 64 * 1024
"""Bytes of an answer that wait for the rest of it."""
LINGER_TIMEOUT = timedelta(seconds=2)
"""How long we listen to a client that goes on sending after its answer, before we hang up."""


COLLECTOR_THRESHOLDS = (50_000, 20, 100)
"""When Python looks for cycles among its objects: after so many new ones, and how seldom among older ones."""


def calm_collector() -> None:
    """Keep the collector of cycles from going through what lives as long as the process, and from doing it often.

    Unlike the count of references, which frees nearly all that a request leaves, it walks over objects that are in
    use. By default it does so after every 700 new ones: a parsed megabyte of `[[],[],…]` is walked over dozens of
    times while it grows, which is nine tenths of its cost, and anybody may send one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


class Connection:
    """A client's socket that counts the bytes of a head, and whose every trouble looks like a reset.

    gunicorn sends the head of an answer, then its body; here they leave together, at the end of the request.
    """

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._held: list[bytes] = []
        self._held_size = 0
        self.head_left: float = MAX_HEAD_SIZE

    def recv(self, size: int) -> bytes:
        """Receive. Raises `LimitRequestHeaders` where a head is longer than `MAX_HEAD_SIZE`."""
        data = _or_reset(self._client.recv, size)
        self.head_left -= len(data)
        if self.head_left < 0:
            raise LimitRequestHeaders("head too long")
        return data

    def send(self, data: bytes) -> int:
        """Send some."""
        return _or_reset(self._client.send, data)

    def sendall(self, data: bytes) -> None:
        """Send all, at the latest with `flush`."""
        self._held.append(data)
        self._held_size += len(data)
        if self._held_size > MAX_BUFFERED:
            self.flush()

    def sendfile(self, file: IO[bytes], offset: int = 0, count: int | None = None) -> int | None:
        """Send a file, after what is held."""
        self.flush()
        return self._client.sendfile(file, offset, count)

    def flush(self) -> None:
        """Send what is held."""
        data = b"".join(self._held)
        self._held.clear()
        self._held_size = 0
        if data:
            sent = self.send(data)  # gevent's sendall asks for the size of the socket's buffer each time
            if sent < len(data):
                _or_reset(self._client.sendall, data[sent:])

    def linger(self) -> None:
        """Signal that the answer was the last, and let the client finish what it is sending."""
        with contextlib.suppress(OSError), Timeout(LINGER_TIMEOUT.total_seconds(), False):  # noqa: FBT003  gevent's own
            self._client.shutdown(socket.SHUT_WR)
            while self._client.recv(65536):
                pass

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever a socket has
        return getattr(self._client, name)


class GeventWorker(ggevent.GeventWorker):  # type: ignore[misc]  # gunicorn has no types
    """The worker class of `receiver.web.gunicorn_conf`."""

    wsgi: Any

    def load_wsgi(self) -> None:  # noqa: D102
        super().load_wsgi()
        self.wsgi = _closing(self.wsgi)
        calm_collector()
        # gunicorn looks settings up some forty times a request, each time through two methods: 18 µs of 60
        self.cfg.__dict__.update({name: setting.get() for name, setting in self.cfg.settings.items()})

    def handle(self, listener: Any, client: Any, addr: Any) -> None:  # noqa: ANN401, D102
        if self.cfg.is_ssl:  # gunicorn looks at the socket's own class
            super().handle(listener, client, addr)
            return
        client.settimeout(STALL_TIMEOUT.total_seconds())
        AsyncWorker.handle(self, listener, Connection(client), addr)

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> None:  # noqa: ANN401, D102
        if not isinstance(sock, Connection):
            super().handle_request(listener_name, req, sock, addr)
            return
        sock.head_left = float("inf")
        try:
            super().handle_request(listener_name, req, sock, addr)
            sock.flush()
        except StopIteration:  # the answer said `Connection: close`
            sock.flush()
            sock.linger()
            raise
        finally:
            sock.head_left = MAX_HEAD_SIZE

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:  # noqa: ANN401, ARG002
        """Answer what never reached the application; nothing of the request is quoted or logged."""
        status, code = (400, "bad_header") if isinstance(exc, ParseException) else (500, "internal_error")
        if status == 400:  # noqa: PLR2004  theirs
            log.info("rejected", extra={"source": None, "reason": code, "error": type(exc).__name__})
        else:
            log.error("a request failed outside the application: %s", type(exc).__name__, exc_info=exc)
        body = problem_details.document(status, code)
        head = (
            f"HTTP/1.1 {status} {problem_details.TITLES[status]}\r\nConnection: close\r\n"
            f"Content-Type: {problem_details.CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            client.sendall(head.encode() + body)
            if isinstance(client, Connection):
                client.flush()
                client.linger()


def _or_reset(call: Callable[[Argument], Result], argument: Argument) -> Result:
    try:
        return call(argument)
    except OSError as error:  # gunicorn logs a traceback for all but a reset
        raise ConnectionResetError(errno.ECONNRESET, type(error).__name__) from None


def _closing(application: Any) -> Any:  # noqa: ANN401  WSGI
    """Wrap an application so that its `Connection: close` ends the connection."""

    def closing(environ: Any, start_response: Any) -> Any:  # noqa: ANN401
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:  # noqa: ANN401
            if ("Connection", "close") in headers:
                start_response.__self__.force_close()  # the method is that of gunicorn's Response
            return start_response(status, headers, exc_info)

        return application(environ, start)

    return closing
