"""A tiny HTTP server that answers 200 to whatever comes and hands the requests over, byte for byte.

For a sender that has no provider yet: nothing is verified, parsed or stored. On this machine only, unless told
otherwise; tunnels come from this machine.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Lock, Thread
from typing import Final

from hookonce.providers.kit.http_file import Captured
from hookonce.receiver.intake.other_sites import is_of_other_site

MAX_BODY: Final = 25 * 1024 * 1024
"""Bytes of a body, as the receiver takes them by default."""
_READ_TIMEOUT: Final = timedelta(seconds=30)
_LINE: Final = 1024  # bytes of a chunk's size line
_ANSWER: Final = b'{"status": "captured"}\n'
_ONE_AT_A_TIME: Final = Lock()
"""Held from an answer until its request is handed over, so that what is sent after that answer comes after it."""


class CanNotListen(Exception):  # noqa: N818  a state of the world
    """The port is another's, or the address is not of this machine."""


class TooLarge(Exception):  # noqa: N818  a verdict about a request
    """The body has more bytes than anybody would want in a file."""


@contextmanager
def listening(address: str, port: int) -> Iterator[tuple[int, Queue[Captured]]]:
    """Listen for as long as the block lasts; gives the port and the requests, as they come. Raises: `CanNotListen`."""
    requests: Queue[Captured] = Queue()

    class Handler(_Handler):
        def take(self, request: Captured) -> None:
            requests.put(request)

    try:
        server = _Server((address, port), Handler)
    except OSError as error:
        raise CanNotListen(error.strerror) from None
    with server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.server_port, requests
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Pass over a client that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # so that `Expect: 100-continue` is answered
    timeout = _READ_TIMEOUT.total_seconds()

    def take(self, request: Captured) -> None:
        """Hand a request over."""

    def handle_one(self) -> None:
        """Answer one request; a connection holds no second one."""
        self.close_connection = True
        told = {name.lower(): value for name, value in self.headers.items()}
        if is_of_other_site(str(self.client_address[0]), told):
            self.send_error(403)
            return
        try:
            body = self._body()
        except TooLarge:
            self.send_error(413)
            return
        except ValueError:
            self.send_error(400)
            return
        if (
            self.command in {"GET", "HEAD"} and "?" not in self.path
        ):  # a look at the URL, no probe of a sender
            self._answer(b"`hookonce capture` waits for a delivery here\n")
            return
        headers = [(name, " ".join(value.split("\r\n"))) for name, value in self.headers.items()]
        headers = [each for each in headers if each[0].lower() != "transfer-encoding"]
        with _ONE_AT_A_TIME:
            self._answer(_ANSWER)
            self.take(Captured(self.command, self.path, headers, body, datetime.now(UTC)))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_one  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Log nothing: whoever takes a request reports it."""

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if body == _ANSWER else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.wfile.flush()

    def _body(self) -> bytes:
        """Read the body, however it is framed. Raises: ValueError, TooLarge."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        length = self.headers.get("Content-Length", "0").strip()
        if not (length.isascii() and length.isdigit()):
            raise ValueError("Content-Length is not a number")
        return self._exactly(int(length), 0)

    def _chunks(self) -> bytes:
        body = bytearray()
        while size := _size(self.rfile.readline(_LINE)):
            body += self._exactly(size, len(body))
            self.rfile.readline(_LINE)
        while self.rfile.readline(_LINE).strip():
            pass  # trailers
        return bytes(body)

    def _exactly(self, size: int, before: int) -> bytes:
        if size + before > MAX_BODY:
            raise TooLarge
        body = self.rfile.read(size)
        if len(body) < size:
            raise ValueError("the body ended early")
        return body


def _size(line: bytes) -> int:
    """Read the size of a chunk. Raises: ValueError for what is not a hexadecimal number."""
    digits = line.split(b";")[0].strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", digits):
        raise ValueError("a chunk has no size")
    return int(digits, 16)
