"""A body that is read from the connection as it is asked for, by the event loop or, as `wsgi.input`, by a thread.

Ends early, comes too slowly or is badly chunked: an `OSError` or a ValueError, never a shorter body.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.chunks import ChunkReader
from hookonce.receiver.web.http.head import Head

Connection = Any
"""What a body is read from (`connection.Connection`), which imports this module."""


class CutOff(OSError):  # noqa: N818  what the client did
    """The client went away before the end of the body."""


class BodyStream:
    """A body of one request; `rest` is what came with its head, and after the body what came after it."""

    def __init__(
        self, source: Connection, head: Head, rest: bytes, invite: Callable[[], Awaitable[None]] | None
    ) -> None:
        self._source = source
        self._invite = invite if head.expects_continue and not rest else None
        self._chunks = ChunkReader() if head.is_chunked else None
        self._left = head.content_length or 0
        self._ready = b""
        self._taken = 0
        self._error: OSError | ValueError | None = None
        self.rest = rest

    @property
    def is_complete(self) -> bool:
        """Whether nothing more has to be read."""
        if self._error is not None:
            return False
        return self._chunks.is_complete if self._chunks is not None else not self._left

    def skip(self) -> bool:
        """Pass over what is here already; whether that was all of it."""
        if self._chunks is None and self._left <= len(self.rest) and self._error is None:
            self.rest, self._left = self.rest[self._left :], 0
        return self.is_complete

    async def read_ahead(self, size: int) -> bool:
        """Read a body of at most `size` bytes before somebody asks for it; False for a larger one.

        What is wrong with the body is told to whoever reads it. Raises `Gone` and `TooLate`.
        """
        if self._left > size:
            return False
        try:
            found = await self.read(size + 1)
        except (CutOff, ValueError):
            return True
        self._ready = found + self._ready
        return self.is_complete

    async def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or all; fewer only at the end. Raises: OSError, ValueError."""
        pieces, found = [self._ready], len(self._ready)
        self._ready = b""
        while (size < 0 or found < size) and (piece := await self._next()):
            pieces.append(piece)
            found += len(piece)
        data = pieces[-1] if len(pieces[-1]) == found else b"".join(pieces)
        if 0 <= size < found:
            data, self._ready = data[:size], data[size:]
        return data

    async def _next(self) -> bytes:
        """Return the next bytes of the body, b"" at its end."""
        if self._error is not None:
            raise copy(self._error)
        if self.is_complete:
            return b""
        if self._invite is not None:
            await self._invite()
            self._invite = None
        try:
            piece = await (self._of_length() if self._chunks is None else self._of_chunks(self._chunks))
        except (OSError, ValueError) as error:
            self._error = copy(error)  # without a traceback, whose frames hold what was read
            raise
        self._taken += len(piece)
        if self.is_complete:
            await self._source.is_taken_whole(self._taken)
        return piece

    async def _of_length(self) -> bytes:
        data = self.rest or await self._more(min(self._left, limits.READ_SIZE))
        piece, self.rest = (
            (data, b"") if len(data) <= self._left else (data[: self._left], data[self._left :])
        )
        self._left -= len(piece)
        return piece

    async def _of_chunks(self, chunks: ChunkReader) -> bytes:
        while not chunks.is_complete:
            data = self.rest or await self._more(limits.READ_SIZE)
            piece, after = chunks.receive(data[: limits.SLICE_SIZE])
            self.rest = after + data[limits.SLICE_SIZE :]
            if not chunks.is_complete:
                await self._source.next_slice()
            if piece:
                return piece
        return b""

    async def _more(self, size: int) -> bytes:
        data: bytes = await self._source.next_bytes(size)
        if not data:
            raise CutOff("the connection ended before the body")
        return data


class BlockingStream(io.RawIOBase):
    """The same for a thread that the loop waits for meanwhile; `io.BufferedReader` makes `wsgi.input` of it."""

    def __init__(self, stream: BodyStream, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._loop = loop

    def readable(self) -> bool:
        """Whether it can be read: it can."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  what has the protocol of buffers, which has no name before 3.12
        """Read into a buffer. Raises as `BodyStream.read` does."""
        view = memoryview(buffer)
        data = asyncio.run_coroutine_threadsafe(self._stream.read(len(view)), self._loop).result()
        view[: len(data)] = data
        return len(data)
