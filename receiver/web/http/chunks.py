"""A chunked body, read by llhttp: chunks, extensions and trailers are counted, and all but the body is dropped.

Trailers never become headers: what was signed was the head. The parser cannot be paused, and a body ends with an empty
line: so it is given no more than up to the next one, and what comes after the body is never parsed.
"""

from httptools import HttpParserError, HttpRequestParser

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.head import END

_HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


class BadChunks(ValueError):  # noqa: N818  a state of the body, answered with 400
    """A body is badly chunked; the text says why and quotes nothing of it."""


class ChunkReader:
    """Reads one chunked body."""

    def __init__(self) -> None:
        self._held = b""
        self._steps = self._taken = self._size = 0
        self._pieces: list[bytes] = []
        self._trailers = -1  # the header of our own head
        self.is_complete = False
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(_HEAD)

    def receive(self, data: bytes) -> tuple[bytes, bytes]:
        """Take bytes; give those of the body and, once `is_complete`, what came after it. Raises `BadChunks`."""
        if self._held:
            data = self._held + data
            self._held = b""
        at = 0
        while not self.is_complete and (end := data.find(END, at)) >= 0:
            self._feed(data[at : end + 4])
            at = end + 4
        if not self.is_complete:
            left = len(data) - _beginning_of_an_end(data, at)
            if left > at:
                self._feed(data[at:left])
            self._held, data = data[left:], b""
            at = 0
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body, data[at:]

    def on_header(self, _name: bytes, _value: bytes) -> None:
        """Count a trailer; llhttp's callback."""
        self._trailers += 1
        if self._trailers > limits.TRAILERS:
            raise BadChunks("there are too many trailers")

    def on_chunk_header(self) -> None:
        """Count a chunk; llhttp's callback."""
        self._step()

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body; llhttp's callback."""
        self._size += len(data)
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        """Notice the end; llhttp's callback."""
        self.is_complete = True

    def _step(self) -> None:
        self._steps += 1
        if self._steps > limits.CHUNKS + self._size // limits.BYTES_A_CHUNK:
            raise BadChunks("there are too many chunks")

    def _feed(self, data: bytes) -> None:
        self._step()  # a body of empty lines costs as much as one of short chunks
        self._taken += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            cause = error.__context__
            raise BadChunks(str(cause) if isinstance(cause, BadChunks) else type(error).__name__) from None
        overhead = self._taken - self._size
        if overhead > limits.CHUNK_OVERHEAD + limits.OVERHEAD_A_CHUNK * self._steps:
            raise BadChunks("there is too much between the chunks")


def _beginning_of_an_end(data: bytes, at: int) -> int:
    """Return how many of the last bytes may begin an empty line."""
    for ending in (b"\r\n\r", b"\r\n", b"\r"):
        if data.endswith(ending, at):
            return len(ending)
    return 0
