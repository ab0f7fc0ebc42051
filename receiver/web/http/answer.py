"""From what a WSGI application says to the bytes of an answer."""

import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import lru_cache
from types import TracebackType
from typing import Any

from hookonce.receiver.web import problem_details
from hookonce.receiver.web.http.head import Head
from hookonce.receiver.web.response import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
_CLOSE, _KEEP_ALIVE = "Connection: close\r\n", "Connection: keep-alive\r\n"
_CHUNKED = "Transfer-Encoding: chunked\r\n"
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"})
_BODILESS = frozenset({"204", "304"})

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class BadAnswer(Exception):  # noqa: N818  a bug of the application
    """An application said what is no HTTP."""


class Answer:
    """The answer of an application, by `start_response`; `begin` is that. `size`: so many bytes of a body were sent."""

    status = ""
    length: int | None = None
    closes = has_begun = is_sent = False
    size = 0

    def __init__(self) -> None:
        self.headers: list[tuple[str, str]] = []
        self.written: list[bytes] = []

    def begin(
        self, status: str, headers: list[tuple[str, str]], exc_info: ExceptionInfo | None = None
    ) -> Callable[[bytes], Any]:
        """Take status and headers (PEP 3333). Raises `BadAnswer`."""
        if self.has_begun and exc_info is None:
            raise BadAnswer("start_response was called twice")
        if self.is_sent and exc_info is not None and exc_info[1] is not None:
            raise exc_info[1]
        self.has_begun, self.closes, self.length = True, False, None
        self.status, self.headers = status, []
        for name, value in headers:
            lower = name.lower()
            if lower == "content-length":
                self.length = int(value)
            elif lower == "connection":
                self.closes = self.closes or value.lower() == "close"
                continue
            elif lower in _HOP_BY_HOP:
                continue
            self.headers.append((name, value))
        return self.written.append

    def head(self, *, closes: bool, says_keep_alive: bool = False, is_chunked: bool = False) -> bytes:
        """Write the head. Raises `BadAnswer` where a header would become two."""
        date = _date(int(time.time()))
        connection = _CLOSE if closes else _KEEP_ALIVE if says_keep_alive else ""
        return _head(self.status, self.headers, date, connection, _CHUNKED if is_chunked else "")


def has_body(status: str, method: str) -> bool:
    """Whether a body follows a head; `Content-Length` may say what it would have."""
    return method != "HEAD" and status[:3] not in _BODILESS


def written(said: Response, head: Head, *, keeps: bool) -> bytes:
    """Write what an endpoint says to a request. Raises `BadAnswer`."""
    connection = _CLOSE if not keeps else _KEEP_ALIVE if head.version == (1, 0) else ""
    begun = _common_head(said._replace(body=b""), len(said.body), int(time.time()), connection)
    return begun + said.body if has_body(said.line, head.method) else begun


def chunk(data: bytes) -> bytes:
    """Write a chunk of a body; of nothing it is nothing, for that would be the last one."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


@lru_cache(maxsize=8)
def refusal(status: int, code: str) -> bytes:
    """Write an answer that ends the connection, and says no more than the code."""
    body = problem_details.document(status, code)
    head = (
        f"HTTP/1.1 {status} {problem_details.TITLES[status]}\r\nConnection: close\r\n"
        f"Content-Type: {problem_details.CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def _head(status: str, headers: Sequence[tuple[str, str]], date: str, connection: str, chunked: str) -> bytes:
    """Write a head; the last three are lines, or nothing. Raises `BadAnswer`."""
    parts = ["HTTP/1.1 ", status, "\r\n"]
    for name, value in headers:
        parts += (name, ": ", value, "\r\n")
    parts += (date, connection, chunked)
    expected = len(headers) + 2 + bool(connection) + bool(chunked)
    try:
        head = "".join(parts).encode("latin-1")
    except (TypeError, UnicodeEncodeError):
        raise BadAnswer("a header is not a text of Latin-1") from None
    if head.count(b"\n") != expected or head.count(b"\r") != expected or b"\0" in head:
        raise BadAnswer("a header has a line end")
    return head + b"\r\n"


@lru_cache(maxsize=256)
def _common_head(said: Response, length: int, second: int, connection: str) -> bytes:
    """Write the head of what an endpoint says, without its body; most in a second have one of a few."""
    allowed = [each for each in said.all_headers(length) if each[0].lower() not in _HOP_BY_HOP]
    return _head(said.line, allowed, _date(second), connection, "")


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}\r\n"
