"""A WSGI environment (PEP 3333), made once from the bytes of a head.

`hookonce.headers` holds the headers too, by their lower-case names: who needs all of them need not make them again.
"""

import sys
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from hookonce.receiver.web.http.head import Head

HEADERS = "hookonce.headers"
GENUINE = "hookonce.genuine"
"""Set by the application where an event was verified, and only there: its sender need not stand in line with strangers,
and is the last to make room. That a probe was answered proves nothing, for anybody may ask."""
_PLAIN = {b"content-type": "CONTENT_TYPE", b"content-length": "CONTENT_LENGTH"}
_PROTOCOLS = {(1, 0): "HTTP/1.0", (1, 1): "HTTP/1.1"}

Environ = dict[str, Any]


def base(server: tuple[str, str], scheme: str, *, is_multiprocess: bool) -> Environ:
    """Return what all requests of a listener have in common."""
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


def environ(common: Environ, head: Head, client: tuple[str, str], stream: object) -> Environ:
    """Return the environment of one request."""
    target = head.target.decode("ascii")
    path, _, query = target.partition("?")
    made = common.copy()
    made["REQUEST_METHOD"] = head.method
    made["RAW_URI"] = target
    made["PATH_INFO"] = unquote_to_bytes(path).decode("latin-1") if "%" in path else path
    made["QUERY_STRING"] = query
    made["SERVER_PROTOCOL"] = _PROTOCOLS[head.version]
    made["REMOTE_ADDR"], made["REMOTE_PORT"] = client
    made["wsgi.input"] = stream
    headers: dict[str, str] = {}
    for raw, value in head.headers:
        name, variable = _names(raw)
        text = value.decode("latin-1")
        if name in headers:
            text = f"{headers[name]},{text}"
        headers[name] = made[variable] = text
    made[HEADERS] = headers
    return made


@lru_cache(maxsize=512)
def _names(raw: bytes) -> tuple[str, str]:
    """Return a header's name, and that of its WSGI variable."""
    name = raw.decode("ascii")
    return name, _PLAIN.get(raw) or "HTTP_" + name.upper().replace("-", "_")
