"""Views of Django: functions and methods that take a request."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from hookonce.receiver.idempotency.frameworks.request import Asked
from hookonce.receiver.idempotency.postgresql import Cursor
from hookonce.receiver.idempotency.records import Result


def request_of(args: Sequence[object]) -> HttpRequest | None:
    """Return the request among a view's arguments: the first, or a method's second."""
    return next((each for each in args[:2] if isinstance(each, HttpRequest)), None)


def asked(request: HttpRequest, /) -> Asked:
    """Read a request, its body with it."""
    query = request.META.get("QUERY_STRING", "")
    return Asked(request.method or "", request.path, query, request.headers, request.body)


def read(answer: HttpResponseBase, /) -> tuple[HttpResponseBase, Result]:
    """Return the response, and what there is to store of it. A stream is read to its end."""
    if not getattr(answer, "is_rendered", True):
        answer.render()
    if answer.streaming:
        whole = HttpResponse(b"".join(answer), status=answer.status_code)
        whole.headers = answer.headers
        answer = whole
    return answer, Result(answer.status_code, dict(answer.items()), answer.content)


def response(result: Result, /) -> HttpResponse:
    """Make a response."""
    made = HttpResponse(result.body, status=result.status, headers=dict(result.headers))
    if not any(name.lower() == "content-type" for name in result.headers):
        del made.headers["Content-Type"]
    return made


def cursor() -> Cursor:
    """Return a cursor of the default database, in the transaction that is open there."""
    driver: Any = connection.cursor()
    made: Cursor = driver.cursor
    return made
