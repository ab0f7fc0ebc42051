"""`/hooks/<source>`, past Flask: where speed counts, its routing and contexts cost more than the work.

`/hooks/<source>/<secret>` is for senders that can prove nothing else; the secret is not logged and not stored.
Inside somebody else's application (`receiver.web.mounted`) the path may begin otherwise.

Senders see the status, the event ids they sent and a reason slug; never why a signature was wrong.
"""

import json
import logging
from collections.abc import Callable
from time import monotonic

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.failpoints import reach
from hookonce.receiver.intake.intake_result import IntakeResult
from hookonce.receiver.intake.load import OverLimit
from hookonce.receiver.intake.pipeline import QUICK_BODY, Intake
from hookonce.receiver.intake.verification import Unproven
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.logs import FINGERPRINT_DIGITS, MAX_ID, hashed, limited, new_id, shown
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.processes.waits import IN_THREAD, OnLoop, Waits, run
from hookonce.receiver.source import Source
from hookonce.receiver.web import problem_details
from hookonce.receiver.web.body import MemoryBudget, Overloaded, Reservation, read_body
from hookonce.receiver.web.request import Request
from hookonce.receiver.web.request_headers import BODY_STATUS
from hookonce.receiver.web.response import JSON, Response, problem

log = limited(__name__)

PREFIX = "/hooks/"
_PROBES = frozenset({"GET", "HEAD"})
_MANY = 500  # events of which it takes so long to tell, and to free them, that an event loop should not do it
_SHOWN_IDS = 3  # how many event ids the log line of a delivery holds
_MEMORY_BUDGET = 64 * 1024 * 1024  # bytes of large bodies per process; at least two of the largest must fit
_STATUS = {
    Reason.MISSING_HEADER: 400,
    Reason.BAD_HEADER: 400,
    Reason.BAD_BODY: 400,
    Reason.BAD_SIGNATURE: 401,
    Reason.STALE: 401,
    Reason.UNKNOWN_SOURCE: 404,
    Reason.BAD_METHOD: 405,
    Reason.NO_SECRET: 503,
    **BODY_STATUS,
}
_STATUS_OF_UNPROVEN = _STATUS | dict.fromkeys(
    (Reason.MISSING_HEADER, Reason.BAD_HEADER, Reason.BAD_BODY), 401
)
_quoted = json.encoder.encode_basestring_ascii


class DeliveryEndpoint:
    """Takes deliveries: a WSGI application of what is under `prefix`, and what answers where there is no WSGI."""

    def __init__(self, settings: Settings, intake: Intake, prefix: str = PREFIX) -> None:
        largest = max(
            [settings.max_body, *(each.body_limit(settings.max_body) for each in settings.sources.values())]
        )
        self.memory_budget = MemoryBudget(max(_MEMORY_BUDGET, 3 * largest), 2 * largest)
        self._sources = settings.sources
        self._quick = {
            name: source
            for name, source in settings.sources.items()
            if "POST" in source.provider.methods and intake.is_quick(source) and source.broker is None
        }
        self._max_body = settings.max_body
        self._intake = intake
        self._prefix = prefix

    def answered(self, request: Request, prefix: str) -> Response:
        """Answer a request, whose path begins with `prefix`, in the thread that calls. Raises nothing."""
        return run(self.answer(request, IN_THREAD, prefix))

    async def answer(self, request: Request, waits: Waits, prefix: str | None = None) -> Response:
        """Answer a request, whose path begins with `prefix`. Raises nothing."""
        prefix = self._prefix if prefix is None else prefix
        try:
            with Reservation(self.memory_budget, waits) as reservation:
                return await self._receive(request, waits, prefix, reservation)
        except Exception as error:
            log.exception("a request failed: %s", type(error).__name__)
            return problem(500, "internal_error", close=True)

    async def _receive(
        self, request: Request, waits: Waits, prefix: str, reservation: Reservation
    ) -> Response:
        began = monotonic()
        name, slash, path_secret = request.path[len(prefix) :].partition("/")
        source = self._sources.get(name)
        if (
            source is None
            or source.broker is not None
            or (slash and not (path_secret and _takes_path_secret(source)))
        ):
            error = Rejected(Reason.UNKNOWN_SOURCE, "no source has this name")
            self._intake.background_writer.record_rejection("", error.reason, error.detail, {}, b"")
            return _refuse(None, error, began, close=True)
        try:
            _expect_method(source, request.method)
            limit = source.body_limit(self._max_body)
            body = await read_body(request, limit, reservation, may_be_compressed=True)
        except Overloaded as error:
            log.warning(error.line, error, extra={"delivery": new_id(), "source": source.name})
            return problem(503, "overloaded", close=True)
        except Rejected as error:
            self._intake.background_writer.record_rejection(source.name, error.reason, error.detail, {}, b"")
            return _refuse(source, error, began, close=True)
        reach("delivery.read")
        delivery = _delivery(source, prefix, request, body, path_secret)
        try:
            result = await self._intake.take_in(source, delivery, waits)
        except Rejected as error:
            return _refuse(source, error, began)
        except (LedgerUnavailable, KeyUnavailable, OverLimit) as error:
            return _unavailable(source, error)
        _note_proof(request, source, result)
        if len(result.events) > _MANY:
            answer = await waits.compute(_answer_and_log, source, delivery, result, began)
            await waits.compute(result.let_go)
        else:
            answer = _answer_and_log(source, delivery, result, began)
        return answer

    def begin(self, request: Request, body: bytes, waits: OnLoop, land: Callable[[Response], None]) -> bool:
        """Begin to take in a delivery that came whole (`http.connection.Begin`)."""
        began = monotonic()
        source = self._quick.get(request.path[len(self._prefix) :])
        if source is None or request.method != "POST" or "content-encoding" in request.headers:
            return False
        if len(body) > min(QUICK_BODY, source.body_limit(self._max_body)):
            return False
        delivery = _delivery(source, self._prefix, request, body, "")
        return self._intake.begin(
            source, delivery, waits, lambda taken: land(_outcome(taken, request, source, delivery, began))
        )


def _outcome(
    taken: Callable[[], IntakeResult], request: Request, source: Source, delivery: Delivery, began: float
) -> Response:
    """Answer a delivery that was taken in, or could not be."""
    try:
        result = taken()
        _note_proof(request, source, result)
        return _answer_and_log(source, delivery, result, began)
    except LedgerUnavailable as error:
        return _unavailable(source, error)
    except Exception as error:
        log.exception("a request failed: %s", type(error).__name__)
        return problem(500, "internal_error", close=True)


def _note_proof(request: Request, source: Source, result: IntakeResult) -> None:
    if result.events and not source.unauthenticated:  # a probe proves nothing
        request.is_genuine = True
        request.is_replay = result.is_duplicate
    reach("delivery.answered")


def _unavailable(source: Source, error: LedgerUnavailable | KeyUnavailable | OverLimit) -> Response:
    if isinstance(error, OverLimit):
        body = problem_details.document(error.status, problem_details.TOO_MANY)
        return Response(
            error.status, body, problem_details.CONTENT_TYPE, (("Retry-After", error.retry_after),)
        )
    is_key = isinstance(error, KeyUnavailable)
    message = (
        "key unavailable: %s" if is_key else "ledger unavailable: %s"
    )  # kinds of their own, for the limit
    log.warning(message, error, extra={"delivery": new_id(), "source": source.name})
    return problem(503, "key_unavailable" if is_key else "ledger_unavailable")


def _takes_path_secret(source: Source) -> bool:
    """Whether `<source>/<secret>` is a URL of ours: for senders that sign nothing, unless anyone may send."""
    provider = source.provider
    return (provider.unauthenticated or provider.body_is_unsigned) and not source.unauthenticated


def _expect_method(source: Source, method: str) -> None:
    provider = source.provider
    if method not in {*provider.methods, "OPTIONS"} and not (method in _PROBES and provider.handshake):
        raise Rejected(Reason.BAD_METHOD, f"{method} is not how webhooks are delivered")


def _delivery(source: Source, prefix: str, request: Request, body: bytes, path_secret: str) -> Delivery:
    """Return a request as providers see it, without the header that every request has for its body's sake."""
    query = (
        request.query if request.query.isascii() else request.query.encode("latin-1").decode(errors="replace")
    )
    headers = dict(request.headers)
    headers.pop("content-length", None)
    return Delivery(request.method, source.url_of(prefix + source.name, query), headers, body, path_secret)


def _answer_and_log(source: Source, delivery: Delivery, result: IntakeResult, began: float) -> Response:
    answer = _answer_of(source, delivery, result)
    if log.isEnabledFor(logging.INFO):
        _log(source, delivery, result, answer.status, began)
    return answer


def _answer_of(source: Source, delivery: Delivery, result: IntakeResult) -> Response:
    is_duplicate = result.is_duplicate
    if result.reply is not None:
        return _reply(result.reply)
    if result.is_conflict and source.conflicts == "reject":
        return problem(409, "conflict")
    wanted = source.provider.accepted
    if callable(wanted):
        wanted = wanted(delivery)
    if wanted is not None:
        return _reply(wanted)
    events = ", ".join(
        f'{{"event_id": {_quoted(event_id)}, "status": "{_sender_status(verdict)}"}}'
        for event_id, verdict in result.events
    )
    status = "duplicate" if is_duplicate else "accepted"
    body = f'{{"status": "{status}", "events": [{events}]}}'.encode("ascii")
    return Response(200, body, JSON, (("Idempotency-Replayed", "true"),) if is_duplicate else ())


def _sender_status(verdict: Verdict) -> str:
    """Return the word the sender gets; a conflict is between us and the operator."""
    return "duplicate" if verdict is Verdict.CONFLICT else verdict.value


def _log(source: Source, delivery: Delivery, result: IntakeResult, http: int, began: float) -> None:
    fresh = "handshake" if result.reply is not None else "accepted"
    log.info(
        "delivery",
        extra={
            "delivery": new_id(),
            "source": source.name,
            "status": "duplicate" if result.is_duplicate else fresh,
            "events": len(result.events),
            "event_ids": [_shown_id(delivery, event_id) for event_id, _ in result.events[:_SHOWN_IDS]],
            "ids": [row.id for row in result.rows[:_SHOWN_IDS] if row.id],
            "types": [event.type[:MAX_ID] for event in result.new[:_SHOWN_IDS]],
            "http": http,
            "ms": _since(began),
            "fingerprints": [row.fingerprint.hex()[:FINGERPRINT_DIGITS] for row in result.rows[:_SHOWN_IDS]],
            "accounts": sorted({shown(event.account) for event in result.new[:_SHOWN_IDS] if event.account}),
        },
    )


def _shown_id(delivery: Delivery, event_id: str) -> str:
    """Return an id as the line may hold it: hashed if it is, or holds, the delivery's Idempotency-Key."""
    keys = [value for name, value in delivery.headers.items() if name.endswith("idempotency-key") and value]
    return hashed(event_id) if any(key in event_id or event_id in key for key in keys) else shown(event_id)


def _refuse(source: Source | None, error: Rejected, began: float, *, close: bool = False) -> Response:
    status = (_STATUS_OF_UNPROVEN if isinstance(error, Unproven) else _STATUS)[error.reason]
    if source is not None:
        status = source.provider.statuses.get(error.reason, status)
    if log.isEnabledFor(logging.INFO):
        said = {"source": source.name if source else None, "reason": error.reason}
        log.info("rejected", extra={"delivery": new_id(), **said, "http": status, "ms": _since(began)})
    if source is None:
        return problem(status, error.reason, close=close)
    return problem(status, error.reason, allow=", ".join(source.provider.methods), close=close)


def _since(began: float) -> float:
    """Return milliseconds."""
    return round(1000 * (monotonic() - began), 1)


def _reply(reply: Reply) -> Response:
    return Response(reply.status, reply.body, reply.content_type, tuple(reply.headers.items()))
