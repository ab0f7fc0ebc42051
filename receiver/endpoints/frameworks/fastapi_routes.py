"""Routes of FastAPI: an endpoint is called when all dependencies have let a request in; a route sees its response.

So a key is claimed, and a stored answer given, in the call of the endpoint: for a stranger the store is not asked.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from hookonce.receiver.endpoints import endpoint as endpoints
from hookonce.receiver.endpoints.endpoint import Idempotent
from hookonce.receiver.endpoints.exchange import Arguments
from hookonce.receiver.endpoints.frameworks.request import Asked, whole
from hookonce.receiver.endpoints.policy import HEADER
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.records import Claim, Result

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(APIRoute):
    """A route whose endpoint may be decorated: `APIRouter(route_class=IdempotentRoute)`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401  FastAPI's
        """Raises: TypeError for an endpoint that yields its answer."""
        operation = endpoints.marked(endpoint)
        if operation is not None:
            inner = inspect.unwrap(endpoint)
            if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
                raise TypeError(
                    f"{inner.__name__}: an endpoint that yields has no answer to keep; expected one that returns it"
                )
            endpoint = endpoints.waiting(endpoint, run_in_threadpool)
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        """Return what serves a request."""
        handle = super().get_route_handler()
        operation = endpoints.marked(self.endpoint)
        if operation is None:
            return handle

        async def once(request: Request) -> Response:
            body = await request.body()  # the request keeps it, for whoever reads it as a stream or a form
            served = _Served(operation, request, body)
            token = endpoints.routed.set(served)
            try:
                response = await handle(request)
                return response if served.claim is None else await _ended(operation, served.claim, response)
            except Exception as error:  # one that is cancelled may have had its effect: its lease is to tell
                if served.claim is not None:
                    await asyncio.to_thread(operation.exchange.failed, served.claim, _status_of(error))
                raise
            finally:
                endpoints.routed.reset(token)

        return once


class _Served:
    """A request in the hands of a route; `claim` is what its endpoint works under."""

    def __init__(self, operation: Idempotent, request: Request, body: bytes) -> None:
        self._operation = operation
        self._request = request
        self._body = body
        self._is_called = False
        self.claim: Claim | None = None

    def call(self, operation: Idempotent, view: Callable[[], Any], arguments: Arguments, /) -> Any:  # noqa: ANN401
        """Return what the view gives, or the answer in its place; in a thread of FastAPI's."""
        if self._is_other(operation):
            return view()
        begun = operation.exchange.claim(self._asked(), self._request, arguments)
        if isinstance(begun, Result):
            return _response(begun)
        if begun is None:
            return view()
        self.claim = begun
        with operation.exchange.working(begun):
            return view()

    async def call_async(
        self, operation: Idempotent, view: Callable[[], Awaitable[Any]], arguments: Arguments, /
    ) -> Any:  # noqa: ANN401  the view's
        """Return what the view gives, or the answer in its place."""
        if self._is_other(operation):
            return await view()
        begun = await operation.exchange.claim_async(self._asked(), self._request, arguments)
        if isinstance(begun, Result):
            return _response(begun)
        if begun is None:
            return await view()
        self.claim = begun
        with operation.exchange.working(begun):
            return await view()

    def _is_other(self, operation: Idempotent) -> bool:
        """Whether a decorated function was called that is not the route's endpoint, or is called once more."""
        was_called, self._is_called = self._is_called, True
        return was_called or operation is not self._operation

    def _asked(self) -> Asked:
        request = self._request
        path = request.scope.get("root_path", "") + request.scope["path"]
        query = request.scope["query_string"].decode("latin-1")
        body = whole(self._body, request.headers) if HEADER in request.headers else b""
        return Asked(request.method, path, query, request.headers, body)


async def _ended(operation: Idempotent, claim: Claim, response: Response) -> Response:
    """Store what an endpoint gave; return it, or what to answer instead."""
    refused = await operation.exchange.end_async(claim, _result(response))
    reach("operation.answered")
    return response if refused is None else _response(refused)


def _result(answer: Response) -> Result:
    """Return what there is to store of a response; nothing of a stream's body."""
    body = getattr(answer, "body", None)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.raw_headers}
    if body is None:
        return Result(answer.status_code, {}, b"", is_kept=False)
    return Result(answer.status_code, headers, bytes(body))


def _response(result: Result) -> Response:
    return Response(result.body, result.status, headers=dict(result.headers))


def _status_of(error: Exception) -> int | None:
    """Return the status of an HTTPException, FastAPI's or Starlette's; errors of clients have statuses of others."""
    if not isinstance(error, HTTPException.__bases__):
        return None
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None
