"""The HTTP face: `/hooks/<source>` for senders (`receiver.web.hooks`), the other pages for operators."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from hookonce.providers import Reason
from hookonce.receiver import logs
from hookonce.receiver.api.blueprint import api, failure, is_api_path
from hookonce.receiver.commands import requests
from hookonce.receiver.commands.endpoint import CommandEndpoint
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.dashboard.mount import attach
from hookonce.receiver.intake.other_sites import host_of
from hookonce.receiver.intake.pipeline import utc_now
from hookonce.receiver.monitoring import health, metrics
from hookonce.receiver.web import hooks
from hookonce.receiver.web.compression import compress_answers
from hookonce.receiver.web.mounted import DOOR, NOWHERE, Endpoint, FrontDoor, answered, intake_class, part_of
from hookonce.receiver.web.operator_pages import OperatorPages, Shared
from hookonce.receiver.web.own_site import GuardedEndpoint, OwnSite
from hookonce.receiver.web.request import WsgiRequest
from hookonce.receiver.web.response import Response as WsgiResponse
from hookonce.receiver.web.response import problem

log = logs.limited(__name__)
METRICS = "/metrics"
ROUTES = (
    "/hooks/<source>",
    "/hooks/<source>/<path:secret>",
    "/commands/<name>",
    "/commands/<name>/<digest>",
    "/livez",
    "/readyz",
    METRICS,
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def create_app(settings: Settings, clock: Callable[[], datetime] = utc_now) -> Flask:
    """Return the WSGI application; it opens connections with the first delivery, so after any fork."""
    app = Flask("hookonce", static_folder=None)
    app.url_map.merge_slashes = False  # a path with two slashes is unknown, and not redirected
    intake = app.extensions["hookonce"] = intake_class(settings)(settings, clock)
    readiness = health.Readiness(settings)
    intake.closing.callback(readiness.close)
    desk_pages: dict[str, WsgiResponse | Shared] = {
        "/livez": _json(200, {"status": "ok"}),
        "/readyz": Shared(lambda: _json(*readiness.look())),
        METRICS: Shared(lambda: WsgiResponse(200, *metrics.page(settings, intake.breaker))),
    }
    door_pages: dict[str, WsgiResponse | Shared] = {
        "/livez": desk_pages["/livez"],
        "/readyz": Shared(lambda: _status_alone(readiness.look())),
    }
    attach(app, settings, intake)
    app.register_blueprint(api(settings, intake))
    app.register_error_handler(Exception, _failure)
    compress_answers(app, but=ROUTES)
    door: dict[str, Endpoint] = {hooks.PREFIX: hooks.DeliveryEndpoint(settings, intake)}
    if settings.commands:
        door[requests.PREFIX] = app.extensions["hookonce_commands"] = CommandEndpoint(settings, intake)
    door |= dict.fromkeys(door_pages, OperatorPages(door_pages))
    desk: dict[str, Endpoint] = dict.fromkeys(desk_pages, OperatorPages(desk_pages))
    urls = (settings.public_url, *(source.public_url for source in settings.sources.values()))
    site = OwnSite([*settings.admin.hosts, *map(host_of, urls)])
    guarded = [
        {name: GuardedEndpoint(each, site, any_host=name != METRICS) for name, each in places.items()}
        for places in (door, desk)
    ]
    _add_routes(
        app, FrontDoor(guarded[0], app, desk=guarded[1], proxies=settings.admin.trusted_proxies), site
    )
    return app


def _add_routes(app: Flask, door: FrontDoor, site: OwnSite) -> None:
    """Have Flask route what the door answers by itself under our own worker, and refuse what it refuses."""
    app.extensions[DOOR] = door

    def found() -> Endpoint | None:
        return door.at(part_of(request.environ), request.environ["PATH_INFO"])

    def answer(**_parts: str) -> Response:
        return _response(answered(found() or NOWHERE, request.environ))

    def guard() -> Response | None:
        endpoint = found()
        if endpoint is NOWHERE or (endpoint and request.routing_exception):
            return answer()  # an endpoint refuses by itself what Flask has no route, or no method, for
        asked = WsgiRequest(request.environ)
        refusal = None if endpoint else site.refusal(asked.peer, asked.headers, any_host=False)
        return _response(refusal) if refusal else None

    app.before_request(guard)
    for rule in ROUTES:
        app.add_url_rule(rule, rule, answer, methods=_METHODS, provide_automatic_options=False)


def from_environment() -> Flask:
    """Return the application that the environment and hookonce.toml describe; gunicorn loads it by this name."""
    logs.configure()
    settings = load_settings()
    require_servers(settings)
    return create_app(settings)


def _failure(error: Exception) -> Response:
    """Answer what no route answered: an unknown path, a wrong method, or a bug of ours."""
    if is_api_path(request.path):
        return failure(error)
    if isinstance(error, MethodNotAllowed):
        allow = ", ".join(sorted(set(error.valid_methods or ())))
        return _response(problem(405, Reason.BAD_METHOD, allow=allow, close=True))
    if isinstance(error, NotFound):
        return _response(problem(404, Reason.UNKNOWN_SOURCE, close=True))
    if isinstance(error, HTTPException):
        return _response(problem(400, Reason.BAD_HEADER, close=True))
    log.error("a request failed: %s", type(error).__name__, exc_info=error)
    return _response(problem(500, "internal_error", close=True))


def _status_alone(look: tuple[int, dict[str, Any]]) -> WsgiResponse:
    return _json(look[0], {"status": look[1]["status"]})


def _json(status: int, document: dict[str, Any]) -> WsgiResponse:
    return WsgiResponse(status, json.dumps(document).encode())


def _response(answer: WsgiResponse) -> Response:
    return Response(answer.body, answer.status, list(answer.headers), content_type=answer.content_type)
