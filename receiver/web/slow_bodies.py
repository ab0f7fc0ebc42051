"""Bodies that come too slowly where a thread waits for them: a read can't be ended there, so its socket is.

A server that shows its socket to applications (gunicorn, Werkzeug) has its side for reading shut when the time for a
piece of a body is over: the read ends, and the answer can still be written. Of other servers the limits are their own.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from hookonce.receiver.web.http import limits

_SOCKETS = ("gunicorn.socket", "werkzeug.socket")


class BodyTime:
    """Until when the next bytes of a body must come; `now` is of any one clock, in seconds."""

    __slots__ = ("_end", "until")

    def __init__(self, now: float) -> None:
        self._end = now + limits.BODY_TIMEOUT.total_seconds()
        self.until = now + limits.BODY_LAG.total_seconds()

    def extend(self, size: int, now: float) -> None:
        """Note that so many bytes came."""
        self.until = min(
            self.until + size / limits.BODY_RATE, now + limits.BODY_LAG.total_seconds(), self._end
        )


class Watch:
    """Shuts sockets whose time is over, in a thread of its own that the first request of a process starts."""

    def __init__(self) -> None:
        self._until: dict[Any, float] = {}
        self._process = 0
        self._starting = threading.Lock()

    def begin(self, client: Any) -> None:  # noqa: ANN401  a socket
        """Watch a socket from now on."""
        self._until[client] = time.monotonic() + limits.BODY_LAG.total_seconds()
        if self._process != os.getpid():
            with self._starting:
                if self._process != os.getpid():
                    self._process = os.getpid()
                    threading.Thread(target=self._run, name="hookonce-slow-bodies", daemon=True).start()

    def end(self, client: Any) -> bool:  # noqa: ANN401  same
        """Watch it no longer; whether it was in time."""
        return self._until.pop(client, None) is not None

    def _run(self) -> None:
        while True:
            time.sleep(limits.LOOK.total_seconds())
            now = time.monotonic()
            for client in [each for each, until in list(self._until.items()) if until < now]:
                if self._until.pop(client, None) is not None:
                    with contextlib.suppress(OSError):
                        socket.socket.shutdown(client, socket.SHUT_RD)  # TLS goes on for the answer


_WATCH = Watch()


@contextlib.contextmanager
def watched(environ: Mapping[str, Any]) -> Iterator[None]:
    """Have a read of a request end when it takes too long. Raises: TimeoutError then."""
    client = next((environ[name] for name in _SOCKETS if name in environ), None)
    if client is None:
        yield
        return
    _WATCH.begin(client)
    try:
        yield
    finally:
        if not _WATCH.end(client):  # whatever the server makes of the end of its socket
            raise TimeoutError("a piece of a body took too long")
