"""The connection that attempts are made on, kept from one to the next as long as it is as good as new."""

import logging
import os
import socket
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts.driver_cursors import SpareCursor
from hookonce.receiver.ledger.database import engines, session_reset
from hookonce.receiver.ledger.database.connections import is_stale
from hookonce.receiver.ledger.database.round_trip import (
    PreparingConnection,
    is_crash_of_others,
    require,
    round_trip,
)
from hookonce.receiver.ledger.runs import ends
from hookonce.receiver.ledger.runs.ends import Ended

log = logging.getLogger(__name__)

THROWN_AWAY = (
    "a connection was found in a transaction (%s) that belongs to no attempt, and was thrown away: a thread or a "
    "callback goes on with what its handler was given"
)
ENDED = "the worker has ended; a thread of it goes on, and gets no other connection"
_BEGUN = {TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR}
_MARGIN = 1.0
"""Seconds that a cancellation may take longer than it was given, and a thread to hear that its connection is gone."""


class CutOff(psycopg.OperationalError):
    """The connection of an attempt broke, or was not to be had; broken at the end, it may be ended, or not."""


class AttemptConnection:
    """One connection of an engine; `cut`, `cancel_statement` and `backend` are for other threads."""

    def __init__(self, engine: Engine, engine_of_handlers: Engine) -> None:
        self.engine_of_handlers = engine_of_handlers
        """The engine that a handler finds at the connection: nobody else gets what is opened there."""
        self._engine = engine
        self._connection: Connection | None = None
        self._driver: psycopg.Connection[Any] | None = None  # under it
        self.spare = SpareCursor()
        self.is_chained = False
        """Whether its transaction was begun by the end of the attempt before."""
        self.is_session_changed = False
        """Whether a handler has changed the session in a way that nothing takes back."""
        self.is_transaction_changed = False
        """Whether a handler has changed its transaction in a way that a chained one would take over."""
        self.is_session_ours = True
        """Whether nothing that its handler has sent can have taken away what is prepared in the session."""
        self.may_have_prepared = False
        """Whether its handler may have prepared something in the session by a function."""
        self._is_cut = False
        self.has_ended = False
        """Whether no connection is opened any more: nobody would close it."""
        self.is_lost: bool | None = None
        """Whether a connection was lost since this was None, True, or was not to be had, or by another's crash."""
        self._lock = threading.Lock()  # who acts on it from another thread finds it still in our hands
        self._cancelling: threading.Thread | None = None
        self._cancels_within = 0.0

    @property
    def ledger(self) -> psycopg.Connection:
        """The same connection without SQLAlchemy, for claiming and releasing between attempts."""
        _ = self.connection
        return self._driver  # type: ignore[return-value]  # it is open

    @property
    def idle_ledger(self) -> psycopg.Connection:
        """The connection in no transaction: for a claim, which would be part of any that is open, and undone with it.

        A thread or a callback that goes on with what a handler was given may have begun one: that connection is
        thrown away.
        """
        self.require_idle()
        return self.ledger

    def require_idle(self) -> None:
        """Throw the connection away if it is in a transaction: whoever began that is no attempt."""
        connection, driver = self._connection, self._driver
        if connection is None or driver is None or connection.invalidated:
            return
        if driver.pgconn.transaction_status not in _BEGUN:
            return
        log.warning(THROWN_AWAY, driver.info.transaction_status.name.lower())
        shut_down(driver)
        # Whoever waits at its socket hears that it has ended; of one that is closed under them they would hear nothing.
        if driver.lock.acquire(timeout=_MARGIN):
            driver.lock.release()
        self.discard()

    def adopt(self, connection: Connection) -> None:
        """Go on with another object for the connection, since the one so far is kept by somebody else, maybe."""
        with self._lock:
            self._connection = connection

    @property
    def connection(self) -> Connection:
        """The connection in use, opened when needed: also where the server has ended it while it lay idle."""
        connection, driver = self._connection, self._driver
        if connection is None or driver is None:
            return self._open()
        if connection.in_transaction():
            return connection
        is_idle = driver.pgconn.transaction_status == TransactionStatus.IDLE
        return self._open() if driver.closed or (is_idle and is_stale(driver)) else connection

    def _open(self) -> Connection:
        self.discard()
        if self.has_ended:
            raise psycopg.OperationalError(ENDED)
        try:
            connection = self._engine.connect()
        except (psycopg.OperationalError, SQLAlchemyError):
            self.is_lost = bool(self.is_lost)
            raise
        self._connection, self._driver = connection, engines.raw(connection)
        self.spare = SpareCursor()
        self.is_session_changed = self.is_transaction_changed = self._is_cut = self.may_have_prepared = False
        self.is_session_ours = True
        return connection

    @property
    def driver(self) -> psycopg.Connection[Any] | None:
        """The driver's connection, in whatever state it is, if there is one."""
        return self._driver

    def reset(self) -> None:
        """Make sure that nothing of the failed attempt is left on the connection."""
        self.is_chained = False
        connection, driver = self._connection, self._driver
        if connection is None or driver is None:
            return
        try:
            is_broken = driver.closed or driver.info.transaction_status is TransactionStatus.ACTIVE
            if not is_broken:
                if driver.prepare_threshold is None:  # a pooler is between, and gives the session to another
                    session_reset.roll_back(driver)
                if transaction := connection.get_transaction():
                    transaction.close()
                driver.rollback()  # what SQLAlchemy does not know of
        except (psycopg.Error, SQLAlchemyError):
            is_broken = True
        if is_broken:
            self.discard()
        self.clean()

    def clean(self) -> None:
        """Let go of a connection whose session a handler has changed: the next one must not find that."""
        connection = self._connection
        if connection is None or connection.invalidated:
            return
        if self.is_session_changed or getattr(self._driver, "is_used_up", False):
            self.discard()

    def take_out(self) -> None:
        """Take out of the session what a handler has left there, in its transaction, which is to be committed.

        A statement that it has prepared uses the session up.
        """
        _, driver = self.in_transaction()
        first = [*ends.taking_out(driver), session_reset.UNLOCK]
        if self.may_have_prepared:
            first.append(ends.asking(driver))
        last = require(round_trip(driver, [], first=first, prepare=False)[-1])
        if self.may_have_prepared and last.get_value(0, 0) == b"t":
            ends.use_up(driver)

    def put_back(self) -> None:
        """Let go of the connection, rolled back: whoever waits needs none."""
        self.reset()
        with self._lock:
            connection, self._connection, self._driver = self._connection, None, None
        if connection is not None:
            if not self._has_cancelled():
                connection.invalidate()
            connection.close()

    def begin_attempt(self, *, goes_on: bool) -> None:
        """Begin a transaction for an attempt; where it `goes_on` that is the one that the last end began.

        Nobody else's is met: a connection that was left in one is thrown away.
        """
        is_chained, self.is_chained = self.is_chained, False
        if is_chained and goes_on:
            return
        if not is_chained:
            self.require_idle()
        elif chained := self.connection.get_transaction():
            chained.rollback()
        connection = self.connection
        if not connection.in_transaction():
            connection.begin()

    def be_idle(self) -> None:
        """Be in no transaction, for an attempt that begins none."""
        if self.is_chained:
            self.reset()
        else:
            self.require_idle()

    def begin(self) -> RootTransaction:
        """Return the transaction that the last commit began, or begin one."""
        connection = self.connection
        return connection.get_transaction() or connection.begin()

    @property
    def begun(self) -> psycopg.Connection:
        """The driver's connection, in a transaction that SQLAlchemy knows of."""
        return self.in_transaction()[1]

    def in_transaction(self) -> tuple[Connection, psycopg.Connection[Any]]:
        """Return the connection and the driver's, in a transaction, which is begun where there is none."""
        connection = self._connection
        if connection is None or not connection.in_transaction():
            self.begin()
        return self._connection, self._driver  # type: ignore[return-value]  # both are open

    def end(self, ended: Ended, *, begins_next: bool = False, waits_for_flush: bool = True) -> None:
        """End an attempt as done, and commit. Raises `LeaseLost`, `CutOff`, and what has failed in it.

        The transaction of the next run is begun with it where that is wanted, no handler has changed this one, and no
        pooler is between.
        """
        connection, driver = self.in_transaction()
        is_pooled = driver.prepare_threshold is None
        chain = begins_next and not (self.is_transaction_changed or is_pooled)
        self.is_transaction_changed = False
        was_betrayed = PreparingConnection.is_betrayed
        try:
            ends.end(
                driver,
                ended,
                chain=chain,
                is_session_ours=self.is_session_ours,
                asks_for_prepared=self.may_have_prepared,
                waits_for_flush=waits_for_flush,
            )
        except psycopg.errors.InvalidSqlStatementName as error:
            if was_betrayed or not PreparingConnection.is_betrayed:
                raise  # nothing prepared was sent: a trigger of the handler's has failed so
            # A function has deallocated what was prepared: the next attempt is ended unprepared.
            raise CutOff(type(error).__name__) from error
        except psycopg.OperationalError as error:
            if driver.broken:
                raise CutOff(type(error).__name__) from error
            raise
        self.is_chained = chain
        if not chain and (transaction := connection.get_transaction()) is not None:
            transaction.commit()

    def discard(self) -> None:
        """Close the connection, in whatever state it is; the next attempt opens another."""
        self.note_loss(self._driver)
        if self._connection is not None:
            try:
                self._connection.invalidate()
                self._connection.close()
            except SQLAlchemyError as error:
                log.debug("closing a broken connection: %s", type(error).__name__)
        self._connection = self._driver = None
        self.is_chained = False

    def note_loss(self, driver: psycopg.Connection[Any] | None) -> None:
        """Note that a connection that an attempt is made on is broken, if it is, and not by `cut`."""
        if self.is_lost is None and driver is not None and driver.broken and not self._is_cut:
            self.is_lost = not is_crash_of_others(driver)

    def cut(self) -> None:
        """Shut down the connection's socket, from another thread: whoever waits for it does no longer."""
        with self._lock, suppress(Exception):  # it may be closed at this moment, and that is as good
            if self._driver is not None:
                self._is_cut = True
                shut_down(self._driver)

    def cancel_statement(self, timeout: timedelta) -> None:
        """Have what the connection is at cancelled, from another thread; return at once.

        A caller that then goes on to something else on this connection waits for it by `await_cancellation`.
        """
        with self._lock, suppress(Exception):  # same
            if self._driver is None or (self._cancelling and self._cancelling.is_alive()):
                return
            given = (self._driver, timeout)
            self._cancels_within = timeout.total_seconds() + _MARGIN
            self._cancelling = threading.Thread(target=_cancel, args=given, name="cancels", daemon=True)
            self._cancelling.start()

    def await_cancellation(self) -> None:
        """Wait until a cancellation that is under way has reached the server: it is not for what comes next.

        One that takes too long costs the connection.
        """
        if not self._has_cancelled():
            self.discard()

    def _has_cancelled(self) -> bool:
        """Wait as long as a cancellation may take, which libpq before 17 does not heed; return whether it is over."""
        cancelling, self._cancelling = self._cancelling, None
        if cancelling is not None:
            cancelling.join(self._cancels_within)
        return cancelling is None or not cancelling.is_alive()

    @property
    def backend(self) -> int | None:
        """The process id of PostgreSQL's backend that the connection is with, if there is one."""
        driver = self._driver
        with suppress(Exception):  # same
            return driver.info.backend_pid if driver is not None else None
        return None


def _cancel(connection: psycopg.Connection, timeout: timedelta) -> None:
    with suppress(Exception):  # same
        connection.cancel_safe(timeout=timeout.total_seconds())


def is_begun(connection: psycopg.Connection[Any]) -> bool:
    """Return whether a connection is in a transaction, or at a statement."""
    return connection.info.transaction_status in _BEGUN


def shut_down(connection: psycopg.Connection[Any]) -> None:
    """End what goes through a socket that another thread may wait at; its descriptor stays that thread's to close."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
