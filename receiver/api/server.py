"""One request of the API, from its token to its answer, on a connection to the ledger of its own."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from hookonce.receiver.api import request_reader
from hookonce.receiver.api.problem import Problem, of_refusal, unauthorized
from hookonce.receiver.api.routes import Operation
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.refusals import UNAUTHORIZED, Refused
from hookonce.receiver.desk.registry import Answer, Desk, Octets
from hookonce.receiver.endpoints import policy
from hookonce.receiver.idempotency.counted import Counted
from hookonce.receiver.idempotency.operation import Stored
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.records import (
    InProgress,
    Key,
    KeyReused,
    LeaseLost,
    Result,
    State,
    StoreUnavailable,
    Terms,
)
from hookonce.receiver.idempotency.sealed import SealedStore
from hookonce.receiver.intake.load import OverLimit
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Token
from hookonce.receiver.ledger.database import connections, schema_version
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.logs import limited
from hookonce.receiver.redis import workers

log = limited(__name__)

MAX_CONCURRENT_REQUESTS = 8
"""Requests, so connections to PostgreSQL, per process; further ones wait."""
MAX_UNPROVEN_REQUESTS = 2
"""Requests among these whose token has not yet proved good here: made-up ones can't take everybody's place."""
ADMISSION_TIMEOUT = timedelta(seconds=5)
KEY_LOCK_TIMEOUT = timedelta(seconds=2)
KEY_TERMS = Terms(lease=timedelta(minutes=1), retention=timedelta(hours=24))
IN_PROGRESS = Result(
    202, {"Content-Type": "application/json", "Retry-After": "2"}, b'{"status": "in_progress"}'
)


class Server:
    """Serves the operations of one application."""

    def __init__(self, settings: Settings, intake: Intake) -> None:
        self._settings = settings
        self._intake = intake
        self._turns = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)
        self._strangers = threading.BoundedSemaphore(MAX_UNPROVEN_REQUESTS)
        self._proven: set[bytes] = set()

    def serve(self, operation: Operation, environ: request_reader.Environ, path: Mapping[str, str]) -> Result:
        """Return the answer to a request. Raises `Problem`."""
        presented = api_tokens.digest(request_reader.bearer(environ))
        if presented is None:
            raise unauthorized(UNAUTHORIZED, "invalid_token")
        body = request_reader.body_of(environ)
        with ExitStack() as doubt:
            if presented not in self._proven:
                doubt.enter_context(_admission(self._strangers))
            with _admission(self._turns), self._ledger(operation) as connection:
                token = self._known(connection, presented)
                doubt.close()
                self._count(token)
                desk = Desk(self._settings, connection, f"{token.name} (token)", token, self._intake)
                try:
                    operation.action.require(desk, is_plan=True)  # before its body is read
                    answer = _serve_operation(
                        operation, desk, _Request(token, self._intake, environ, path, body)
                    )
                except Refused as error:
                    raise of_refusal(error) from None
        if desk.notifies_workers:
            workers.notify(self._settings.redis_url)
        return answer

    def _count(self, token: Token) -> None:
        """Count a request of a token; refuse it where there are too many."""
        try:
            self._intake.load.require(
                f"token:{token.id}", self._settings.admin.token_rate, self._settings.admin.token_quota
            )
        except OverLimit as error:
            detail = f"too many requests under the token '{token.name}'; send it again later"
            raise Problem(429, detail, headers={"Retry-After": error.retry_after}) from None

    @contextmanager
    def _ledger(self, operation: Operation) -> Iterator[psycopg.Connection]:
        url = self._settings.database_url
        try:
            with connections.connect(
                url, lock=KEY_LOCK_TIMEOUT, statement=operation.action.timeout
            ) as connection:
                yield connection
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
            raise Problem(
                503,
                f"the database lacks tables, this version needs schema {schema_version.REVISION}; "
                "run `hookonce db upgrade`",
                code="schema_behind",
            ) from None
        except psycopg.errors.InsufficientPrivilege as error:
            log.warning("the API lacks a right (`hookonce db roles --desk`): %s", error.diag.message_primary)
            raise Problem(
                503, "this receiver's role may not do that in the ledger; its log says more"
            ) from None
        except (psycopg.OperationalError, LedgerUnavailable, StoreUnavailable) as error:
            log.warning("the API could not use the ledger: %s", type(error).__name__)
            raise Problem(503, "PostgreSQL does not answer, or not in time") from None

    def _known(self, connection: psycopg.Connection, presented: bytes) -> Token:
        token = api_tokens.find(connection, presented)
        if token is None:
            self._proven.discard(presented)
            raise unauthorized(UNAUTHORIZED, "invalid_token")
        self._proven.add(presented)
        return token


@contextmanager
def _admission(turns: threading.BoundedSemaphore) -> Iterator[None]:
    if not turns.acquire(timeout=ADMISSION_TIMEOUT.total_seconds()):
        raise Problem(503, "too many requests are under way; come back later", code="overloaded")
    try:
        yield
    finally:
        turns.release()


class _Request(NamedTuple):
    """A request: its token, and the process that it came into."""

    token: Token
    intake: Intake
    environ: request_reader.Environ
    path: Mapping[str, str]
    body: bytes


def _serve_operation(operation: Operation, desk: Desk, request: _Request) -> Result:
    found = request_reader.inputs(operation, request.environ, request.path, request.body)
    key = request_reader.key_of(request.environ) if operation.method == "POST" else None
    if key is None:
        return _answer(operation, operation.action(desk, **found))
    return _answer_once(operation, desk, found, request, key)


def _answer_once(
    operation: Operation, desk: Desk, found: Mapping[str, RequestModel], request: _Request, key: str
) -> Result:
    """Do the work of a key unless it was done before; the result is stored with what the work did."""
    connection = desk.connection
    store = SealedStore(PostgresStore(lambda: nullcontext(connection)), desk.settings.keyring)
    counted = Counted("api", request.intake.background_writer.count)
    try:
        fingerprint = request_reader.fingerprint(request.environ, request.body)
        begun = counted.begin(store, Key(str(request.token.id), key), fingerprint, KEY_TERMS)
    except KeyReused:
        raise Problem(
            409, "this Idempotency-Key belongs to another request; choose a new one", code="key_reused"
        ) from None
    except InProgress:
        return IN_PROGRESS
    if isinstance(begun, Stored):
        return policy.replayed(begun.result)
    try:
        with connection.transaction() if operation.action.is_atomic else nullcontext():
            result = _answer(operation, operation.action(desk, **found))
            with counted.ended(State.COMPLETED):
                store.within(connection.cursor(), begun, State.COMPLETED, result)
    except LeaseLost:
        return IN_PROGRESS
    except BaseException:
        with suppress(StoreUnavailable, LeaseLost, psycopg.Error):
            counted.abandon(store, begun)
        raise
    return result


def _answer(operation: Operation, answer: Answer) -> Result:
    if answer is None:
        return Result(operation.status, {}, b"")
    if isinstance(answer, Octets):
        disposition = f'attachment; filename="{answer.name}"'
        headers = {"Content-Type": "application/octet-stream", "Content-Disposition": disposition}
        return Result(operation.status, headers, answer.body)
    document = answer.model_dump()
    headers = {"Content-Type": "application/json"}
    if operation.location:
        headers["Location"] = f"/api/v1{operation.location.format_map(document)}"
    return Result(operation.status, headers, json.dumps(document, default=_plain).encode())


def _plain(value: Any) -> str:  # noqa: ANN401  whatever a model holds
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")
