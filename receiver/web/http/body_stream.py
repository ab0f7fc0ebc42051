"""`wsgi.input`: a body that is read from the connection as the application asks for it.

Ends early, comes too slowly or is badly chunked: an `OSError` or a ValueError, never a shorter body.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.chunks import ChunkReader
from hookonce.receiver.web.http.head import Head


class CutOff(OSError):  # noqa: N818  what the client did
    """The client went away before the end of the body."""


class Source(Protocol):
    """Where a body comes from."""

    def next_bytes(self, size: int) -> bytes:
        """Wait for bytes; b"" at the end of everything."""

    def next_slice(self) -> None:
        """Let others go on, if it is time."""

    def is_taken_whole(self, size: int) -> None:
        """Let others go on before a large body is looked at."""


class BodyStream:
    """A body of one request; `rest` is what came with its head, and after the body what came after it."""

    def __init__(self, source: Source, head: Head, rest: bytes, invite: Callable[[], None] | None) -> None:
        self._source = source
        self._invite = invite if head.expects_continue and not rest else None
        self._chunks = ChunkReader() if head.is_chunked else None
        self._left = head.content_length or 0
        self._ready = b""
        self._taken = 0
        self._is_broken = False
        self.rest = rest

    @property
    def is_complete(self) -> bool:
        """Whether nothing more has to be read."""
        if self._is_broken:
            return False
        return self._chunks.is_complete if self._chunks is not None else not self._left

    def skip(self) -> bool:
        """Pass over what is here already; whether that was all of it."""
        if self._chunks is None and self._left <= len(self.rest) and not self._is_broken:
            self.rest, self._left = self.rest[self._left :], 0
        return self.is_complete

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes, or all; fewer only at the end. Raises: OSError, ValueError."""
        wanted = -1 if size is None or size < 0 else size
        if 0 <= wanted <= len(self._ready):
            data, self._ready = self._ready[:wanted], self._ready[wanted:]
            return data
        pieces, found = [self._ready], len(self._ready)
        self._ready = b""
        while (wanted < 0 or found < wanted) and (piece := self._next()):
            pieces.append(piece)
            found += len(piece)
        data = b"".join(pieces)
        if 0 <= wanted < found:
            data, self._ready = data[:wanted], data[wanted:]
        return data

    def readline(self, size: int | None = -1) -> bytes:
        """Read a line, or so many bytes of it."""
        most = -1 if size is None or size < 0 else size
        while (end := self._ready.find(b"\n") + 1) == 0 and not 0 <= most <= len(self._ready):
            piece = self._next()
            if not piece:
                break
            self._ready += piece
        end = end or len(self._ready)
        return self.read(min(end, most) if most >= 0 else end)

    def readlines(self, _hint: int = -1) -> list[bytes]:
        """Read all lines."""
        return list(self)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def _next(self) -> bytes:
        """Return the next bytes of the body, b"" at its end."""
        if self._invite is not None and not self.is_complete:
            self._invite()
            self._invite = None
        try:
            piece = self._of_length() if self._chunks is None else self._of_chunks(self._chunks)
        except (OSError, ValueError):
            self._is_broken = True
            raise
        self._taken += len(piece)
        if piece and self._taken > limits.LARGE_BODY and self.is_complete:
            self._source.is_taken_whole(self._taken)
        return piece

    def _of_length(self) -> bytes:
        if not self._left:
            return b""
        data = self.rest or self._more(min(self._left, limits.READ_SIZE))
        piece, self.rest = (
            (data, b"") if len(data) <= self._left else (data[: self._left], data[self._left :])
        )
        self._left -= len(piece)
        return piece

    def _of_chunks(self, chunks: ChunkReader) -> bytes:
        while not chunks.is_complete:
            data = self.rest or self._more(limits.READ_SIZE)
            piece, after = chunks.receive(data[: limits.SLICE_SIZE])
            self.rest = after + data[limits.SLICE_SIZE :]
            if not chunks.is_complete:
                self._source.next_slice()
            if piece:
                return piece
        return b""

    def _more(self, size: int) -> bytes:
        data = self._source.next_bytes(size)
        if not data:
            raise CutOff("the connection ended before the body")
        return data
