"""A request as endpoints see it, whatever server reads it: `Request` is the port, `WsgiRequest` any WSGI server's."""

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from hookonce.receiver.web.slow_bodies import BodyTime, watched

GENUINE = "hookonce.genuine"
"""Set in a WSGI environment where `Request.is_genuine` is."""


class Request(Protocol):
    """One request. `path` is decoded, `headers` has lower-case names and latin-1 text, duplicates joined with a comma.

    `is_genuine` is set where an event was verified, and only there: its sender need not stand in line with strangers,
    and is the last to make room. That a probe was answered proves nothing, for anybody may ask. `is_replay` is set
    where all that was verified is known: whoever saw one delivery can send it again and again.
    """

    method: str
    path: str
    query: str
    is_genuine: bool
    is_replay: bool

    @property
    def peer(self) -> str:
        """The address that opened the connection; '' where it has none."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""

    @property
    def is_bounded(self) -> bool:
        """Whether the server knows where a body without Content-Length ends."""

    async def piece(self, size: int) -> bytes:
        """Return the next bytes of the body, at most about `size`; b"" at its end. Raises: OSError, ValueError."""


class WsgiRequest:
    """A request of a WSGI server; reading blocks the thread. A framework may know its `path` better."""

    def __init__(self, environ: dict[str, Any], path: str | None = None) -> None:
        self._environ = environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ["PATH_INFO"] if path is None else path
        self.query: str = environ.get("QUERY_STRING") or ""
        self.is_replay = False
        self._time: BodyTime | None = None
        self._headers: dict[str, str] | None = None

    @property
    def peer(self) -> str:
        """The address that opened the connection."""
        return str(self._environ.get("REMOTE_ADDR") or "")

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        if self._headers is None:
            environ = self._environ
            self._headers = {_header(name): value for name, value in environ.items() if name[:5] == "HTTP_"}
            for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                if environ.get(name):
                    self._headers[_header(f"HTTP_{name}")] = environ[name]
        return self._headers

    @property
    def is_bounded(self) -> bool:
        """Whether the server says so."""
        return bool(self._environ.get("wsgi.input_terminated"))

    @property
    def is_genuine(self) -> bool:
        """Whether an event was verified."""
        return GENUINE in self._environ

    @is_genuine.setter
    def is_genuine(self, value: bool) -> None:
        if value:
            self._environ[GENUINE] = True

    async def piece(self, size: int) -> bytes:
        """Read, for as long as a piece may take where the server shows its socket. Raises: OSError."""
        self._time = self._time or BodyTime(time.monotonic())
        with watched(self._environ):
            data: bytes = self._environ["wsgi.input"].read(size)
        if (now := time.monotonic()) > self._time.until:
            raise TimeoutError("a body took too long")
        self._time.extend(len(data), now)
        return data


@lru_cache(maxsize=512)
def _header(variable: str) -> str:
    """Return the lower-case name of a header from that of its WSGI variable."""
    return variable[5:].replace("_", "-").lower()
