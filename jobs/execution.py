"""One attempt of one run: the handler inside its transaction, under its time limit, and how it ended.

The handler's writes and the run's `done` commit together. When it fails, its writes roll back, and the
failure is written in a transaction of its own, under the same guard.
"""

import json
import logging
from collections.abc import Callable

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.event import listen
from sqlalchemy.exc import SQLAlchemyError

from jobs.alarm import Alarm, TimeUp
from jobs.blame import blame, said
from jobs.guards import HOME, MOVED, STAINED, UNCHAINED, TransactionEnded, at_home, guarded, watch_sql
from jobs.handlers import GiveUp, Handler, RetryLater, pause
from jobs.received import BodyDropped, ReceivedEvent, received
from providers.kit.provider import Provider
from receiver import engines
from receiver.failpoints import reach
from receiver.ledger import claims, runs
from receiver.ledger.runs import ClaimedRun, Ending, LeaseLost
from receiver.sealing import OFF, KeyMissing, Keyring, NotOpened, of_body

log = logging.getLogger(__name__)

LONGEST_ERROR = 2000
Following = Callable[[], ClaimedRun | None]
"""Gives the run to start next, if it may still be started."""


class Executor:
    """Runs claimed runs on one connection to the ledger's database; not for two threads at once."""

    def __init__(
        self, engine: Engine, provider_of: Callable[[str], Provider | None], keyring: Keyring = OFF
    ) -> None:
        self._engine = engine
        self._keyring = keyring
        listen(engine, "before_cursor_execute", watch_sql)
        self._provider_of = provider_of
        self._connection: Connection | None = None
        self.alarm = Alarm()

    def attempt(self, run: ClaimedRun, handler: Handler, following: Following) -> bool:
        """Make one attempt and end it, starting the `following()` run, asked for when it ends, in one transaction.

        Tells whether the following run was started. Raises `psycopg.Error` or `SQLAlchemyError` when the
        database is gone; then nothing was written, and the lease's end brings the run back.
        """
        try:
            return self._attempt(run, handler, following)
        except LeaseLost as error:
            log.warning("lease lost: %s", error, extra=_names(run))
            self._reset()
            return False
        except TimeUp:
            # The alarm may have cut a call into libpq: the connection is of no further use.
            self.discard()
            ending = _failure(run, handler, f"took longer than {handler.timeout.total_seconds():g} s")
        except (GiveUp, RetryLater, BodyDropped, NotOpened) as error:
            self._reset()
            ending = _verdict(run, handler, error)
        except TransactionEnded as error:
            self.discard()
            ending = Ending("dead", error=str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  whatever it raises is a failed attempt
            self._reset()
            ending = _failure(run, handler, blame(error))
        return self._end_apart(run, ending, following)

    def _attempt(self, run: ClaimedRun, handler: Handler, following: Following) -> bool:
        connection = self.connection
        self._transaction()
        event = self._event(run)
        with guarded(connection), self.alarm.limit(handler.timeout), at_home():  # first of all a child ends
            reach("handler.entered")
            result = handler.function(event, connection)
        reach("handler.returned")
        status = self.ledger.info.transaction_status
        if status is TransactionStatus.INERROR:
            raise RuntimeError("the handler returned with its transaction aborted; let errors out")
        if status is TransactionStatus.ACTIVE:
            raise RuntimeError(
                "the handler returned with a statement under way; close its cursor, copy or pipeline"
            )
        started = self._end(run, Ending("done", _storable(result)), following())
        reach("run.committed")
        self._clean()
        _report(run, "done")
        return started

    def _event(self, run: ClaimedRun) -> ReceivedEvent:
        event = run.event
        found = None if event.body is None else (event.body, event.key_id)
        if found is None and event.url is not None:
            found = runs.load_body(self.ledger, event)
        bond = of_body(event.source, event.event_id, event.fingerprint)
        body = None if found is None else self._keyring.open(*found, bond)
        return received(run, body, self._provider_of(event.source))

    def _end_apart(self, run: ClaimedRun, ending: Ending, following: Following) -> bool:
        """End an attempt whose own writes are rolled back."""
        reach("failure.rolled_back")
        try:
            started = self._end(run, ending, following())
        except LeaseLost as error:
            log.warning("lease lost: %s", error, extra=_names(run))
            self._reset()
            return False
        reach("failure.committed")
        _report(run, ending.status)
        return started

    def _end(self, run: ClaimedRun, ending: Ending, following: ClaimedRun | None) -> bool:
        """End and commit; the next attempt's transaction is begun with it, if this one was plain."""
        connection, transaction = self.connection, self._transaction()
        is_plain = not (connection.info.pop(UNCHAINED, False) or connection.in_nested_transaction())
        chain = following is not None and is_plain
        if connection.info.pop(MOVED, False):
            self.ledger.execute(HOME)
        started = runs.end(self.ledger, run, ending, following, chain=chain)
        if not (chain and started):
            transaction.commit()
        return started

    def _transaction(self) -> RootTransaction:
        """Give the transaction that the last commit began, or begin one."""
        return self.connection.get_transaction() or self.connection.begin()

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
            if not is_broken and (transaction := self._connection.get_transaction()):
                transaction.close()
        except (psycopg.Error, SQLAlchemyError):
            is_broken = True
        if is_broken:
            self.discard()
        self._clean()

    def _clean(self) -> None:
        """Let go of a connection whose session a handler has changed: the next one must not find that."""
        if self._connection is not None and self._connection.info.pop(STAINED, False):
            self.discard()

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
    run: ClaimedRun, handler: Handler, error: GiveUp | RetryLater | BodyDropped | NotOpened
) -> Ending:
    if isinstance(error, RetryLater):
        try:
            return Ending("waiting", delay=pause(error.delay), counted=False)
        except Exception as odd:  # noqa: BLE001  a class of the handler's own, which may say anything
            return _failure(run, handler, blame(odd))
    if isinstance(error, KeyMissing):
        log.error("the body can't be read, the run waits: %s", error, extra={"event": run.event.id})
        return Ending("waiting", delay=claims.UNKNOWN_HANDLER_PAUSE, counted=False)
    return Ending("dead", error=_text(said(error)))


def _failure(run: ClaimedRun, handler: Handler, error: str) -> Ending:
    if run.attempt >= handler.attempts:
        return Ending("dead", error=_text(error))
    return Ending("waiting", error=_text(error), delay=handler.delay(run.attempt))


def _text(error: str) -> str:
    """Make an error fit a text column."""
    return (
        error.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()[:LONGEST_ERROR]
    )


def _report(run: ClaimedRun, status: str) -> None:
    if log.isEnabledFor(logging.INFO):
        log.info("run", extra={**_names(run), "status": status})


def _names(run: ClaimedRun) -> dict[str, object]:
    """Say which attempt a line is about."""
    event = run.event
    names = {
        "event": event.id,
        "source": event.source,
        "type": event.type,
        "handler": run.handler,
        "attempt": run.attempt,
    }
    if event.traceparent:
        names["trace"] = event.traceparent[3:35]  # version-TRACE-span-flags
    return names


def _storable(result: object) -> object:
    """Check that a handler's result can be stored: JSON, without what PostgreSQL's json refuses."""
    if result is None:
        return None
    try:
        encoded = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"a handler returns None or JSON; this result is neither: {error}") from None
    return json.loads(encoded)
