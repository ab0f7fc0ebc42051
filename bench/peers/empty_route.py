"""Routes that do nothing, on gunicorn as it comes, with its gevent worker: what the web server alone can do."""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, Response, request

flask_app = Flask("empty")
_ANSWER = b'{"status": "accepted"}'


@flask_app.get("/empty")
def empty() -> Response:
    """Answer at once: the empty Flask route that ingest is compared with."""
    return Response(_ANSWER, content_type="application/json")


@flask_app.post("/hooks/github")
def read() -> Response:
    """Read a delivery and keep nothing."""
    request.get_data()
    return Response(_ANSWER, content_type="application/json")


def raw(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Read a delivery and keep nothing, without Flask."""
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(_ANSWER)))])
    return [_ANSWER]
