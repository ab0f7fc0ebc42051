"""The HTTP face: `POST /hooks/<source>` for senders, `/livez`, `/readyz` and `/metrics` for operators.

Senders see the status, the event ids they sent and a reason slug; never why a signature was wrong.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from providers import Delivery, Reason, Rejected, Reply
from receiver import health, metrics
from receiver.body import read_body
from receiver.database import LedgerUnavailable
from receiver.failpoints import reach
from receiver.intake import Intake, Outcome
from receiver.ledger.store import Verdict
from receiver.settings import Settings, Source

log = logging.getLogger(__name__)

RETRY_AFTER = "5"
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
_TITLE = {
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def create_app(settings: Settings) -> Flask:
    """Make the WSGI application; it opens connections with the first delivery, so after any fork."""
    app = Flask("hookonce")
    intake = Intake(settings)
    receive = _receiver(settings, intake)
    app.add_url_rule("/hooks/<source>", "hooks", receive, methods=_METHODS, provide_automatic_options=False)
    app.add_url_rule("/livez", "livez", lambda: _json(200, {"status": "ok"}))
    app.add_url_rule("/readyz", "readyz", lambda: _json(*health.readiness(settings)))
    app.add_url_rule("/metrics", "metrics", lambda: Response(*metrics.page(settings, intake)))
    app.register_error_handler(Exception, _trouble)
    return app


def _receiver(settings: Settings, intake: Intake) -> Callable[[str], Response]:
    def receive(source: str) -> Response:
        place = settings.sources.get(source)
        if place is None:
            error = Rejected(Reason.UNKNOWN_SOURCE, "no source has this name")
            intake.tally.rejected("", error.reason, error.detail, {}, b"")
            return _refuse(None, error, close=True)
        try:
            delivery = _delivery(place, settings.max_body)
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


def _delivery(source: Source, limit: int) -> Delivery:
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
    return Delivery(method, source.public_url + path, headers, read_body(environ, limit))


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
    if close:  # part of the body may still be on its way
        response.headers["Connection"] = "close"
    return response


def problem(status: int, code: str) -> Response:
    """Answer with RFC 9457 problem details whose `code` is the reason slug."""
    document = {"type": "about:blank", "title": _TITLE.get(status, "Error"), "status": status, "code": code}
    response = Response(json.dumps(document), status, content_type="application/problem+json")
    if status == 503:  # noqa: PLR2004  the one status that asks to come back
        response.headers["Retry-After"] = RETRY_AFTER
    if status == 405:  # noqa: PLR2004  RFC 9110 wants the list
        response.headers["Allow"] = "POST"
    return response


def _trouble(error: Exception) -> Response:
    """Answer what no route answered: an unknown path, a wrong method, or a bug of ours."""
    if isinstance(error, HTTPException):
        reasons = {404: Reason.UNKNOWN_SOURCE, 405: Reason.BAD_METHOD}
        return problem(error.code or 400, reasons.get(error.code or 400, Reason.BAD_HEADER))
    log.error("a request failed: %s", type(error).__name__, exc_info=error)
    return problem(500, "internal_error")


def _json(status: int, document: dict[str, Any]) -> Response:
    return Response(json.dumps(document), status, content_type="application/json")


def _reply(reply: Reply) -> Response:
    return Response(reply.body, reply.status, dict(reply.headers), content_type=reply.content_type)
