"""A client's socket, in plain or under TLS: reading never waits, and what waits can be ended from outside.

TLS runs on buffers in memory (`ssl.MemoryBIO`), so that we know what it holds: never more than one read of ours.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import cast

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.clients import Client
from hookonce.receiver.web.http.crowd import Graves
from hookonce.receiver.web.http.turns import Turns


class Gone(OSError):  # noqa: N818  as ConnectionError's kin
    """The client is not there any more, or speaks no TLS."""


class TooLate(TimeoutError):  # noqa: N818  same
    """The client took too long, or had to make room."""


_RECORD_HEADER, _HANDSHAKE_RECORD = 5, 22

_BUFFER = memoryview(bytearray(limits.READ_SIZE))
"""What is received passes through it; one loop in a process, and nothing comes between a reception and its copy."""


class Transport(asyncio.BufferedProtocol):
    """A client in plain; one task at a time waits for it.

    It holds no more than two receptions, of which nobody has asked for the second: then it stops receiving, until
    somebody waits.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._out: asyncio.Transport
        self._received = b""
        self._size = limits.HEAD_READ
        self._waiter: asyncio.Future[None] | None = None
        self._wants_bytes = self._is_paused = self._is_full = self._is_over = False
        self._discards = False
        self._lost: Exception | None = None
        self.taker: Callable[[bytes], bool] | None = None
        """Is offered what comes while somebody waits for it, and may answer it with `write` and `go_on`."""
        self.is_expired = self.is_evicted = False

    async def greet(self) -> None:
        """Wait until the client has said enough to be worth work. Raises `Gone` and `TooLate`."""

    async def handshake(self, _turns: Turns, _client: Client) -> None:
        """Make ready."""

    @property
    def has_more(self) -> bool:
        """Whether bytes may be waiting that no socket will tell of."""
        return bool(self._received)

    def receive(self, size: int) -> bytes | None:
        """Return what is there, b"" at the end of everything and None if one has to wait. Raises `Gone`."""
        self._size = size
        data = self._received
        if data:
            if len(data) > size:
                data, self._received = data[:size], data[size:]
            else:
                self._received = b""
            return data
        if self._lost is not None:
            raise Gone(type(self._lost).__name__)
        return b"" if self._is_over else None

    async def wait(self) -> None:
        """Wait until there may be more to receive, or somebody calls `wake`. Raises `TooLate`."""
        if self._received or self._is_over:
            return
        if self._is_paused:
            self._is_paused = False
            self._out.resume_reading()
        self._wants_bytes = True
        try:
            await self.rest()
        finally:
            self._wants_bytes = False

    async def send(self, data: bytes) -> None:
        """Send all, waiting as often as the client makes us. Raises `Gone` and `TooLate`."""
        for at in range(0, len(data), limits.WRITE_SIZE):
            self.write(data[at : at + limits.WRITE_SIZE])
            await self.drained()

    def write(self, data: bytes) -> None:
        """Send all, as soon as the client takes it. Raises `Gone`."""
        if self._is_over and (self._lost is not None or self._out.is_closing()):
            raise Gone(type(self._lost).__name__)
        self._out.write(data)

    def go_on(self, *, is_last: bool) -> None:
        """Offer what comes again, after something was taken; whoever waits is to look where that is not all."""
        self._wants_bytes = not (is_last or self._is_paused or self._is_over or self._is_full)
        if not self._wants_bytes:
            self.wake()

    def expire(self) -> None:
        """Make whoever waits, or will wait, end with `TooLate`."""
        self.is_expired = True
        self.wake()

    def evict(self) -> None:
        """The same, to make room."""
        self.is_evicted = True
        self.expire()

    def wake(self) -> None:
        """Make whoever waits look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def finish(self) -> None:
        """Say that nothing more will be sent."""
        if not self._out.is_closing():
            self._out.write_eof()

    def discard(self) -> bool:
        """Throw away what is there, however it is encrypted, and what comes; False at the end of everything."""
        self._received = b""
        self._discards = True
        return not self._is_over

    def hang_up(self, graves: Graves) -> None:
        """Hang up; later if it had to make room."""
        self._received = b""
        if self.is_evicted and not self._is_over:
            if not self._is_paused:
                self._is_paused = True
                self._out.pause_reading()
            graves.bury(self)
        else:
            self.close()

    def close(self) -> None:
        """Hang up, whatever is on its way out."""
        if self.is_expired or self._is_full:
            self._out.abort()
        else:
            self._out.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take what sends; asyncio's, as those that follow."""
        self._out = cast("asyncio.Transport", transport)  # uvloop's is of no such class
        self._out.set_write_buffer_limits(0)

    def get_buffer(self, _hint: int) -> memoryview:  # noqa: D102
        return _BUFFER[: self._size]

    def buffer_updated(self, size: int) -> None:  # noqa: D102
        if not self._discards:
            self._received += bytes(_BUFFER[:size])
        if self._wants_bytes and self.taker is not None and self._is_taken(self.taker):
            self._wants_bytes = False
        elif self._wants_bytes:
            self._wants_bytes = (
                False  # uvloop goes on with up to 32 receptions before who waits comes to them
            )
            self.wake()
        elif not self._is_paused:
            self._is_paused = True
            self._out.pause_reading()

    def eof_received(self) -> bool:  # noqa: D102
        self._is_over = True
        self.wake()
        return True  # it may still listen

    def connection_lost(self, error: Exception | None) -> None:  # noqa: D102
        self._is_over, self._is_full = True, False
        self._lost = error or ConnectionAbortedError()
        self.wake()

    def pause_writing(self) -> None:  # noqa: D102
        self._is_full = True

    def resume_writing(self) -> None:  # noqa: D102
        self._is_full = False
        if not self._wants_bytes:
            self.wake()

    def _is_taken(self, taker: Callable[[bytes], bool]) -> bool:
        data, self._received = self._received, b""
        if taker(data):
            return True
        self._received = data
        return False

    async def drained(self) -> None:
        """Wait until the kernel has taken all that was written. Raises `Gone` and `TooLate`."""
        while self._is_full:
            await self.rest()
            if self._lost is not None:
                raise Gone(type(self._lost).__name__)

    async def rest(self) -> None:
        """Wait until somebody calls `wake`. Raises `TooLate`."""
        if self.is_expired:
            raise TooLate
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self.is_expired:
            raise TooLate


class SecureTransport(Transport):
    """A client under TLS. OpenSSL's part of it, 50 KB, is made when the first record is there."""

    _tls: ssl.SSLObject

    def __init__(self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext) -> None:
        super().__init__(loop)
        self._context = context
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._left = b""  # decrypted, and not taken

    @property
    def has_more(self) -> bool:
        """Whether bytes may be waiting that no socket will tell of."""
        return bool(self._left or self._tls.pending() or self._incoming.pending or self._received)

    async def greet(self) -> None:
        """Wait for the first record: many who begin a handshake never end it. Raises `Gone` and `TooLate`."""
        hello = b""
        while not self._is_over and not _is_whole(hello):
            hello += Transport.receive(self, limits.TLS_READ_SIZE) or b""
            if not _is_whole(hello):
                await self.wait()
        self._incoming.write(hello)
        if self._is_over:
            raise Gone("the handshake was not begun")

    async def handshake(self, turns: Turns, client: Client) -> None:
        """Agree on keys; the first step, where we sign, in its turn. Raises `Gone` and `TooLate`."""
        await turns.wait_for_handshake(client)
        self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        while True:
            if self.is_expired:
                raise TooLate
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._read_raw()
            except (ssl.SSLError, OSError) as error:
                self._say_why()
                raise Gone(type(error).__name__) from None
            else:
                await self._flush()
                return

    def receive(self, size: int) -> bytes | None:  # noqa: D102
        if self._left:
            data, self._left = self._left, b""
            return data
        for is_last in (False, True):
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._say_why()  # a key's update, or a ticket; no answer is on its way here
                if is_last or not self._fill():
                    return None  # what brings no byte of HTTP must not keep us here
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except (ssl.SSLError, OSError) as error:
                self._say_why()
                raise Gone(type(error).__name__) from None
        return None

    def write(self, data: bytes) -> None:  # noqa: D102
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            raise Gone(type(error).__name__) from None
        super().write(self._outgoing.read())

    def finish(self) -> None:  # noqa: D102
        with contextlib.suppress(OSError, ValueError):
            self._tls.unwrap()
        self._say_why()
        super().finish()

    async def _read_raw(self) -> None:
        while not self._fill():
            await self.wait()

    def _fill(self) -> bool:
        """Take encrypted bytes; False if there are none. At the end of everything TLS learns of it."""
        data = Transport.receive(self, limits.TLS_READ_SIZE)
        if data is None:
            return False
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return True

    def _is_taken(self, taker: Callable[[bytes], bool]) -> bool:
        with contextlib.suppress(Gone):  # which is raised again
            data = self.receive(limits.HEAD_READ)
            if data and not self.has_more and taker(data):
                return True
            self._left = data or b""
        return False

    async def _flush(self) -> None:
        if self._outgoing.pending:
            super().write(self._outgoing.read())
            await self.drained()

    def _say_why(self) -> None:
        """Send an alert, a farewell or whatever else TLS has to say, without waiting for the client to take it."""
        if self._outgoing.pending and not self._out.is_closing():
            self._out.write(self._outgoing.read())


def _is_whole(begun: bytes) -> bool:
    """Whether a TLS record is there (RFC 8446, 5.1), or more of one than hellos have, or something that is none."""
    if len(begun) < _RECORD_HEADER:
        return bool(begun) and begun[0] != _HANDSHAKE_RECORD
    size = _RECORD_HEADER + int.from_bytes(begun[3:5])
    return begun[0] != _HANDSHAKE_RECORD or len(begun) >= min(size, limits.HELLO_SIZE)
