"""An HTTP answer, and the problem details of one that says no."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from hookonce.receiver.web import problem_details

_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


JSON = "application/json"


Headers = list[tuple[str, str]]


StartResponse = Callable[[str, Headers], Any]


class Response(NamedTuple):
    """An HTTP answer; `headers` besides Content-Type and Content-Length."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        """Status and reason."""
        return _LINES.get(self.status) or f"{self.status} Unknown"

    def all_headers(self, length: int) -> Headers:
        """The headers of an answer whose body has so many bytes; one of a 204 has none (RFC 9110, 8.6)."""
        sized = [] if self.status == 204 else [("Content-Length", str(length))]  # noqa: PLR2004
        return [("Content-Type", self.content_type), *sized, *self.headers]

    def send(self, method: str, start_response: StartResponse) -> list[bytes]:
        """Answer a WSGI request."""
        start_response(self.line, self.all_headers(len(self.body)))
        return [] if method == "HEAD" else [self.body]


def problem(status: int, code: str, *, allow: str = "POST", close: bool = False) -> Response:
    """Answer with RFC 9457 problem details whose `code` is the reason slug.

    `close` makes it the connection's last answer: part of a body may still be on its way.
    """
    headers = [("Connection", "close")] if close else []
    if status == 503:  # noqa: PLR2004  the one status that asks to come back
        headers.append(("Retry-After", problem_details.RETRY_AFTER))
    if status == 405:  # noqa: PLR2004  RFC 9110 wants the list
        headers.append(("Allow", allow))
    return Response(
        status, problem_details.document(status, code), problem_details.CONTENT_TYPE, tuple(headers)
    )
