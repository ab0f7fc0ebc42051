"""Routes of FastAPI: only a route sees the response that is made of what an endpoint returns."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from hookonce.receiver.idempotency import endpoint
from hookonce.receiver.idempotency.frameworks.request import Asked
from hookonce.receiver.idempotency.records import Result

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(APIRoute):
    """A route whose endpoint may be decorated: `APIRouter(route_class=IdempotentRoute)`."""

    def get_route_handler(self) -> Handler:
        """Return what serves a request."""
        handle = super().get_route_handler()
        operation = endpoint.marked(self.endpoint)
        if operation is None:
            return handle

        async def once(request: Request) -> Response:
            async def view() -> Response:
                token = endpoint.served.set(True)
                try:
                    return await handle(request)
                finally:
                    endpoint.served.reset(token)

            body = await request.body()
            path = request.scope.get("root_path", "") + request.scope["path"]
            query = request.scope["query_string"].decode("latin-1")
            asked = Asked(request.method, path, query, request.headers, body)
            made: Response = await operation.serve_async(_Responses(), request, asked, view)
            return made

        return once


class _Responses:
    """What a route answers."""

    def asked(self, request: Any, /) -> Asked:  # noqa: ANN401
        """A route reads its request itself, since that awaits."""
        raise NotImplementedError

    def read(self, answer: Response, /) -> tuple[Response, Result]:
        """Return the response, and what there is to store of it; nothing of a stream's body."""
        body = getattr(answer, "body", None)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.raw_headers}
        if body is None:
            return answer, Result(answer.status_code, {}, b"", is_kept=False)
        return answer, Result(answer.status_code, headers, bytes(body))

    def response(self, result: Result, /) -> Response:
        """Make a response."""
        return Response(result.body, result.status, headers=dict(result.headers))
