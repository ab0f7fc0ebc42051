"""The API as a Flask blueprint under `/api/v1`; every refusal under `/api` is problem details."""

from collections.abc import Callable
from typing import Final

from flask import Blueprint, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import BaseConverter

from hookonce.receiver.api.openapi import document
from hookonce.receiver.api.problem import Problem
from hookonce.receiver.api.request_reader import IS_READ
from hookonce.receiver.api.routes import OPERATIONS, Operation, methods_at
from hookonce.receiver.api.server import Server
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.idempotency.records import Result
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.logs import limited
from hookonce.receiver.web import problem_details

log = limited(__name__)

PREFIX = "/api/v1"
_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class _Whole(BaseConverter):
    """The part of a path that names something: any text, since a sender's id may hold a slash."""

    NAME: Final = "whole"
    regex = "(?s:.)+?"
    part_isolating = False


def api(settings: Settings, intake: Intake) -> Blueprint:
    """Return the blueprint; it opens a connection per request and none before."""
    blueprint = Blueprint("api", __name__, url_prefix=PREFIX)
    blueprint.record(lambda state: state.app.url_map.converters.update({_Whole.NAME: _Whole}))
    server = Server(settings, intake)
    for operation in OPERATIONS:
        rule = operation.path.replace("{", f"<{_Whole.NAME}:").replace("}", ">")
        blueprint.add_url_rule(
            rule,
            operation.name,
            _view(server, operation),
            methods=[operation.method],
            provide_automatic_options=False,
        )
    blueprint.add_url_rule("/openapi.json", "openapi", _openapi, provide_automatic_options=False)
    return blueprint


def is_api_path(path: str) -> bool:
    """Whether a path is under `/api`, known or not."""
    return path == "/api" or path.startswith("/api/")


def failure(error: Exception) -> Response:
    """Answer a request that ended with an exception: a refusal, an unknown path, a wrong method, or a bug of ours."""
    if isinstance(error, Problem):
        problem = error
    elif isinstance(error, MethodNotAllowed):
        allowed = methods_at(request.path.removeprefix(PREFIX)) or error.valid_methods or ()
        allow = ", ".join(sorted(set(allowed)))
        problem = Problem(405, f"expected one of {allow}", headers={"Allow": allow})
    elif isinstance(error, NotFound):
        problem = Problem(404, f"there is no such path; {PREFIX}/openapi.json has all")
    elif isinstance(error, HTTPException):
        problem = Problem(400, "the request can't be read", code="bad_header")
    else:
        log.error("a request failed: %s", type(error).__name__, exc_info=error)
        problem = Problem(500, "this is a bug of hookonce; its log says more")
    if _has_unread_body():
        problem.headers["Connection"] = "close"
    headers = {"Content-Type": problem_details.CONTENT_TYPE, **problem.headers}
    return _response(Result(problem.status, headers, problem.body))


def _view(server: Server, operation: Operation) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        methods = methods_at(request.path.removeprefix(PREFIX))
        if request.method not in methods:  # an id that holds a slash would fit as well
            raise MethodNotAllowed(methods)
        return _response(server.serve(operation, request.environ, path))

    return view


def _openapi() -> Response:
    return _response(Result(200, {"Content-Type": "application/json"}, document()))


def _response(result: Result) -> Response:
    response = Response(result.body, result.status, {**_ALWAYS, **result.headers})
    if "Content-Type" not in result.headers:
        del response.headers["Content-Type"]  # Flask's guess, for a body that is none
    return response


def _has_unread_body() -> bool:
    """Whether a body may still be on its way: then this answer must be the connection's last."""
    environ = request.environ
    announced = environ.get("CONTENT_LENGTH", "0") != "0" or bool(environ.get("HTTP_TRANSFER_ENCODING"))
    return announced and not environ.get(IS_READ)
