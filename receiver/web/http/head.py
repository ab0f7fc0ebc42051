"""From bytes to the head of a request: llhttp, strict as it comes, and what it lets pass refused on top of it.

The parser cannot be paused, so it is given no more than one head: it ends with the first empty line. Whatever comes
after is given back, and the next request gets a parser of its own. Nothing of a body is read here.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from hookonce.receiver.web.http import limits

END = b"\r\n\r\n"
_ASCII_TARGET = r"/[!\"$->@-~]*(?:\?[!\"$-~]*)?"
_TARGET = re.compile(r"/[!\"$->@-~]*(\?[!\"$-~\x80-\xff]*)?")  # origin form, no fragment; UTF-8 in a query
_VALUE = r"[\t -~\x80-\xff]*"
_KEPT = frozenset({"connection", "proxy-connection"})
"""Headers by which llhttp decides whether a connection is kept."""
_TO_ASCII = bytes(range(128)) + b"x" * 128
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FRAMING = frozenset({"content-length", "transfer-encoding", "expect"})
_ONCE = _FRAMING | {"host"}
_USUAL_SIZE = 4096
"""Bytes of a head whose names are kept for the next one that has the same."""
_VERSIONS = {"HTTP/1.0": (1, 0), "HTTP/1.1": (1, 1)}
_MAX_DIGITS = 19
_LINE_ENDS = (b"\r", b"\n")
_LAST_OF_AN_END = {b"\r\n\r": 3, b"\r\n": 2}


class BadHead(Exception):  # noqa: N818  a state of the request, answered with 400
    """A head that is none of a proper request; the text says why and quotes nothing of it."""


class _Names(NamedTuple):
    """The names of a head's headers in lower case, and where those are that say how long the body is.

    `kept` is where these names are among all that were sent, None where none is left out: one with an underscore would
    be another's WSGI variable, and a Content-Type may come twice, if both values are equal (`equal`).
    """

    lower: tuple[str, ...] = ()
    framing: tuple[int, ...] = ()
    kept: tuple[int, ...] | None = None
    equal: tuple[int, ...] = ()


class Head:
    """A request line and headers, as sent; `names` in lower case and `values` are in their order."""

    __slots__ = (
        "content_length",
        "expects_continue",
        "is_chunked",
        "keeps_alive",
        "method",
        "names",
        "target",
        "values",
        "version",
    )

    def __init__(
        self, method: str, target: str, version: tuple[int, int], names: _Names, values: Sequence[str]
    ) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.names = names
        self.values = values
        self.content_length: int | None = None
        self.is_chunked = False
        self.expects_continue = False
        self.keeps_alive = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers by their names; those of one name are joined with a comma."""
        names = self.names.lower
        headers = dict(zip(names, self.values, strict=True))
        if len(headers) < len(names):
            headers = {}
            for name, value in zip(names, self.values, strict=True):
                headers[name] = f"{headers[name]},{value}" if name in headers else value
        return headers


class Shape:
    """The shape that heads share which differ in target and values alone: they are read by one match.

    Nothing differs that says what follows a head, but for the number of its body's bytes.
    """

    __slots__ = ("_length", "_like", "_lines")

    def __init__(self, like: Head, lines: "re.Pattern[str]") -> None:
        self._like = like
        self._lines = lines
        self._length = like.names.framing[0] + 1

    def read(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return one whole request as its head and its body; None for what is anything else, or may be."""
        end = data.find(END, 0, _USUAL_SIZE) + len(END)
        found = self._lines.fullmatch(data[:end].decode("latin-1"))
        if found is None or len(data) - end != int(found[self._length + 1]):
            return None
        like, (target, *values) = self._like, found.groups()
        head = Head(like.method, target, like.version, like.names, [each.rstrip(" \t") for each in values])
        head.content_length, head.keeps_alive = len(data) - end, True
        return head, data[end:]


def shape_of(head: Head) -> Shape | None:
    """Return the shape of a head that llhttp has read; None for one that says more than its body's length."""
    names = head.names
    is_plain = len(names.framing) == 1 and names.kept is None and "upgrade" not in names.lower
    if not (is_plain and head.content_length and head.keeps_alive):
        return None
    kept = tuple(
        value if name in _KEPT else None for name, value in zip(names.lower, head.values, strict=True)
    )
    return Shape(head, _lines_like(head.method, head.version, names, kept))


@lru_cache(maxsize=256)
def _lines_like(
    method: str, version: tuple[int, int], names: _Names, kept: tuple[str | None, ...]
) -> "re.Pattern[str]":
    values = [_VALUE if value is None else re.escape(value) for value in kept]
    values[names.framing[0]] = "[0-9]{1,19}"
    lines = [
        f"(?i:{re.escape(name)}):[ \t]*({value})\r\n" for name, value in zip(names.lower, values, strict=True)
    ]
    line = rf"{method} ({_ASCII_TARGET}) HTTP/{version[0]}\.{version[1]}\r\n"
    return re.compile(f"{line}{''.join(lines)}\r\n", re.ASCII)


class HeadReader:
    """Reads one head. `limit_line`, `limit_count` and `limit_field` are gunicorn's `limit_request_…`.

    llhttp says whether it is one. What is in it is read here: a line between two line ends, for llhttp takes no others.
    """

    def __init__(self, limit_line: int, limit_count: int, limit_field: int) -> None:
        self.limit_line = limit_line
        self.limit_count = limit_count
        self.limit_field = limit_field
        self._skipped = self._lines = 0
        self._read = self._held = b""
        self._is_complete = self._keeps_alive = False
        self._parser = HttpRequestParser(self)

    def receive(self, data: bytes) -> tuple[Head, bytes] | None:
        """Take bytes; give the head and what came after it, or None if there is more to come. Raises `BadHead`."""
        if self._held:
            data = self._held + data
            self._held = b""
        if not self._read and data[:1] in _LINE_ENDS:
            data = self._without_empty_lines(data)
        end = data.find(END)
        if end >= 0:
            self._feed(data[: end + 4])
            return self._head(), data[end + 4 :]
        fed = _ends_with_whole_line(data)
        self._held = data[fed:]
        if fed:
            self._feed(data[:fed])
        if self.buffered > limits.HEAD_SIZE:
            raise BadHead("the head is too long")
        return None

    def close(self) -> None:
        """Take the end of everything. Raises `BadHead` if what came cannot begin a request."""
        if self._held:
            held, self._held = self._held, b""
            self._feed(held)

    def release(self) -> None:
        """Let go of the parser, which holds us too: else both stay until the collector of cycles comes by."""
        del self._parser

    @property
    def buffered(self) -> int:
        """Bytes that are kept for this head."""
        return len(self._read) + len(self._held)

    def on_headers_complete(self) -> None:
        """Notice the end; llhttp's callback."""
        self._is_complete = True
        self._keeps_alive = self._parser.should_keep_alive()  # forgotten at the end of the message

    def _without_empty_lines(self, data: bytes) -> bytes:
        rest = data.lstrip(b"\r\n")
        skipped = data[: len(data) - len(rest)]
        left = skipped.replace(b"\r\n", b"")
        self._skipped += len(skipped) - len(left)
        if (left and (left != b"\r" or rest)) or self._skipped > limits.EMPTY_LINES:
            raise BadHead("a request begins with its method")
        return rest or left

    def _feed(self, data: bytes) -> None:
        read = self._read = self._read + data if self._read else data
        if len(read) > self.limit_line and not 0 <= read.find(b"\r\n") <= self.limit_line:
            raise BadHead("the request line is too long")
        if len(read) > limits.HEAD_SIZE:
            raise BadHead("the head is too long")
        self._lines += data.count(b"\n")
        if self._lines > self.limit_count + 2:  # the request line and, at the end, an empty one
            raise BadHead("there are too many headers")
        if not data.isascii():  # llhttp takes no other characters in a request line
            end = read.find(b"\r\n")
            line = len(data) if end < 0 else max(0, end - len(read) + len(data))
            data = data[:line].translate(_TO_ASCII) + data[line:]
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            pass  # llhttp would stop here for another protocol; we go on in this one (RFC 9110, 7.8)
        except HttpParserError as error:
            raise BadHead(type(error).__name__) from None

    def _head(self) -> Head:
        line, *lines = self._read[: -len(END)].decode("latin-1").split("\r\n")
        method, _, rest = line.partition(" ")
        target, _, protocol = rest.partition(" ")
        version = _VERSIONS.get(protocol)
        if version is None or not self._is_complete or method != self._parser.get_method().decode("ascii"):
            raise BadHead(
                "the request line is not a method, a target and HTTP/1.0 or 1.1 with a space between them"
            )
        if _TARGET.fullmatch(target) is None or not _is_utf8(target) or method == "CONNECT":
            raise BadHead("the target is not a path")
        head = Head(method, target, version, *self._headers(lines))
        if version == (1, 1) and "host" not in head.names.lower:
            raise BadHead("a request in HTTP/1.1 names its host")
        head.keeps_alive = self._keeps_alive
        if head.names.framing:
            _read_framing(head)
        return head

    def _headers(self, lines: Sequence[str]) -> tuple[_Names, Sequence[str]]:
        """Return the names and the values, each in their order: the names of most heads are those of one before."""
        if not lines:
            return _Names(), ()
        size = len(self._read)
        if size > self.limit_field and max(map(len, lines)) + 2 > self.limit_field:
            raise BadHead("a header is too long")
        names, _, values = zip(*map(str.partition, lines, repeat(":")), strict=True)
        read = (_names if size <= _USUAL_SIZE else _names.__wrapped__)(names)
        values = tuple(map(str.strip, values, repeat(" \t")))
        if read.kept is None:
            return read, values
        if len({values[place] for place in read.equal}) > 1:
            raise BadHead("two Content-Types that differ")
        return read, tuple(values[place] for place in read.kept)


@lru_cache(maxsize=256)
def _names(names: tuple[str, ...]) -> _Names:
    """Return names in lower case. Raises `BadHead` for what is no name, and for what came twice and may not."""
    if not all(map(_NAME.fullmatch, names)):
        raise BadHead("a header's name has no characters of a name")
    lower = tuple(map(str.lower, names))
    types = tuple(place for place, name in enumerate(lower) if name == "content-type")
    kept = tuple(place for place, name in enumerate(lower) if "_" not in name and place not in types[1:])
    is_whole = len(kept) == len(lower)
    lower = tuple(lower[place] for place in kept)
    once = [name for name in lower if name in _ONCE]
    if len(set(once)) < len(once):
        raise BadHead("a header that may come once came twice")
    if "content-length" in once and "transfer-encoding" in once:
        raise BadHead("a length and chunks")
    framing = tuple(n for n, name in enumerate(lower) if name in _FRAMING)
    return _Names(lower, framing, None if is_whole else kept, types)


def _is_utf8(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode("latin-1").decode())
    except UnicodeDecodeError:
        return False


def _ends_with_whole_line(data: bytes) -> int:
    """Return how many bytes may be parsed now: whole lines, so that none is put together of single bytes.

    A line of more than `SLICE_SIZE` is not waited for. What may be the beginning of an empty line is left.
    """
    fed = len(data) if len(data) > limits.SLICE_SIZE else data.rfind(b"\n") + 1
    for ending, size in _LAST_OF_AN_END.items():
        if data.endswith(ending, 0, fed):
            return fed - size
    return fed - 1 if data.endswith(b"\r", 0, fed) else fed


def _read_framing(head: Head) -> None:
    """Read what says how long the body is, and refuse what two readers may read in two ways."""
    for place in head.names.framing:
        name, value = head.names.lower[place], head.values[place]
        if name == "content-length":
            if not (value.isascii() and value.isdigit()) or len(value) > _MAX_DIGITS:
                raise BadHead("Content-Length is not a number")
            head.content_length = int(value)
        elif name == "transfer-encoding":
            if value.lower() != "chunked" or head.version == (1, 0):
                raise BadHead("the only transfer coding is chunked, in HTTP/1.1")
            head.is_chunked = True
        elif name == "expect":
            if value.lower() != "100-continue":
                raise BadHead("an expectation that is not 100-continue")
            head.expects_continue = head.version == (1, 1)
