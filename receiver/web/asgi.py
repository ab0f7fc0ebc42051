"""The inbox inside an ASGI application: on its event loop, as on that of our own worker.

Only what would hold the loop up is done by threads.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import OnLoop, loop_threads
from hookonce.receiver.web.mounted import Endpoint
from hookonce.receiver.web.response import Response, problem
from hookonce.receiver.web.slow_bodies import BodyTime

log = limited(__name__)

MAX_REQUESTS = 1000
"""Under way in one process; whoever comes then is told to come again."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class AsgiEndpoint:
    """The ASGI application of what is under `at`, for an application that mounts it there."""

    def __init__(self, endpoint: Endpoint, at: str) -> None:
        self._endpoint = endpoint
        self._at = at
        self._threads = loop_threads()
        self._requests = 0
        self._waits: tuple[asyncio.AbstractEventLoop, OnLoop] | None = None

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
                    (name.lower().encode("latin-1"), value.encode("latin-1"))
                    for name, value in answer.all_headers(len(answer.body))
                ],
            }
        )
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        if self._requests >= MAX_REQUESTS:
            log.warning("overloaded: %s", "too many requests are under way")
            return problem(503, "overloaded", close=True)
        self._requests += 1
        try:
            return await self._endpoint.answer(_AsgiRequest(scope, receive, self._at), self._ways())
        finally:
            self._requests -= 1

    def _ways(self) -> OnLoop:
        """Return how requests wait on the running loop: all of them by one, so that a batch wakes it once."""
        loop = asyncio.get_running_loop()
        if self._waits is None or self._waits[0] is not loop:
            self._waits = loop, OnLoop(*self._threads)
        return self._waits[1]


class _AsgiRequest:
    """A request of an ASGI server (`receiver.web.request.Request`).

    A header that was sent several times is joined as gunicorn does it; of several Content-Types the last one counts.
    A header with an underscore, which would become another's variable elsewhere, is left out.
    """

    is_bounded = True

    def __init__(self, scope: Scope, receive: Receive, at: str) -> None:
        self._receive = receive
        self._is_complete = False
        self._time: BodyTime | None = None
        self.method: str = scope["method"]
        self.path = at + str(scope["path"]).removeprefix(str(scope.get("root_path", ""))).lstrip("/")
        self.query = scope.get("query_string", b"").decode("latin-1")
        self.is_genuine = self.is_replay = False
        self.peer: str = (scope.get("client") or ("",))[0]
        self.headers: dict[str, str] = {}
        for raw, value in scope["headers"]:
            if b"_" not in raw:
                name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
                is_joined = name in self.headers and name != "content-type"
                self.headers[name] = f"{self.headers[name]},{text}" if is_joined else text

    async def piece(self, _size: int) -> bytes:
        """Return what the server has next. Raises: OSError where the client has gone, or takes too long."""
        clock = asyncio.get_running_loop().time
        self._time = self._time or BodyTime(clock())
        while not self._is_complete:
            async with asyncio.timeout_at(self._time.until):
                message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client has gone")
            self._is_complete = not message.get("more_body", False)
            if data := message.get("body", b""):
                self._time.extend(len(data), clock())
                return bytes(data)
        return b""
