"""A request that our worker has read: what endpoints see of it, and its WSGI environment (PEP 3333) for all others."""

import sys
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from hookonce.receiver.web.http.body_stream import BodyStream
from hookonce.receiver.web.http.head import Head

_PLAIN = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
_PROTOCOLS = {(1, 0): "HTTP/1.0", (1, 1): "HTTP/1.1"}

Environ = dict[str, Any]


def base(server: tuple[str, str], scheme: str, *, is_multiprocess: bool) -> Environ:
    """Return what all environments of a listener have in common."""
    return {
        "SCRIPT_NAME": "",
        "SERVER_NAME": server[0],
        "SERVER_PORT": server[1],
        "SERVER_SOFTWARE": "hookonce",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": is_multiprocess,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }


class IncomingRequest:
    """A request (`receiver.web.request.Request`); its headers are decoded once, when the first asks for them."""

    __slots__ = (
        "_headers",
        "head",
        "is_genuine",
        "is_replay",
        "method",
        "path",
        "peer",
        "query",
        "stream",
        "target",
    )

    is_bounded = True

    stream: BodyStream

    def __init__(self, head: Head, peer: str = "") -> None:
        self.head = head
        self.peer = peer
        self.method = head.method
        self.target = head.target
        path, _, self.query = self.target.partition("?")
        self.path = unquote_to_bytes(path).decode("latin-1") if "%" in path else path
        self.is_genuine = self.is_replay = False
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers."""
        headers = self._headers
        if headers is None:
            headers = self._headers = self.head.headers
        return headers

    async def piece(self, size: int) -> bytes:
        """Read, standing in line where it is a lot. Raises: OSError, ValueError."""
        return await self.stream.read(size)

    def environ(self, common: Environ, client: tuple[str, str]) -> Environ:
        """Return the environment, but for `wsgi.input`."""
        made = common.copy()
        made["REQUEST_METHOD"] = self.method
        made["RAW_URI"] = self.target
        made["PATH_INFO"] = self.path
        made["QUERY_STRING"] = self.query
        made["SERVER_PROTOCOL"] = _PROTOCOLS[self.head.version]
        made["REMOTE_ADDR"], made["REMOTE_PORT"] = client
        for name, text in self.headers.items():
            made[_variable(name)] = text
        return made


@lru_cache(maxsize=512)
def _variable(name: str) -> str:
    """Return the WSGI variable of a header."""
    return _PLAIN.get(name) or "HTTP_" + name.upper().replace("-", "_")
