"""A client's socket, in plain or under TLS: reading never waits, and what waits can be ended from outside.

TLS runs on buffers in memory (`ssl.MemoryBIO`), so that we know what it holds: never more than one read of ours.
"""

import contextlib
import socket
import ssl
from typing import Any

from gevent.hub import Waiter

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.crowd import Graves
from hookonce.receiver.web.http.turns import Turns


class Gone(OSError):  # noqa: N818  as ConnectionError's kin
    """The client is not there any more, or speaks no TLS."""


class TooLate(OSError):  # noqa: N818  same
    """The client took too long, or had to make room."""


class Transport:
    """A client in plain. `client` is a non-blocking socket of Python's own, not gevent's."""

    has_more = False
    """Whether bytes may be waiting that no socket will tell of."""

    def __init__(self, client: Any, hub: Any) -> None:  # noqa: ANN401  `_socket.socket`, and gevent has no types
        self._client = client
        self._hub = hub
        self._readable = hub.loop.io(client.fileno(), 1)
        self._writable = hub.loop.io(client.fileno(), 2)
        self._waiter: Any = None
        self.is_expired = self.is_evicted = False

    def handshake(self, _turns: Turns) -> None:
        """Make ready."""

    def receive(self, size: int) -> bytes | None:
        """Return what is there, b"" at the end of everything and None if one has to wait. Raises `Gone`."""
        try:
            return bytes(self._client.recv(size))
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            raise Gone(type(error).__name__) from None

    def wait(self) -> None:
        """Wait until there may be more to receive, or somebody calls `wake`. Raises `TooLate`."""
        self._wait(self._readable)

    def send(self, data: bytes) -> None:
        """Send all, waiting as often as the client makes us. Raises `Gone` and `TooLate`."""
        self._send(data)

    def expire(self) -> None:
        """Make whoever waits, or will wait, end with `TooLate`."""
        self.is_expired = True
        self.wake()

    def evict(self) -> None:
        """The same, to make room."""
        self.is_evicted = True
        self.expire()

    def wake(self) -> None:
        """Make whoever waits look again; may be called by any greenlet."""
        if self._waiter is not None:
            self._hub.loop.run_callback(self._waiter.switch, None)

    def finish(self) -> None:
        """Say that nothing more will be sent."""
        with contextlib.suppress(OSError):
            self._client.shutdown(socket.SHUT_WR)

    def discard(self) -> bool:
        """Throw away what is there, however it is encrypted; False at the end of everything."""
        return Transport.receive(self, limits.READ_SIZE) != b""

    def close(self, graves: Graves) -> None:
        """Hang up; later if it had to make room."""
        for watcher in (self._readable, self._writable):
            watcher.stop()
            watcher.close()
        if self.is_evicted:
            graves.bury(self._client)
            return
        with contextlib.suppress(OSError):
            self._client.close()

    def _send(self, data: bytes) -> None:
        sent = self._try_to_send(data)
        while sent < len(data):
            self._wait(self._writable)
            sent += self._try_to_send(memoryview(data)[sent:])

    def _try_to_send(self, data: bytes | memoryview) -> int:
        try:
            return int(self._client.send(data))
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise Gone(type(error).__name__) from None

    def _wait(self, watcher: Any) -> None:  # noqa: ANN401
        if self.is_expired:
            raise TooLate
        self._waiter = waiter = Waiter(self._hub)
        watcher.start(waiter.switch, None)
        try:
            waiter.get()
        finally:
            watcher.stop()
            self._waiter = None
        if self.is_expired:
            raise TooLate


class SecureTransport(Transport):
    """A client under TLS."""

    def __init__(self, client: Any, hub: Any, context: ssl.SSLContext) -> None:  # noqa: ANN401
        super().__init__(client, hub)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    @property
    def has_more(self) -> bool:  # type: ignore[override]
        """Whether bytes may be waiting that no socket will tell of."""
        return bool(self._tls.pending() or self._incoming.pending)

    def handshake(self, turns: Turns) -> None:
        """Agree on keys; the first step, where we sign, in its turn. Raises `Gone` and `TooLate`."""
        self._read_raw()
        turns.wait_for_handshake()
        while True:
            if self.is_expired:
                raise TooLate
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._read_raw()
            except (ssl.SSLError, OSError) as error:
                self._say_why()
                raise Gone(type(error).__name__) from None
            else:
                self._flush()
                return

    def receive(self, size: int) -> bytes | None:  # noqa: D102
        for is_last in (False, True):
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._flush()
                if is_last or not self._fill():
                    return None  # what brings no byte of HTTP must not keep us here
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except (ssl.SSLError, OSError) as error:
                self._say_why()
                raise Gone(type(error).__name__) from None
        return None

    def send(self, data: bytes) -> None:  # noqa: D102
        for at in range(0, len(data), limits.WRITE_SIZE):
            try:
                self._tls.write(memoryview(data)[at : at + limits.WRITE_SIZE])
            except ssl.SSLError as error:
                raise Gone(type(error).__name__) from None
            self._flush()

    def finish(self) -> None:  # noqa: D102
        with contextlib.suppress(OSError, ValueError):
            self._tls.unwrap()
        self._say_why()
        super().finish()

    def _read_raw(self) -> None:
        while not self._fill():
            self._wait(self._readable)

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

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._send(self._outgoing.read())

    def _say_why(self) -> None:
        """Send an alert or a farewell, if the client takes it at once."""
        if self._outgoing.pending:
            with contextlib.suppress(OSError):
                self._try_to_send(self._outgoing.read())
