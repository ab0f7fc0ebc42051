"""One attempt of one run: the handler inside its transaction, under its time limit, and how it ended.

The handler's writes and the run's `done` commit together. When it fails, its writes roll back, and the
failure is written in a transaction of its own, under the same guard. Whether they did roll back PostgreSQL is
asked, by the transaction's id: a handler that has committed gets no further attempt (docs/decisions/0015).
"""

import json
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.event import listen
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs import failure_callbacks
from hookonce.jobs.attempts.failure_rows import FailureRows
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.transaction_guard import (
    COMMITTED,
    RESET_SETTINGS,
    ROLLED_BACK,
    SESSION_CHANGED,
    SETTINGS_CHANGED,
    TRANSACTION_CHANGED,
    WAS_ROLLED_BACK,
    RolledBack,
    TransactionGuard,
    exit_forked_children,
    watch_sql,
)
from hookonce.jobs.error_summary import message_of, summarize, whereabouts
from hookonce.jobs.event import BodyDropped, ReceivedEvent, Refusal, StepError, received
from hookonce.jobs.failure_callbacks import FailedAttempt, failure_of
from hookonce.jobs.handlers import ISOLATION_LEVELS, GiveUp, Handler, RetryLater, pause
from hookonce.jobs.steps import StepStopped, steps_of
from hookonce.jobs.traceback_text import traceback_text
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.config.commands import COMMAND, REFUSAL
from hookonce.receiver.encryption import (
    OFF,
    CannotDecrypt,
    KeyMissing,
    Keyring,
    body_context,
    result_context,
    traceback_context,
)
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.postgresql import Connections
from hookonce.receiver.idempotency.records import StoreUnavailable
from hookonce.receiver.ledger.database import engines
from hookonce.receiver.ledger.runs import claims, transitions
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.transitions import AttemptResult, LeaseLost
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally
from hookonce.receiver.logs import FINGERPRINT_DIGITS, digest, shown

if TYPE_CHECKING:
    from hookonce.jobs.attempts.coroutines import EventLoop

log = logging.getLogger(__name__)

MAX_ERROR_LENGTH = 2000
VERDICT_TIMEOUT = timedelta(seconds=5)
"""After which a transaction that is still under way counts as committed: at once dead rather than done twice."""
VERDICT_POLL = timedelta(milliseconds=50)
RETURNED_COROUTINE = (
    "the handler returned a coroutine that nobody awaits; decorate the `async def` itself with @on, or make what "
    "wraps it an `async def`"
)
VERDICTS = (GiveUp, RetryLater, Refusal, BodyDropped, CannotDecrypt)
"""Errors that say themselves what is to become of the run."""
OURS = (TimeUp, RolledBack, BodyDropped, CannotDecrypt, StepError, StepStopped, StoreUnavailable)
"""Errors whose text is ours, and quotes nothing of the event's."""
_ISOLATION = {level: f"SET TRANSACTION ISOLATION LEVEL {level}".encode() for level in ISOLATION_LEVELS}
Following = Callable[[], ClaimedRun | None]
"""Returns the run to start next, if it may still be started."""


class Executor:
    """Runs claimed runs on one connection to the ledger's database; not for two threads at once."""

    rolled_back = ROLLED_BACK
    """What is said of a handler that has rolled its transaction back."""

    def __init__(
        self,
        engine: Engine,
        provider_of: Callable[[str], Provider | None],
        keyring: Keyring = OFF,
        mask: Callable[[str], str] = str,
        steps: Connections | None = None,
    ) -> None:
        """Run on connections of `engine`; `mask` takes secrets out of the tracebacks that are kept.

        `steps` lends the connections that steps are written on; without it there are none.
        """
        self._steps = steps
        self._engine = engine
        self._keyring = keyring
        self._mask = mask
        listen(engine, "before_cursor_execute", watch_sql)
        self._provider_of = provider_of
        self._connection: Connection | None = None
        self._xact_id: str | None = None  # of the attempt's own transaction, if it was asked for
        self.alarm = TimeLimit()
        self.failure_rows = FailureRows()
        self._loop: EventLoop | None = None  # for `async def` handlers, once there is one

    def attempt(self, run: ClaimedRun, handler: Handler, following: Following) -> bool:
        """Make one attempt and end it, starting the `following()` run, asked for when it ends, in one transaction.

        Return whether the following run was started. Raises `psycopg.Error` or `SQLAlchemyError` when the
        database is gone; then nothing was written, and the lease's end brings the run back.
        """
        try:
            return self._attempt(run, handler, following)
        except LeaseLost as lost:
            self._reset()
            if not transitions.is_ours(self._begun(), run):
                self._refused(run, lost)
                return False
            error: BaseException = RolledBack(self.rolled_back)
            ending = _failure(run, handler, self.rolled_back)
        except TimeUp as late:
            # The alarm may have cut a call into libpq: the connection is of no further use.
            self.discard()
            error, ending = late, _failure(run, handler, str(late))
        except VERDICTS as verdict:
            self._reset()
            error, ending = verdict, _verdict(run, handler, verdict, self._said)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # noqa: BLE001  whatever it raises is a failed attempt
            self._reset()
            error, ending = raised, _failure(run, handler, self._said(raised))
        if not isinstance(error, VERDICTS):
            ending = replace(ending, also=self.failure_rows.after_failure(handler, error))
        return self._end_apart(run, ending, following, error)

    def _attempt(self, run: ClaimedRun, handler: Handler, following: Following) -> bool:
        self._xact_id = None
        self._begin(handler)
        connection, event = self.connection, self._event(run, handler)
        call, guard = self._call_of(handler), TransactionGuard(connection)
        try:
            # What is entered last is left first: a forked child ends before anything else does.
            with guard, self.alarm.limit(handler.timeout), exit_forked_children():
                reach("handler.entered")
                result = call(event, connection)
        finally:
            self._xact_id = guard.xact_id
        reach("handler.returned")
        event.require_steps_ended()
        guard.require_open()
        require_at_rest(self.ledger)
        ending = AttemptResult(
            RunStatus.DONE, storable(result), also=self.failure_rows.after_success(run.handler)
        )
        started = self._end(run, ending, following())
        reach("run.committed")
        self._clean()
        self._report(run, ending)
        return started

    def _call_of(self, handler: Handler) -> Callable[[ReceivedEvent, Connection], object]:
        """Return what calls a handler with what its signature asks for; what that needs is imported here."""
        if handler.signature.is_async:
            return partial(self._event_loop().call, handler.function, handler.signature)
        if handler.signature.takes_session:
            from hookonce.jobs.attempts import orm_session

            return partial(orm_session.call, handler.function, handler.signature.session_class)
        return handler.function

    def _event_loop(self) -> "EventLoop":
        if self._loop is None:
            from hookonce.jobs.attempts.coroutines import EventLoop

            self._loop = EventLoop(self.alarm)
        return self._loop

    def _begin(self, handler: Handler) -> None:
        """Begin the attempt's transaction, if the end of the one before has not."""
        if handler.isolation and (chained := self.connection.get_transaction()):
            chained.rollback()
        self._transaction()
        if handler.isolation:
            self.ledger.execute(set_isolation(handler.isolation))
            self.connection.info[TRANSACTION_CHANGED] = True

    def _event(self, run: ClaimedRun, handler: Handler) -> ReceivedEvent:
        event = run.event
        self._keyring.encrypt(b"", ("test",))  # what a handler returns could else not be stored
        found = None if event.body is None else (event.body, event.key_id)
        if found is None and event.url is not None:
            found = transitions.load_body(self.ledger, event)
        bond = body_context(event.source, event.event_id, event.fingerprint)
        body = None if found is None else self._keyring.open(*found, bond)
        steps = self._steps and steps_of(run, handler, self._steps, self._keyring)
        return received(run, body, self._provider_of(event.source), steps)

    def _end_apart(
        self, run: ClaimedRun, ending: AttemptResult, following: Following, error: BaseException
    ) -> bool:
        """End an attempt whose own writes are rolled back; dead, should they be committed after all."""
        reach("failure.rolled_back")
        xact_id, self._xact_id = self._xact_id, None
        if xact_id and self._is_committed(xact_id):
            self.discard()  # whatever else it did there
            ending = AttemptResult(RunStatus.DEAD, error=_committed(ending.error))
        try:
            started = self._end(run, self._with_traceback(run, ending, error), following())
        except LeaseLost as lost:
            self._refused(run, lost)
            return False
        reach("failure.committed")
        self._report(run, ending)
        if ending.error is not None and failure_callbacks.callbacks:
            self._call_back(failure_of(run, error, is_dead=ending.status == RunStatus.DEAD))
        return started

    def _refused(self, run: ClaimedRun, lost: LeaseLost) -> None:
        """Say, and count, that an attempt could not be ended, since its lease is somebody else's."""
        log.warning("lease lost: %s", lost, extra=names_of(run))
        self._reset()
        try:
            counters.add(self._begun(), {Tally(Kind.REFUSED, run.event.source): 1})
            self._transaction().commit()
        except (psycopg.Error, SQLAlchemyError) as error:  # it is only a count
            log.debug("a lost lease was not counted: %s", type(error).__name__)
            self._reset()

    def _with_traceback(self, run: ClaimedRun, ending: AttemptResult, error: BaseException) -> AttemptResult:
        """Add the traceback to a failure; sealed it may tell more, and what the error says besides."""
        if ending.error is None:
            return ending
        text = traceback_text(error, with_details=self._keyring.is_on) or self._left_out(error)
        if text is None:
            return ending
        plain = _storable_text(self._mask(text)).encode()
        try:
            sealed, key = self._keyring.encrypt(
                plain, traceback_context(run.event.id, run.handler, run.cycle, run.attempt)
            )
        except KeyMissing:  # what should be sealed must not be stored open
            return ending
        return replace(ending, traceback=sealed, key_id=key)

    def _said(self, error: BaseException) -> str:
        """Return what is kept of an error in the clear: where things are sealed, its class and place."""
        if not self._keyring.is_on:
            return message_of(error) if isinstance(error, VERDICTS) else summarize(error)
        return message_of(error) if isinstance(error, OURS) else whereabouts(error)

    def _left_out(self, error: BaseException) -> str | None:
        """Return what an error says, where that is not said in the clear."""
        return summarize(error) if self._keyring.is_on and not isinstance(error, OURS) else None

    def _sealed(self, run: ClaimedRun, ending: AttemptResult) -> AttemptResult:
        """Seal what a handler returned, where bodies are sealed. Raises `KeyMissing`."""
        if ending.result is None or not self._keyring.is_on:
            return ending
        plain = json.dumps(ending.result).encode()
        text, key = self._keyring.encrypt(plain, result_context(run.event.id, run.handler))
        return replace(ending, result=None, sealed_result=text, key_id=key)

    def _call_back(self, failure: FailedAttempt) -> None:
        """Tell whoever wants to hear of failures; nothing that they do harms the run, which has ended."""
        share = failure_callbacks.TIMEOUT / len(failure_callbacks.callbacks)
        for callback in failure_callbacks.callbacks:
            try:
                with self.alarm.limit(share), exit_forked_children():
                    result = callback(failure)
                    if isinstance(result, Coroutine):
                        self._event_loop().run(result)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  the user's code
                log.warning("a callback of on_failure failed: %s", whereabouts(error))

    def _is_committed(self, xact_id: str) -> bool:
        """Return whether a transaction was committed, or may yet be: a COMMIT that waits for a standby, or is prepared.

        One whose client is gone has its backend ended, so that it comes to a verdict.
        """
        deadline = time.monotonic() + VERDICT_TIMEOUT.total_seconds()
        while (verdict := transitions.is_committed(self._begun(), xact_id)) is None:
            if time.monotonic() > deadline:
                return True
            transitions.end_backend(self.ledger, xact_id)
            time.sleep(VERDICT_POLL.total_seconds())
        return verdict

    def _end(self, run: ClaimedRun, ending: AttemptResult, following: ClaimedRun | None) -> bool:
        """End and commit; the next attempt's transaction is begun with it, if this one was plain."""
        ending = self._sealed(run, ending)
        connection, transaction = self.connection, self._transaction()
        is_plain = not (connection.info.pop(TRANSACTION_CHANGED, False) or connection.in_nested_transaction())
        chain = following is not None and is_plain
        if connection.info.pop(SETTINGS_CHANGED, False):
            self.ledger.execute(RESET_SETTINGS)
        started = transitions.end(self.ledger, run, ending, following, chain=chain, xact_id=self._xact_id)
        if not (chain and started):
            transaction.commit()
        return started

    def _report(self, run: ClaimedRun, ending: AttemptResult) -> None:
        """Tell of an attempt that has ended for good."""
        if log.isEnabledFor(logging.INFO):
            log.info("run", extra={**names_of(run), "status": ending.status})

    def _transaction(self) -> RootTransaction:
        """Return the transaction that the last commit began, or begin one."""
        return self.connection.get_transaction() or self.connection.begin()

    def _begun(self) -> psycopg.Connection:
        """Return the driver's connection, in a transaction that SQLAlchemy knows of."""
        self._transaction()
        return self.ledger

    @property
    def ledger(self) -> psycopg.Connection:
        """The same connection without SQLAlchemy, for claiming and releasing between attempts."""
        return engines.raw(self.connection)

    @property
    def connection(self) -> Connection:
        """The connection in use, opened when needed."""
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _reset(self) -> None:
        """Make sure that nothing of the failed attempt is left on the connection."""
        if self._connection is None:
            return
        try:
            driver = engines.raw(self._connection)
            is_broken = driver.closed or driver.info.transaction_status is TransactionStatus.ACTIVE
            if not is_broken:
                if transaction := self._connection.get_transaction():
                    transaction.close()
                driver.rollback()  # what SQLAlchemy does not know of
        except (psycopg.Error, SQLAlchemyError):
            is_broken = True
        if is_broken:
            self.discard()
        self._clean()

    def _clean(self) -> None:
        """Let go of a connection whose session a handler has changed: the next one must not find that."""
        if self._connection is not None and self._connection.info.pop(SESSION_CHANGED, False):
            self.discard()

    def close(self) -> None:
        """Close the connection and the event loop."""
        self.discard()
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def discard(self) -> None:
        """Close the connection, in whatever state it is; the next attempt opens another."""
        if self._connection is not None:
            try:
                self._connection.invalidate()
                self._connection.close()
            except SQLAlchemyError as error:
                log.debug("closing a broken connection: %s", type(error).__name__)
        self._connection = None


def _verdict(
    run: ClaimedRun,
    handler: Handler,
    error: GiveUp | RetryLater | Refusal | BodyDropped | CannotDecrypt,
    said: Callable[[BaseException], str],
) -> AttemptResult:
    if isinstance(error, Refusal) and run.event.provider == COMMAND:
        answer = {"status": error.status, "code": error.code, "detail": error.detail}
        return AttemptResult(RunStatus.DONE, storable({REFUSAL: answer}))
    if isinstance(error, RetryLater):
        try:
            return AttemptResult(RunStatus.WAITING, delay=pause(error.delay), counted=False)
        except Exception as odd:  # noqa: BLE001  a class of the handler's own, which may say anything
            return _failure(run, handler, said(odd))
    if isinstance(error, KeyMissing):
        log.error("the body can't be read, the run waits: %s", error, extra={"event": run.event.id})
        return AttemptResult(RunStatus.WAITING, delay=claims.UNKNOWN_HANDLER_PAUSE, counted=False)
    return AttemptResult(RunStatus.DEAD, error=_text(said(error)))


def _failure(run: ClaimedRun, handler: Handler, error: str) -> AttemptResult:
    if run.attempt >= handler.attempts:
        return AttemptResult(RunStatus.DEAD, error=_text(error))
    return AttemptResult(RunStatus.WAITING, error=_text(error), delay=handler.delay(run.attempt))


def _committed(error: str | None) -> str:
    """Return what is said of a handler that has committed, and then failed with `error`."""
    is_its_own = error and WAS_ROLLED_BACK not in error
    return _text(f"{COMMITTED}; then it failed with {error}" if is_its_own else COMMITTED)


def _text(error: str) -> str:
    """Make an error fit its column."""
    return _storable_text(error)[:MAX_ERROR_LENGTH]


def _storable_text(text: str) -> str:
    """Make a text fit a text column."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def names_of(run: ClaimedRun) -> dict[str, object]:
    """Return what tells which attempt a line is about."""
    event = run.event
    names = {
        "event": event.id,
        "source": event.source,
        "type": event.type,
        "handler": run.handler,
        "cycle": run.cycle,
        "attempt": run.attempt,
        "fingerprint": event.fingerprint.hex()[:FINGERPRINT_DIGITS],
        "token": digest(run.token.bytes),
    }
    if event.account:
        names["account"] = shown(event.account)
    if event.traceparent:
        names["trace"] = event.traceparent[3:35]  # version-TRACE-span-flags
    return names


def set_isolation(level: str) -> bytes:
    """Return the statement that gives a transaction its level, one of `ISOLATION_LEVELS`."""
    return _ISOLATION[level]


def require_at_rest(connection: psycopg.Connection[Any]) -> None:
    """Raise `RuntimeError` where a handler that has returned left its transaction aborted, or a statement under way."""
    status = connection.info.transaction_status
    if status is TransactionStatus.INERROR:
        raise RuntimeError("the handler returned with its transaction aborted; let errors out")
    if status is TransactionStatus.ACTIVE:
        raise RuntimeError(
            "the handler returned with a statement under way; close its cursor, copy or pipeline"
        )


def storable(result: object) -> object:
    """Check that a handler's result can be stored: JSON, without what PostgreSQL's json refuses."""
    if isinstance(result, Coroutine):
        result.close()
        raise TypeError(RETURNED_COROUTINE)
    if result is None:
        return None
    try:
        encoded = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"a handler returns None or JSON; this result is neither: {error}") from None
    return json.loads(encoded)
