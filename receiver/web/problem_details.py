"""Problem details (RFC 9457) whose `code` is the reason slug: what every refusal looks like."""

import json
from http import HTTPStatus

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER = "5"
"""Seconds; senders that read it come back then, all others by their own clock."""
TOO_MANY = "too_many_requests"
"""The code of what is beyond a limit."""
TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


def document(status: int, code: str, **more: object) -> bytes:
    """Write the body of a refusal; to a sender it never says more than the slug."""
    title = TITLES.get(status) or _phrase(status)
    return json.dumps(
        {"type": "about:blank", "title": title, "status": status, "code": code, **more}
    ).encode()


def _phrase(status: int) -> str:
    """Return what HTTP calls a status that a handler's `Refusal` has."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
