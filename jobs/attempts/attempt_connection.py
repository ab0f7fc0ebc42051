"""The connection that attempts are made on, kept from one to the next as long as it is as good as new."""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.event import contains, listen
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts.transaction_guard import SESSION_CHANGED, watch_sql
from hookonce.receiver.ledger.database import engines, session_reset
from hookonce.receiver.ledger.runs import ends

log = logging.getLogger(__name__)

THROWN_AWAY = (
    "a connection was found in a transaction (%s) that belongs to no attempt, and was thrown away: a thread or a "
    "callback goes on with what its handler was given"
)
_BEGUN = {TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR}
_MARGIN = 1.0
"""Seconds that a cancellation may take longer than it was given, and a thread to hear that its connection is gone."""


class AttemptConnection:
    """One connection of an engine; `cut`, `cancel_statement` and `backend` are for other threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._lock = threading.Lock()  # who acts on it from another thread finds it still in our hands
        self._cancelling: threading.Thread | None = None
        self._cancels_within = 0.0
        if not contains(engine, "before_cursor_execute", watch_sql):
            listen(engine, "before_cursor_execute", watch_sql)

    @property
    def ledger(self) -> psycopg.Connection:
        """The same connection without SQLAlchemy, for claiming and releasing between attempts."""
        return engines.raw(self.connection)

    @property
    def idle_ledger(self) -> psycopg.Connection:
        """The same, in no transaction: for a claim, which would be part of any that is open, and undone with it.

        Whoever goes on with what a handler was given, a thread or a callback, may have begun one: that connection is
        thrown away.
        """
        self._require_idle()
        return self.ledger

    def _require_idle(self) -> None:
        connection = self._connection
        if connection is None or connection.invalidated:
            return
        driver = engines.raw(connection)
        if not is_begun(driver):
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
        if self._connection is not None and engines.has_ended_idle(self._connection):
            self.discard()
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
                if driver.prepare_threshold is None:  # a pooler is between, and gives the session to another
                    session_reset.roll_back(driver)
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
        if self._connection is None or self._connection.invalidated:
            return
        is_changed = self._connection.info.pop(SESSION_CHANGED, False)
        if is_changed or getattr(engines.raw(self._connection), "is_used_up", False):
            self.discard()

    def take_out(self, *, asks_for_prepared: bool) -> None:
        """Take out of the session what a handler has left there, in its transaction, which is to be committed.

        `asks_for_prepared`: it may have prepared a statement, which uses the session up.
        """
        driver = self.ledger
        with driver.pipeline():
            for statement in (*ends.taking_out(driver), session_reset.UNLOCK):
                driver.execute(statement)
            if asks_for_prepared:
                asked = driver.execute(session_reset.IS_ANYTHING_PREPARED)
        if asks_for_prepared and asked.fetchone() == (True,):
            ends.use_up(driver)

    def put_back(self) -> None:
        """Let go of the connection, rolled back: whoever waits needs none."""
        self._reset()
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            if not self._has_cancelled():
                connection.invalidate()
            connection.close()

    def begin(self) -> RootTransaction:
        """Return the transaction that the last commit began, or begin one."""
        return self.connection.get_transaction() or self.connection.begin()

    def _begun(self) -> psycopg.Connection:
        """Return the driver's connection, in a transaction that SQLAlchemy knows of."""
        self.begin()
        return self.ledger

    def discard(self) -> None:
        """Close the connection, in whatever state it is; the next attempt opens another."""
        if self._connection is not None:
            try:
                self._connection.invalidate()
                self._connection.close()
            except SQLAlchemyError as error:
                log.debug("closing a broken connection: %s", type(error).__name__)
        self._connection = None

    def cut(self) -> None:
        """Shut down the connection's socket, from another thread: whoever waits for it does no longer."""
        with self._lock, suppress(Exception):  # it may be closed at this moment, and that is as good
            if self._connection is not None:
                shut_down(engines.raw(self._connection))

    def cancel_statement(self, timeout: timedelta) -> None:
        """Have what the connection is at cancelled, from another thread; return at once.

        Whoever then goes on to something else on this connection waits for it by `await_cancellation`.
        """
        with self._lock, suppress(Exception):  # same
            if self._connection is None or (self._cancelling and self._cancelling.is_alive()):
                return
            given = (engines.raw(self._connection), timeout)
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
        connection = self._connection
        with suppress(Exception):  # same
            return engines.raw(connection).info.backend_pid if connection is not None else None
        return None

    @contextmanager
    def ledger_for_once(self) -> Iterator[psycopg.Connection]:
        """Lend another connection of the engine, for other threads."""
        with self._engine.connect() as connection:
            yield engines.raw(connection)


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
