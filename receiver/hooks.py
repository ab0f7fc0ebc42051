"""`/hooks/<source>`, as plain WSGI: where speed counts, Flask's routing and contexts cost more than the work.

`/hooks/<source>/<secret>` is for senders that can prove nothing else; the secret is not logged and not stored.

Senders see the status, the event ids they sent and a reason slug; never why a signature was wrong.
"""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple

from providers import Delivery, Reason, Rejected, Reply
from receiver import problems
from receiver.body import Overloaded, Room, Share, read_body
from receiver.database import LedgerUnavailable
from receiver.failpoints import reach
from receiver.intake import Intake, Outcome
from receiver.keys import KeyUnavailable
from receiver.ledger.store import Verdict
from receiver.logs import new_id
from receiver.settings import Settings
from receiver.sources import Source

log = logging.getLogger(__name__)

PREFIX = "/hooks/"
_PROBES = frozenset({"GET", "HEAD", "OPTIONS"})
_SHOWN_IDS, _SHOWN_ID = 3, 100  # how many event ids the log line of a delivery holds, and how much of each
_ROOM = 64 * 1024 * 1024  # bytes of large bodies per process; at least two of the largest must fit
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
_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
_JSON = "application/json"
_quoted = json.encoder.encode_basestring_ascii

Headers = list[tuple[str, str]]
StartResponse = Callable[[str, Headers], Any]
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Answer(NamedTuple):
    """An HTTP answer; `headers` besides Content-Type and Content-Length."""

    status: int
    body: bytes
    content_type: str = _JSON
    headers: tuple[tuple[str, str], ...] = ()

    def send(self, method: str, start_response: StartResponse) -> list[bytes]:
        """Answer a WSGI request."""
        head = [("Content-Type", self.content_type), ("Content-Length", str(len(self.body))), *self.headers]
        start_response(_LINES.get(self.status, f"{self.status} Unknown"), head)
        return [] if method == "HEAD" else [self.body]


class Hooks:
    """Takes deliveries; whatever is not under `/hooks/` goes to the other application."""

    def __init__(self, settings: Settings, intake: Intake, otherwise: Application) -> None:
        self._sources = settings.sources
        self._most = settings.max_body
        self._room = Room(max(_ROOM, 2 * settings.max_body))
        self._intake = intake
        self._otherwise = otherwise

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        path = environ["PATH_INFO"]
        if not path.startswith(PREFIX):
            return self._otherwise(environ, start_response)
        try:
            with Share(self._room) as share:
                answer = self._receive(path[len(PREFIX) :], environ, share)
        except Exception as error:
            log.exception("a request failed: %s", type(error).__name__)
            answer = problem(500, "internal_error", close=True)
        return answer.send(environ["REQUEST_METHOD"], start_response)

    def _receive(self, path: str, environ: dict[str, Any], share: Share) -> Answer:
        name, slash, path_secret = path.partition("/")
        source = self._sources.get(name)
        if source is None or (slash and not (path_secret and _takes_path_secret(source))):
            error = Rejected(Reason.UNKNOWN_SOURCE, "no source has this name")
            self._intake.tally.rejected("", error.reason, error.detail, {}, b"")
            return _refuse(None, error, close=True)
        try:
            most = min(self._most, source.provider.max_body or self._most)
            delivery = _delivery(source, environ, most, share)
            if path_secret:
                delivery = replace(delivery, path_secret=path_secret)
        except Overloaded as error:
            log.warning("overloaded: %s", error, extra={"delivery": new_id(), "source": source.name})
            return problem(503, "overloaded", close=True)
        except Rejected as error:
            self._intake.tally.rejected(source.name, error.reason, error.detail, {}, b"")
            return _refuse(source, error, close=True)
        reach("delivery.read")
        try:
            outcome = self._intake.take(source, delivery)
        except Rejected as error:
            return _refuse(source, error)
        except (LedgerUnavailable, KeyUnavailable) as error:
            return _come_again(source, error)
        reach("delivery.answered")
        return _answer(source, outcome)


def problem(status: int, code: str, *, allow: str = "POST", close: bool = False) -> Answer:
    """Answer with RFC 9457 problem details whose `code` is the reason slug.

    `close` makes it the connection's last answer: part of a body may still be on its way.
    """
    headers = [("Connection", "close")] if close else []
    if status == 503:  # noqa: PLR2004  the one status that asks to come back
        headers.append(("Retry-After", problems.RETRY_AFTER))
    if status == 405:  # noqa: PLR2004  RFC 9110 wants the list
        headers.append(("Allow", allow))
    return Answer(status, problems.document(status, code), problems.CONTENT_TYPE, tuple(headers))


def _come_again(source: Source, error: LedgerUnavailable | KeyUnavailable) -> Answer:
    what = "key" if isinstance(error, KeyUnavailable) else "ledger"
    log.warning("%s unavailable: %s", what, error, extra={"delivery": new_id(), "source": source.name})
    return problem(503, f"{what}_unavailable")


def _takes_path_secret(source: Source) -> bool:
    """Say whether `/hooks/<source>/<secret>` is a URL: for senders that sign nothing, unless anyone may send."""
    provider = source.provider
    return (provider.unauthenticated or provider.body_is_unsigned) and not source.unauthenticated


def _delivery(source: Source, environ: dict[str, Any], limit: int, share: Share) -> Delivery:
    method = environ["REQUEST_METHOD"]
    if method not in source.provider.methods and not (method in _PROBES and source.provider.handshake):
        raise Rejected(Reason.BAD_METHOD, f"{method} is not how webhooks are delivered")
    query = environ.get("QUERY_STRING")
    path = f"{PREFIX}{source.name}?{query}" if query else PREFIX + source.name
    headers = {_header(name): value for name, value in environ.items() if name[:5] == "HTTP_"}
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    return Delivery(method, source.public_url + path, headers, read_body(environ, limit, share))


@lru_cache(maxsize=512)
def _header(name: str) -> str:
    """Give the lower-case name of a header from that of its WSGI variable."""
    return name[5:].replace("_", "-").lower()


def _answer(source: Source, outcome: Outcome) -> Answer:
    is_duplicate = outcome.is_duplicate
    if log.isEnabledFor(logging.INFO):
        _log(source, outcome)
    if outcome.reply is not None:
        return _reply(outcome.reply)
    if outcome.is_conflict and source.conflicts == "reject":
        return problem(409, "conflict")
    if source.provider.accepted is not None:
        return _reply(source.provider.accepted)
    events = ", ".join(
        f'{{"event_id": {_quoted(event_id)}, "status": "{_said(verdict)}"}}'
        for event_id, verdict in outcome.events
    )
    status = "duplicate" if is_duplicate else "accepted"
    body = f'{{"status": "{status}", "events": [{events}]}}'.encode("ascii")
    return Answer(200, body, _JSON, (("Idempotency-Replayed", "true"),) if is_duplicate else ())


def _said(verdict: Verdict) -> str:
    """Give the word the sender gets; a conflict is between us and the operator."""
    return "duplicate" if verdict is Verdict.CONFLICT else verdict.value


def _log(source: Source, outcome: Outcome) -> None:
    fresh = "handshake" if outcome.reply is not None else "accepted"
    log.info(
        "delivery",
        extra={
            "delivery": new_id(),
            "source": source.name,
            "status": "duplicate" if outcome.is_duplicate else fresh,
            "events": len(outcome.events),
            "event_ids": [event_id[:_SHOWN_ID] for event_id, _ in outcome.events[:_SHOWN_IDS]],
            "ids": [row.id for row in outcome.rows[:_SHOWN_IDS] if row.id],
        },
    )


def _refuse(source: Source | None, error: Rejected, *, close: bool = False) -> Answer:
    if log.isEnabledFor(logging.INFO):
        name = source.name if source else None
        log.info("rejected", extra={"delivery": new_id(), "source": name, "reason": error.reason})
    status = _STATUS[error.reason]
    if source is None:
        return problem(status, error.reason, close=close)
    status = source.provider.statuses.get(error.reason, status)
    return problem(status, error.reason, allow=", ".join(source.provider.methods), close=close)


def _reply(reply: Reply) -> Answer:
    return Answer(reply.status, reply.body, reply.content_type, tuple(reply.headers.items()))
