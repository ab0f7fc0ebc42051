"""Attempts on Django's own connection: what a handler writes through the ORM commits together with the run's `done`.

The handler runs inside `transaction.atomic(durable=True)`, and our end is the last statement there; Django commits, and
then calls the hooks of `on_commit`. Nothing is read through Django's connection: it has adapters and a time zone of its
own. Claims, bodies and failures go through ours: a run takes two connections and one more commit (docs/decisions/0018).

Each transaction is marked before its handler: there are too many ways past Django to look at each statement.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import timedelta
from types import ModuleType
from typing import Any

import psycopg
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from hookonce.jobs.attempts.attempt import Executor, HasNext
from hookonce.jobs.attempts.attempt_connection import THROWN_AWAY, is_begun, shut_down
from hookonce.jobs.attempts.endings import names_of, storable
from hookonce.jobs.attempts.handler_transaction import require_at_rest, set_isolation
from hookonce.jobs.attempts.statement_effects import effects_of
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.transaction_guard import (
    REFUSED,
    WAS_ROLLED_BACK,
    ExitForkedChildren,
    RolledBack,
)
from hookonce.jobs.error_summary import whereabouts
from hookonce.jobs.handlers import Handler
from hookonce.receiver.config.server_urls import USUAL_SCHEMA
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import schema, session_reset
from hookonce.receiver.ledger.database.connections import is_stale
from hookonce.receiver.ledger.database.session_reset import SessionReset
from hookonce.receiver.ledger.runs import ends, ends_by_function
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus

log = logging.getLogger(__name__)

ROLLED_BACK = f"{WAS_ROLLED_BACK}; put what may be rolled back in a transaction.atomic() of its own"
CLOSED = "the handler closed the connection that its transaction was on; it is hookonce's to close"
MUST_ROLL_BACK = (
    "the handler returned after an error of the database, or a set_rollback(True), that its transaction can't survive; "
    "let errors out, or put what may fail in a transaction.atomic() of its own"
)

# As for connections of ours (`receiver.ledger.database.engines`): a backend whose worker is gone lets go of its locks.
_SET_UP = "SET client_connection_check_interval = 500; SET idle_in_transaction_session_timeout = '2h'"


class DjangoExecutor(Executor):
    """Runs claimed runs on the connection of an alias of DATABASES; a handler gets `(event, connection)`."""

    alias = "default"
    place = USUAL_SCHEMA
    rolled_back = ROLLED_BACK
    _set_up: psycopg.Connection[Any] | None = None
    _session_reset = session_reset.NOTHING
    _has_prepared = False
    _factories: tuple[Any, Any] = (tuple_row, psycopg.Cursor)
    _ends: ModuleType = ends
    """The module whose statements mark and end runs with the rights that Django's role has."""

    def _attempt(self, run: ClaimedRun, handler: Handler, has_next: HasNext) -> None:  # noqa: ARG002  no chaining
        self._start_anew()
        self._note_start(run)
        self.begin()
        event = self._event(run, handler)
        self._reset()  # nothing of ours stays open while the handler runs
        database = self._database()
        watch = _Watch()
        hooks = _Hooks(self.alarm, handler.timeout)
        try:
            with hooks, transaction.atomic(using=self.alias, durable=True), _rolling_back(database):
                self._begin_in(database, run, handler)
                transaction.on_commit(hooks.begin, using=self.alias)
                with (
                    self.alarm.limit(handler.timeout),
                    ExitForkedChildren(),
                    database.execute_wrapper(watch),
                ):
                    reach("handler.entered")
                    result = handler.function(event, database)
                    event.require_steps_ended()
                reach("handler.returned")
                ending = AttemptResult(RunStatus.DONE, storable(result))
                self._end_in(database, run, ending)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if not hooks.have_begun:
                raise
            self._log_failed_hook(run, error)
        finally:
            if watch.is_session_changed or self._has_prepared:
                database.close()
        reach("run.committed")
        self._close_breaker(run.handler)
        self._report(run, ending)

    def _close_breaker(self, handler: str) -> None:
        """End a row of failures, on our connection: Django's role need have no rights for that."""
        close = self.failure_rows.after_success(handler)
        if close is not None:
            with self.ledger.transaction():
                close(self.ledger)

    def discard(self) -> None:
        """Close our connection and Django's, in whatever state they are."""
        super().discard()
        database = connections[self.alias]
        if not database.in_atomic_block:
            database.close()

    @property
    def backend(self) -> int | None:
        """The process id of the backend that Django's connection is with: the handler writes there."""
        with suppress(Exception):  # it may be closed at this moment
            return self._set_up.info.backend_pid if self._set_up is not None else None
        return None

    def _database(self) -> BaseDatabaseWrapper:
        """Return Django's connection, open; whatever others there are, their time may be over.

        Where none says how long a connection may be kept (CONN_MAX_AGE), ours is kept from run to run.
        """
        database = self._idle_database()
        for each in connections.all(initialized_only=True):
            if each is not database or each.errors_occurred or each.settings_dict["CONN_MAX_AGE"] != 0:
                each.close_if_unusable_or_obsolete()
        if database.connection is not None and is_stale(database.connection):
            database.close()
        database.ensure_connection()
        if database.connection is not self._set_up:
            self._set_up = database.connection
            if not database.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):  # else a pooler is in between
                with database.cursor() as cursor:
                    cursor.execute(_SET_UP)
            with self._cursor(database) as cursor:
                self._ends = ends_by_function if ends_by_function.are_needed(cursor) else ends
            self._session_reset = SessionReset.of(database.connection, has_settings=True)
            self._factories = database.connection.row_factory, database.connection.cursor_factory
        # A handler before may have set others.
        database.connection.row_factory, database.connection.cursor_factory = self._factories
        return database

    def _idle_database(self) -> BaseDatabaseWrapper:
        """Return Django's connection; one that somebody has left in a transaction is thrown away."""
        database = connections[self.alias]
        driver = database.connection
        if driver is None or not (database.in_atomic_block or is_begun(driver)):
            return database
        log.warning(THROWN_AWAY, driver.info.transaction_status.name.lower())
        shut_down(driver)
        with suppress(psycopg.Error):
            driver.close()
        del connections[self.alias]
        return connections[self.alias]

    def _begin_in(self, database: BaseDatabaseWrapper, run: ClaimedRun, handler: Handler) -> None:
        """Begin the transaction on the server, with the level that was declared, and mark it."""
        self._has_prepared = False
        with self._cursor(database) as cursor:
            if handler.isolation:
                cursor.execute(set_isolation(handler.isolation))
            self._is_marked = True
            self._xact_id = self._ends.mark(cursor, run)

    def _end_in(self, database: BaseDatabaseWrapper, run: ClaimedRun, ending: AttemptResult) -> None:
        """End the run in the handler's transaction, if that is still the one it was given."""
        if database.closed_in_transaction or database.connection is None:
            raise RolledBack(CLOSED)
        if database.connection.info.transaction_status is TransactionStatus.IDLE:
            raise RolledBack(ROLLED_BACK)
        if database.needs_rollback:
            raise RolledBack(MUST_ROLL_BACK)
        require_at_rest(database.connection)
        self._take_out(database)
        with self._cursor(database) as cursor:
            self._ends.end_within(cursor, run, self._sealed(run, ending), self._took(), str(self._xact_id))

    def _take_out(self, database: BaseDatabaseWrapper) -> None:
        """Take out of Django's session what the handler has left there; what Django has set there stays."""
        driver = database.connection
        with database.wrap_database_errors, driver.pipeline():
            for statement in self._session_reset.statements:
                psycopg.Cursor(driver).execute(statement)
            if driver.prepare_threshold is not None:
                asked = psycopg.Cursor(driver, row_factory=tuple_row).execute(
                    session_reset.IS_ANYTHING_PREPARED
                )
                self._has_prepared = asked.fetchone() == (True,)

    def _cursor(self, database: BaseDatabaseWrapper) -> psycopg.Cursor[Any]:
        """Return a cursor for statements of ours, past Django's own kind."""
        return schema.cursor(database.connection, self.place)

    def _log_failed_hook(self, run: ClaimedRun, error: BaseException) -> None:
        """Say that what was to happen after the commit did not; as in a request of Django's, nobody tries again."""
        log.error(
            "the run is done, but a hook of on_commit failed: %s", whereabouts(error), extra=names_of(run)
        )
        if isinstance(error, TimeUp):  # it may have cut a call into libpq, on any of them
            connections.close_all()


@contextmanager
def _rolling_back(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Roll back on an error, with what a rollback leaves in the session: Django would only do the first."""
    try:
        yield
    except BaseException:
        if (driver := database.connection) is not None and not driver.closed:
            with suppress(psycopg.Error):
                session_reset.roll_back(driver)
        raise


class _Watch:
    """Sees the SQL that goes through Django: refuses what plainly ends the transaction, and notes what outlasts it."""

    def __init__(self) -> None:
        self.is_session_changed = False

    def __call__(self, execute: Callable[..., Any], sql: Any, *arguments: Any) -> Any:  # noqa: ANN401  Django's
        if isinstance(sql, str):
            effects = effects_of(sql)
            if effects.ends_transaction:
                raise RuntimeError(REFUSED)
            self.is_session_changed |= effects.changes_session
        return execute(sql, *arguments)


class _Hooks:
    """The time of what runs after the commit: `begin` is the first hook, and the handler's limit holds from then on."""

    def __init__(self, alarm: TimeLimit, limit: timedelta) -> None:
        self.have_begun = False
        self._alarm = alarm
        self._time = limit
        self._limit: ExitStack = ExitStack()

    def begin(self) -> None:
        """Start the time: it is committed."""
        self.have_begun = True
        limit: AbstractContextManager[None] = self._alarm.limit(self._time)
        self._limit.enter_context(limit)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._limit.close()
