"""Receives webhooks in Django, under WSGI and ASGI. Django's own connection is not used for it."""

import threading
from functools import cache
from typing import Any

from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from hookonce.receiver.web.hooks import DeliveryEndpoint
from hookonce.receiver.web.mounted import endpoint
from hookonce.receiver.web.request import WsgiRequest

_one_at_a_time = threading.Lock()


@non_atomic_requests  # type: ignore[untyped-decorator]  # Django has no types
@csrf_exempt  # type: ignore[untyped-decorator]
def receive(request: HttpRequest, rest: str) -> HttpResponse:
    """Answer a delivery to `rest`, which is `<source>` or `<source>/<secret>`."""
    inbox = _inbox()
    prefix = request.path_info.removesuffix(rest)
    answer = inbox.answered(WsgiRequest(_environ(request), prefix + rest), prefix)
    response = HttpResponse(answer.body, status=answer.status, content_type=answer.content_type)
    for name, value in answer.headers:
        if name != "Connection":  # PEP 3333 leaves it to the server, and `runserver` insists
            response[name] = value
    return response


def _inbox() -> DeliveryEndpoint:
    with _one_at_a_time:  # or two threads would each make one
        return _made()


@cache
def _made() -> DeliveryEndpoint:
    return endpoint()


def _environ(request: HttpRequest) -> dict[str, Any]:
    """Return the WSGI environment of a request, its body as it comes unless a middleware has read that already."""
    environ = getattr(request, "environ", None)
    if environ is not None and not request._read_started:  # noqa: SLF001  nothing else tells
        return dict(environ)
    return {**request.META, "wsgi.input": request, "wsgi.input_terminated": True}
