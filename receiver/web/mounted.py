"""The inbox inside somebody else's WSGI application: the endpoint for deliveries, and nothing else of ours.

What our own gunicorn worker withstands is the other server's matter then (docs/how-to/flask.md says what is lost).
What counts stays: no 2xx before the ledger holds the event, bodies bounded and whole, no request in the log.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from hookonce.providers import Reason
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import DESK_VARIABLE, Settings, load_settings, require_servers
from hookonce.receiver.intake.pipeline import Intake, utc_now
from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import IN_THREAD, Waits, run
from hookonce.receiver.web.client_address import Network
from hookonce.receiver.web.hooks import PREFIX, DeliveryEndpoint
from hookonce.receiver.web.request import Request, WsgiRequest
from hookonce.receiver.web.response import Headers, Response, StartResponse, problem

log = limited(__name__)

DOOR = "hookonce_door"
"""Where a Flask application has its front door among its extensions."""

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]

_KEEP_CLOSE = ("gunicorn", "hookonce")
"""What servers call themselves that take `Connection: close` from an application: gunicorn, and its worker of ours."""


def intake_class(settings: Settings) -> type[Intake]:
    """Return the class that takes deliveries in; the one that traces needs the extra `otel`."""
    if settings.tracing:
        from hookonce.receiver.intake.traced import TracedIntake

        return TracedIntake
    return Intake


def endpoint(at: str = PREFIX, clock: Callable[[], datetime] = utc_now) -> DeliveryEndpoint:
    """Return the endpoint that the environment and hookonce.toml describe, for paths that begin with `at`.

    It opens connections with the first delivery, so after any fork. Raises `ConfigError`.
    """
    settings = load_settings()
    require_servers(settings)
    return DeliveryEndpoint(settings, intake_class(settings)(settings, clock), at)


class Endpoint(Protocol):
    """An endpoint, which answers the requests of a place, however they wait."""

    async def answer(self, request: Request, waits: Waits) -> Response:
        """Answer a request. Raises nothing."""


class WithoutServers:
    """Stands for the endpoint where no server is named: every delivery gets 503, so its sender tries again."""

    def __init__(self, missing: ConfigError) -> None:
        self._missing = "; ".join(missing.mistakes)

    async def answer(self, request: Request, waits: Waits) -> Response:  # noqa: ARG002  as any endpoint
        """Say in the log what is missing."""
        log.error("a delivery can't be taken in: %s", self._missing)
        return problem(503, "ledger_unavailable", close=True)


def guest(at: str = PREFIX) -> Endpoint:
    """Return `endpoint(at)` for somebody else's application; where no server is named, one that answers 503.

    For such an application is also imported by its tests and its migrations, and while an image is built. Raises
    `ConfigError`, and `ValueError` for an `at` without a slash at both ends.
    """
    if not (at.startswith("/") and at.endswith("/")):
        raise ValueError(f"at={at!r}: expected a path with a slash at both ends, as in '{PREFIX}'")
    settings = load_settings(need_secrets=False)
    try:
        require_servers(settings)
    except ConfigError as missing:
        return WithoutServers(missing)
    return endpoint(at)


class Part(StrEnum):
    """The part that an address answers: `/hooks` and `/commands` of strangers, all that operators ask for, or both."""

    DOOR = "door"
    DESK = "desk"
    BOTH = "both"


def part_of(environ: Mapping[str, Any]) -> Part:
    """Return what is answered at the address of a request, a port or a socket's path, as `hookonce serve` said."""
    desk = os.environ.get(DESK_VARIABLE, Part.DOOR)
    if desk == Part.DOOR:
        return Part.BOTH
    address = environ.get("SERVER_PORT") or environ.get("SERVER_NAME")
    return Part.DESK if desk.endswith(f":{address}") else Part.DOOR


def answered(endpoint: Endpoint, environ: dict[str, Any]) -> Response:
    """Have an endpoint answer a request of a WSGI server, the calling thread waiting for it."""
    return run(endpoint.answer(WsgiRequest(environ), IN_THREAD))


class Nowhere:
    """Answers for what is not at an address."""

    async def answer(self, request: Request, waits: Waits) -> Response:  # noqa: ARG002  as any endpoint
        """Say that nothing is there."""
        return problem(404, Reason.UNKNOWN_SOURCE, close=True)


NOWHERE = Nowhere()


class FrontDoor:
    """Knows the endpoint of a path; what has none is the framework's.

    The name of a place is a path, or the beginning of paths where it ends with a slash. Places of the `desk`, and the
    framework, are not at an address that is the door's alone, nor the door's at the desk's. `proxies` may say whose
    request they bring. As a WSGI application it stands before the framework of a host, whose server may refuse
    `Connection: close` (PEP 3333).
    """

    def __init__(
        self,
        door: Mapping[str, Endpoint],
        otherwise: Application,
        *,
        desk: Mapping[str, Endpoint] | None = None,
        proxies: Sequence[Network] = (),
    ) -> None:
        self._door, self._desk = door, desk or {}
        self.otherwise = otherwise
        self.proxies = proxies

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        endpoint = self.at(Part.BOTH, environ["PATH_INFO"])
        if endpoint is None:
            return self.otherwise(environ, start_response)
        if not environ.get("SERVER_SOFTWARE", "").startswith(_KEEP_CLOSE):
            start_response = partial(_start_without_close, start_response)
        return answered(endpoint, environ).send(environ["REQUEST_METHOD"], start_response)

    def at(self, part: Part, path: str) -> Endpoint | None:
        """Return whose a path is; None for the framework's."""
        found = _found(self._door, path)
        if part is Part.DOOR:
            return found or NOWHERE
        desk = _found(self._desk, path)
        if found is not None and (part is Part.BOTH or desk is None):
            return desk or found if part is Part.BOTH else NOWHERE
        return NOWHERE if self._desk and self._may_be_read_as_of_the_door(path) else desk

    def _may_be_read_as_of_the_door(self, path: str) -> bool:
        """Whether a proxy that resolves dots otherwise than we do might hand a path to the door.

        A resolved path begins with a segment of the path. Other paths may have dots, as ids of senders do.
        """
        segments = set(path.split("/"))
        return not segments.isdisjoint({".", ".."}) and any(
            name.split("/")[1] in segments for name in self._door
        )


def _found(places: Mapping[str, Endpoint], path: str) -> Endpoint | None:
    for name, endpoint in places.items():
        if path == name or (name[-1] == "/" and path.startswith(name)):
            return endpoint
    return None


def _start_without_close(start_response: StartResponse, status: str, headers: Headers) -> Any:  # noqa: ANN401  what the server's gives
    return start_response(status, [(name, value) for name, value in headers if name != "Connection"])


def door_of(application: Any) -> FrontDoor:  # noqa: ANN401  any WSGI application
    """Return the front door of a Flask application; one without places where it has none, or something before it."""
    own = getattr(application, "extensions", {}).get(DOOR) if _is_untouched(application) else None
    door = own or getattr(application, "wsgi_app", None)
    return door if isinstance(door, FrontDoor) else FrontDoor({}, application)


def _is_untouched(application: Any) -> bool:  # noqa: ANN401  same
    """Whether nothing stands before a Flask application, as middleware would."""
    return getattr(getattr(application, "wsgi_app", None), "__self__", None) is application
