"""Views of Flask: a function under a request context."""

from typing import Any

from flask import Request, Response, current_app, has_request_context, request

from hookonce.receiver.endpoints.frameworks.request import (
    FORMS,
    Asked,
    BodyNotWhole,
    is_empty_form,
    spelled,
    whole,
)
from hookonce.receiver.endpoints.policy import HEADER
from hookonce.receiver.idempotency.records import Result

__all__ = ["asked", "is_asked", "read", "request", "response", "status_of"]


def is_asked() -> bool:
    """Whether a view is running."""
    return has_request_context()


def asked(request: Request, /) -> Asked:
    """Read a request, its body with it."""
    query = request.query_string.decode("latin-1")
    body = _body(request) if HEADER in request.headers else b""
    return Asked(request.method, request.root_path + request.path, query, request.headers, body)


def _body(request: Request) -> bytes:
    """Return what a form says, whether or not somebody read it before, and any other body as it came.

    A body that is kept can be read as a form afterwards; a form that was read leaves nothing of its body.
    """
    is_form, was_read = request.mimetype in FORMS, "form" in vars(request)
    body = b"" if is_form and was_read else _kept(request, was_read=was_read)
    is_empty = is_empty_form(request.headers, request.mimetype_params.get("boundary", ""))
    if is_form and (request.form or request.files or is_empty):
        files = (
            (name, [(each.filename, each.content_type, each.stream) for each in request.files.getlist(name)])
            for name in request.files
        )
        return spelled(((name, request.form.getlist(name)) for name in request.form), files)
    return whole(body, request.headers)  # a form that can't be read has no fields


def _kept(request: Request, *, was_read: bool) -> bytes:
    """Return the body as it came, which is kept from now on. Raises: `BodyNotWhole`.

    Werkzeug's names: `stream` is there when it was touched, `_cached_data` when the body was kept. A body of unknown
    length whose stream was touched may lack its beginning.
    """
    is_touched = "stream" in vars(request) and not was_read and not hasattr(request, "_cached_data")
    if is_touched and request.content_length is None:
        raise BodyNotWhole("its stream was read before")
    return whole(request.get_data(), request.headers)


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


def status_of(error: Exception, /) -> int | None:
    """Return the status of what `abort` raises, which alone of all exceptions makes a response."""
    made = getattr(error, "get_response", None)
    status = getattr(made(), "status_code", None) if callable(made) else None
    return status if isinstance(status, int) else None
