"""An answer of Redis takes so long at most, and is so large at most, whatever the server does.

redis-py's `socket_timeout` is for each piece of an answer: a server that sends a byte every 200 ms would keep a
delivery waiting for ever, and one that announces a gigabyte would have us read it. So the library reads through a
socket that counts both, from what was asked to the next question. It is put in place by `redis_connect_func`, before
anything is said on the connection.
"""

import select
from collections.abc import Callable
from time import monotonic
from typing import Any

import redis

_LAST_LOOK = 0.001


class BoundedSocket:
    """A connected socket whose answers are bounded by `timeout` (seconds) and `size` (bytes)."""

    def __init__(self, client: Any, timeout: float, size: int) -> None:  # noqa: ANN401  a socket, or TLS's
        self._client = client
        self._answer_timeout = timeout
        self._size = size
        self._timeout: float | None = timeout
        self._until = self._left = 0.0
        self._is_answering = True

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  of the socket
        return getattr(self._client, name)

    def settimeout(self, timeout: float | None) -> None:
        """Set how long a piece may take; 0 is to look only."""
        self._timeout = timeout
        self._client.settimeout(timeout)

    def sendall(self, data: bytes) -> None:
        """Ask: from now on an answer is waited for."""
        if self._is_answering:
            self._until, self._left = monotonic() + self._answer_timeout, self._size
            self._is_answering = False
        self._client.sendall(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive a piece of an answer. Raises: `TimeoutError`; `OSError` for an answer that is too large."""
        if flags:
            return bytes(self._client.recv(size, flags))
        self._brace()
        return self._counted(self._client.recv(size))

    def recv_into(self, buffer: Any) -> int:  # noqa: ANN401  of bytes
        """Receive a piece as `recv`; the parser in C reads this way."""
        self._brace()
        received: int = self._client.recv_into(buffer)
        self._count(received)
        return received

    def _brace(self) -> None:
        """Let the next piece take what is left of the time; the first is looked for however late it is."""
        if self._timeout == 0:
            return
        left = self._until - monotonic()
        if left <= 0 and self._is_answering:
            raise TimeoutError("an answer took too long")
        allowed = self._answer_timeout if self._timeout is None else self._timeout
        self._client.settimeout(max(min(left, allowed), _LAST_LOOK))

    def _counted(self, data: bytes) -> bytes:
        self._count(len(data))
        return data

    def _count(self, received: int) -> None:
        self._is_answering = True
        self._left -= received
        if self._left < 0:
            raise OSError("an answer is too large")


def is_quiet(connection: Any) -> bool:  # noqa: ANN401  redis-py's, of any kind
    """Whether a connection is there and nothing has come on it, not even its end."""
    client = connection._sock  # noqa: SLF001  as below
    if client is None:
        return False
    look = select.poll()
    look.register(client, select.POLLIN)
    return not look.poll(0)


def bounding(timeout: float, size: int) -> Callable[[Any], None]:
    """Return what redis-py calls with a connection that has just been made, as its `redis_connect_func`."""

    def begin(connection: Any) -> None:  # noqa: ANN401  redis-py's, of any kind
        # No public part of redis-py lets us at the socket; `tests/redis/test_bounded_socket.py` notices a change.
        connection._sock = BoundedSocket(connection._sock, timeout, size)  # noqa: SLF001
        try:
            connection.on_connect()
        except redis.RedisError:
            raise
        except (
            Exception
        ) as error:  # the library hangs up after its own errors only, and would use the rest as it is
            raise redis.ConnectionError(type(error).__name__) from error

    return begin
