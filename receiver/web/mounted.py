"""The inbox inside somebody else's WSGI application: the endpoint for deliveries, and nothing else of ours.

What our own gunicorn worker withstands is the other server's matter then (docs/how-to/flask.md says what is lost).
What counts stays: no 2xx before the ledger holds the event, bodies bounded and whole, no request in the log.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.intake.pipeline import Intake, utc_now
from hookonce.receiver.web.hooks import PREFIX, DeliveryEndpoint
from hookonce.receiver.web.response import Headers, StartResponse

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

    It opens connections with the first delivery, so after any fork. Raises `ConfigError`, and `ValueError` for an
    `at` without a slash at both ends.
    """
    if not (at.startswith("/") and at.endswith("/")):
        raise ValueError(f"at={at!r}: expected a path with a slash at both ends, as in '{PREFIX}'")
    settings = load_settings()
    require_servers(settings)
    return DeliveryEndpoint(settings, intake_class(settings)(settings, clock), at)


class FrontDoor:
    """Hands a request to the application of its path's beginning, past a framework's routing, or to the framework."""

    def __init__(self, places: Mapping[str, Application], otherwise: Application) -> None:
        self._places = tuple(places.items())
        self._otherwise = otherwise

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        path = environ["PATH_INFO"]
        for beginning, application in self._places:
            if path.startswith(beginning):
                return application(environ, start_response)
        return self._otherwise(environ, start_response)


def portable(application: Application) -> Application:
    """Leave `Connection: close` out for servers that may refuse it: PEP 3333 forbids it."""

    def answer(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: Headers) -> Any:  # noqa: ANN401  what the server's gives
            return start_response(status, [(name, value) for name, value in headers if name != "Connection"])

        takes_it = environ.get("SERVER_SOFTWARE", "").startswith(_KEEP_CLOSE)
        return application(environ, start_response if takes_it else start)

    return answer
