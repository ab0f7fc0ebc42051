"""The inbox inside an ASGI application: the event loop reads the body, a thread does the rest and waits for the ledger.

One thread a request, up to `THREADS`: verifying takes a moment of CPU, and waiting for the commit of the batch is
what most of the time is spent on. The thread gets the request as a WSGI environment, so that both fronts are one.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hookonce.receiver.logs import limited
from hookonce.receiver.web.body import Overloaded, Reservation
from hookonce.receiver.web.hooks import DeliveryEndpoint
from hookonce.receiver.web.http import limits
from hookonce.receiver.web.response import Response, problem

log = limited(__name__)

THREADS = 64
"""As many as a batch of the group commit holds."""
MAX_REQUESTS = 1000
"""Under way in one process, with threads or waiting for one; whoever comes then is told to come again."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class AsgiEndpoint:
    """The ASGI application of what is under `at`, for an application that mounts it there."""

    def __init__(self, endpoint: DeliveryEndpoint, at: str) -> None:
        self._endpoint = endpoint
        self._at = at
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="hookonce-request")
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI 3)."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        answer = await self._answer(scope, receive)
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [
                    (b"content-type", answer.content_type.encode("latin-1")),
                    (b"content-length", str(len(answer.body)).encode()),
                    *((n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in answer.headers),
                ],
            }
        )
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        if self._requests >= MAX_REQUESTS:
            log.warning("overloaded: %s", "too many requests are under way")
            return problem(503, "overloaded", close=True)
        path, environ = _path(scope), _environ(scope)
        self._requests += 1
        try:
            with Reservation(self._endpoint.memory_budget) as reservation:
                limit = self._endpoint.max_body(path)
                environ["wsgi.input"] = await _read(receive, environ, limit, reservation)
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, self._endpoint.answer, self._at, path, environ, reservation
                )
        finally:
            self._requests -= 1


class _Unread:
    """A body that could not be read, for who comes to read it."""

    def __init__(self, why: Exception) -> None:
        self._why = why

    def read(self, _size: int) -> bytes:
        """Raise why."""
        raise self._why


async def _read(
    receive: Receive, environ: Mapping[str, Any], limit: int, reservation: Reservation
) -> io.BytesIO | _Unread:
    """Read a body, no further than shows that it is too large, and nothing that says so itself."""
    found = io.BytesIO()
    length = environ.get("CONTENT_LENGTH", "")
    if limit == 0 or (length.isascii() and length.isdigit() and int(length[:20]) > limit):
        return found
    try:
        async with asyncio.timeout(limits.BODY_TIMEOUT.total_seconds()):
            is_more = True
            while is_more and found.tell() <= limit:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return _Unread(ConnectionResetError("the client has gone"))
                found.write(message.get("body", b""))
                reservation.reserve(found.tell())
                is_more = message.get("more_body", False)
    except (TimeoutError, Overloaded) as error:
        return _Unread(error)
    found.seek(0)
    return found


def _path(scope: Scope) -> str:
    """Return what of the path comes after the place that we are mounted at."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return (path.removeprefix(root)).lstrip("/")


def _environ(scope: Scope) -> dict[str, Any]:
    """Make a WSGI environment of a request, as far as deliveries need one.

    A header that was sent several times is joined as gunicorn does it; one with an underscore, which would become
    another's variable, is left out.
    """
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "QUERY_STRING": scope.get("query_string", b"").decode("latin-1"),
        "wsgi.input_terminated": True,
    }
    for name, value in scope["headers"]:
        if b"_" not in name:
            variable = name.decode("latin-1").upper().replace("-", "_")
            if variable not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
                variable = f"HTTP_{variable}"
            text = value.decode("latin-1")
            environ[variable] = f"{environ[variable]},{text}" if variable in environ else text
    return environ
