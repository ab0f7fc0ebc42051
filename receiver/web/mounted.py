"""The inbox inside somebody else's WSGI application: the endpoint for deliveries, and nothing else of ours.

What our own gunicorn worker withstands is the other server's matter then (docs/how-to/flask.md says what is lost).
What counts stays: no 2xx before the ledger holds the event, bodies bounded and whole, no request in the log.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.intake.pipeline import Intake, utc_now
from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import Waits
from hookonce.receiver.web.client_address import Network
from hookonce.receiver.web.hooks import PREFIX, DeliveryEndpoint
from hookonce.receiver.web.request import Request
from hookonce.receiver.web.response import Headers, Response, StartResponse, problem

log = limited(__name__)

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
    """What answers requests past the framework: on an event loop, and as a WSGI application."""

    async def answer(self, request: Request, waits: Waits) -> Response:
        """Answer a request. Raises nothing."""

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""


class WithoutServers:
    """Stands for the endpoint where no server is named: every delivery gets 503, so its sender tries again."""

    def __init__(self, missing: ConfigError) -> None:
        self._missing = "; ".join(missing.mistakes)

    async def answer(self, request: Request, waits: Waits) -> Response:  # noqa: ARG002  as any endpoint
        """Say in the log what is missing."""
        return self._refuse()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Say in the log what is missing (PEP 3333)."""
        return self._refuse().send(environ["REQUEST_METHOD"], start_response)

    def _refuse(self) -> Response:
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


class FrontDoor:
    """Hands a request to the endpoint of its path, past a framework's routing, or to the framework.

    The name of a place is a path, or the beginning of paths where it ends with a slash. A `guest` is in somebody else's
    application, behind a server that may refuse `Connection: close`, as PEP 3333 has it. `proxies` may say whose
    request they bring.
    """

    def __init__(
        self,
        places: Mapping[str, Endpoint],
        otherwise: Application,
        *,
        is_guest: bool = False,
        proxies: Sequence[Network] = (),
    ) -> None:
        self.places = tuple(places.items())
        self.otherwise = otherwise
        self.proxies = proxies
        self._is_guest = is_guest

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        endpoint = self.at(environ["PATH_INFO"])
        if endpoint is None:
            return self.otherwise(environ, start_response)
        if self._is_guest and not environ.get("SERVER_SOFTWARE", "").startswith(_KEEP_CLOSE):
            return endpoint(environ, partial(_start_without_close, start_response))
        return endpoint(environ, start_response)

    def at(self, path: str) -> Endpoint | None:
        """Return whose a path is; None for the framework's."""
        for name, endpoint in self.places:
            if path == name or (name[-1] == "/" and path.startswith(name)):
                return endpoint
        return None


def _start_without_close(start_response: StartResponse, status: str, headers: Headers) -> Any:  # noqa: ANN401  what the server's gives
    return start_response(status, [(name, value) for name, value in headers if name != "Connection"])


def door_of(application: Any) -> FrontDoor:  # noqa: ANN401  any WSGI application
    """Return the front door of a Flask application; one without places where it has none, or something before it."""
    door = getattr(application, "wsgi_app", None)
    return door if isinstance(door, FrontDoor) else FrontDoor({}, application)
