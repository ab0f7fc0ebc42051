"""The HTTP face: `POST /hooks/<source>` for senders, `/livez`, `/readyz` and `/metrics` for operators.

Senders see the status, the event ids they sent and a reason slug; never why a signature was wrong.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from providers import Delivery, Reason, Rejected, Reply
from receiver import health, metrics, problems
from receiver.body import Overloaded, Room, Share, read_body
from receiver.database import LedgerUnavailable
from receiver.failpoints import reach
from receiver.intake import Intake, Outcome
from receiver.ledger.store import Verdict
from receiver.settings import Settings, Source

log = logging.getLogger(__name__)

_SHOWN_IDS, _SHOWN_ID = 3, 100  # how many event ids the log line of a delivery holds, and how much of each
_STATUS = {
    Reason.MISSING_HEADER: 400,
    Reason.BAD_HEADER: 400,
    Reason.BAD_BODY: 400,
    Reason.BAD_SIGNATURE: 401,
    Reason.STALE: 401,
    Reason.UNKNOWN_SOURCE: 404,
    Reason.BAD_METHOD: 405,
    Reason.TOO_LARGE: 413,
    Reason.UNSUPPORTED_ENCODING: 415,
    Reason.NO_SECRET: 503,
}
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_ROOM = 64 * 1024 * 1024  # bytes of large bodies per process; at least two of the largest must fit


def create_app(settings: Settings) -> Flask:
    """Make the WSGI application; it opens connections with the first delivery, so after any fork."""
    app = Flask("hookonce", static_folder=None)
    app.url_map.merge_slashes = False  # a path with two slashes is unknown, and not redirected
    intake = app.extensions["hookonce"] = Intake(settings)
    receive = _receiver(settings, intake)
    app.add_url_rule("/hooks/<source>", "hooks", receive, methods=_METHODS, provide_automatic_options=False)
    pages: dict[str, Callable[[], Response]] = {
        "livez": lambda: _json(200, {"status": "ok"}),
        "readyz": lambda: _json(*health.readiness(settings)),
        "metrics": lambda: Response(*metrics.page(settings, intake)),
    }
    for name, page in pages.items():
        app.add_url_rule(f"/{name}", name, page, provide_automatic_options=False)
    app.register_error_handler(Exception, _trouble)
    return app


def _receiver(settings: Settings, intake: Intake) -> Callable[[str], Response]:
    room = Room(max(_ROOM, 2 * settings.max_body))

    def receive(source: str) -> Response:
        with Share(room) as share:
            return receive_within(share, source)

    def receive_within(share: Share, source: str) -> Response:
        place = settings.sources.get(source)
        if place is None:
            error = Rejected(Reason.UNKNOWN_SOURCE, "no source has this name")
            intake.tally.rejected("", error.reason, error.detail, {}, b"")
            return _refuse(None, error, close=True)
        try:
            delivery = _delivery(place, settings.max_body, share)
        except Overloaded as error:
            log.warning("overloaded: %s", error, extra={"source": place.name})
            return _closing(problem(503, "overloaded"))
        except Rejected as error:
            intake.tally.rejected(place.name, error.reason, error.detail, {}, b"")
            return _refuse(place, error, close=True)
        reach("delivery.read")
        try:
            outcome = intake.take(place, delivery)
        except Rejected as error:
            return _refuse(place, error)
        except LedgerUnavailable as error:
            log.warning("ledger unavailable: %s", error, extra={"source": place.name})
            return problem(503, "ledger_unavailable")
        reach("delivery.answered")
        return _answer(place, outcome)

    return receive


def _delivery(source: Source, limit: int, share: Share) -> Delivery:
    environ = request.environ
    method = environ["REQUEST_METHOD"]
    if method != "POST" and not (method == "GET" and source.provider.handshake):
        raise Rejected(Reason.BAD_METHOD, f"{method} is not how webhooks are delivered")
    query = environ.get("QUERY_STRING")
    path = f"/hooks/{source.name}" + (f"?{query}" if query else "")
    headers = {
        name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name[:5] == "HTTP_"
    }
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    return Delivery(method, source.public_url + path, headers, read_body(environ, limit, share))


def _answer(source: Source, outcome: Outcome) -> Response:
    fresh = "handshake" if outcome.reply is not None else "accepted"
    status = "duplicate" if outcome.is_duplicate else fresh
    log.info(
        "delivery",
        extra={
            "source": source.name,
            "status": status,
            "events": len(outcome.events),
            "event_ids": [event_id[:_SHOWN_ID] for event_id, _ in outcome.events[:_SHOWN_IDS]],
        },
    )
    if outcome.reply is not None:
        return _reply(outcome.reply)
    if outcome.is_conflict and source.conflicts == "reject":
        return problem(409, "conflict")
    if source.provider.accepted is not None:
        return _reply(source.provider.accepted)
    response = _json(
        200,
        {
            "status": status,
            "events": [
                {"event_id": event_id, "status": "duplicate" if verdict is Verdict.CONFLICT else verdict}
                for event_id, verdict in outcome.events
            ],
        },
    )
    if outcome.is_duplicate:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def _refuse(source: Source | None, error: Rejected, *, close: bool = False) -> Response:
    log.info("rejected", extra={"source": source.name if source else None, "reason": error.reason})
    status = _STATUS[error.reason]
    if source is not None:
        status = source.provider.statuses.get(error.reason, status)
    response = problem(status, error.reason)
    return _closing(response) if close else response


def problem(status: int, code: str, allow: str = "POST") -> Response:
    """Answer with RFC 9457 problem details whose `code` is the reason slug."""
    response = Response(problems.document(status, code), status, content_type=problems.CONTENT_TYPE)
    if status == 503:  # noqa: PLR2004  the one status that asks to come back
        response.headers["Retry-After"] = problems.RETRY_AFTER
    if status == 405:  # noqa: PLR2004  RFC 9110 wants the list
        response.headers["Allow"] = allow
    return response


def _closing(response: Response) -> Response:
    """Make this answer the connection's last: part of a body may still be on its way."""
    response.headers["Connection"] = "close"
    return response


def _trouble(error: Exception) -> Response:
    """Answer what no route answered: an unknown path, a wrong method, or a bug of ours."""
    if isinstance(error, MethodNotAllowed):
        allowed = set(error.valid_methods or ())
        allow = "POST" if "POST" in allowed else ", ".join(sorted(allowed))
        return _closing(problem(405, Reason.BAD_METHOD, allow))
    if isinstance(error, NotFound):
        return _closing(problem(404, Reason.UNKNOWN_SOURCE))
    if isinstance(error, HTTPException):
        return _closing(problem(400, Reason.BAD_HEADER))
    log.error("a request failed: %s", type(error).__name__, exc_info=error)
    return _closing(problem(500, "internal_error"))


def _json(status: int, document: dict[str, Any]) -> Response:
    return Response(json.dumps(document), status, content_type="application/json")


def _reply(reply: Reply) -> Response:
    return Response(reply.body, reply.status, dict(reply.headers), content_type=reply.content_type)
