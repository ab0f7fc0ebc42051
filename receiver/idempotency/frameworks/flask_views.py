"""Views of Flask: a function under a request context."""

from typing import Any

from flask import Request, Response, current_app, has_request_context, request

from hookonce.receiver.idempotency.frameworks.request import Asked
from hookonce.receiver.idempotency.records import Result

__all__ = ["asked", "is_asked", "read", "request", "response"]


def is_asked() -> bool:
    """Whether a view is running."""
    return has_request_context()


def asked(request: Request, /) -> Asked:
    """Read a request, its body with it."""
    query = request.query_string.decode("latin-1")
    return Asked(request.method, request.root_path + request.path, query, request.headers, request.get_data())


def read(answer: Any, /) -> tuple[Response, Result]:  # noqa: ANN401  whatever Flask takes
    """Return the response that a view's answer is, and what there is to store of it."""
    made = current_app.make_response(answer)
    made.direct_passthrough = False
    return made, Result(made.status_code, dict(made.headers), made.get_data())


def response(result: Result, /) -> Response:
    """Make a response."""
    made = Response(result.body, result.status)
    del made.headers["Content-Type"]
    made.headers.update(result.headers)
    return made
