"""Views of Django: functions and methods that take a request."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, RawPostDataException
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch

from hookonce.receiver.endpoints.frameworks.request import (
    Asked,
    BodyNotWhole,
    is_empty_form,
    spelled,
    whole,
)
from hookonce.receiver.endpoints.policy import HEADER
from hookonce.receiver.idempotency.postgresql import Cursor
from hookonce.receiver.idempotency.records import Result


def request_of(args: Sequence[object]) -> HttpRequest | None:
    """Return the request among a view's arguments: the first, or a method's second."""
    return next((each for each in args[:2] if isinstance(each, HttpRequest)), None)


def asked(request: HttpRequest, /) -> Asked:
    """Read a request, its body with it."""
    query = request.META.get("QUERY_STRING", "")
    body = _body(request) if HEADER in request.headers else b""
    return Asked(request.method or "", request.path, query, request.headers, body)


def _body(request: HttpRequest) -> bytes:
    """Return what a form with files says, which a middleware may have read before, and any other body as it came.

    Django reads such a form from its stream and keeps nothing of the body; of other forms it keeps the body.
    """
    if request.method == "POST" and request.content_type == "multipart/form-data":
        fields, files = request.POST, request.FILES
        if fields or files or is_empty_form(request.headers, _boundary(request)):
            read = (
                (name, [(each.name, each.content_type, each) for each in files.getlist(name)])
                for name in files
            )
            return spelled(((name, fields.getlist(name)) for name in fields), read)
    try:
        return whole(request.body, request.headers)
    except RawPostDataException as error:
        raise BodyNotWhole("its stream was read before") from error


def _boundary(request: HttpRequest) -> str:
    return str((request.content_params or {}).get("boundary", ""))


def read(answer: HttpResponseBase, /) -> tuple[HttpResponseBase, Result]:
    """Return the response, and what there is to store of it. A stream is read to its end.

    A redirect to the page where one signs in is what `login_required` answers a stranger: it counts as a 401.
    """
    if not getattr(answer, "is_rendered", True):
        answer.render()
    if answer.streaming:
        whole = HttpResponse(b"".join(answer), status=answer.status_code)
        whole.headers = answer.headers
        answer = whole
    if _is_sign_in(answer):
        return answer, Result(401)
    return answer, Result(answer.status_code, dict(answer.items()), answer.content)


def _is_sign_in(answer: HttpResponse) -> bool:
    if not 300 <= answer.status_code < 400:  # noqa: PLR2004  redirects
        return False
    page = str(settings.LOGIN_URL)
    try:
        page = page if "/" in page else resolve_url(page)  # else it is the name of a view
    except NoReverseMatch:
        return False
    return bool(urlsplit(answer.get("Location", "")).path == urlsplit(page).path)


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


def status_of(error: Exception, /) -> int | None:
    """Return the status of what a view raises; Django REST framework's exceptions say it themselves."""
    if isinstance(error, PermissionDenied):
        return 403
    if isinstance(error, Http404):
        return 404
    if not any(kind.__module__.startswith("rest_framework.") for kind in type(error).__mro__):
        return None
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None
