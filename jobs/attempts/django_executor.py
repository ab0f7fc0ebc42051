"""Attempts on Django's own connection: what a handler writes through the ORM commits together with the run's `done`.

The handler runs inside `transaction.atomic(durable=True)`, and our end is the last statement there; Django commits, and
then calls the hooks of `on_commit`. Nothing is read through Django's connection: it has adapters and a time zone of its
own. Claims, bodies and failures go through ours: a run takes two connections and one more commit (docs/decisions/0018).

The transaction's id is asked for before each handler: there are too many ways past Django to look at each statement.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import timedelta
from typing import Any

import psycopg
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from hookonce.jobs.attempts.attempt import Executor, Following
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
from hookonce.receiver.ledger.database import schema
from hookonce.receiver.ledger.database.connections import is_stale
from hookonce.receiver.ledger.runs import run_end, transitions, xact_status
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.run_end import AttemptResult
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

    def _attempt(self, run: ClaimedRun, handler: Handler, following: Following) -> bool:
        self._xact_id = None
        self._transaction()
        event = self._event(run, handler)
        self._reset()  # nothing of ours stays open while the handler runs
        database = self._database()
        watch = _Watch()
        hooks = _Hooks(self.alarm, handler.timeout)
        try:
            with hooks, transaction.atomic(using=self.alias, durable=True):
                self._begin_in(database, handler)
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
            if watch.is_session_changed:
                database.close()
        reach("run.committed")
        self._close_breaker(run.handler)
        self._report(run, ending)
        next_run = following()
        return next_run is not None and transitions.start(self.ledger, next_run)

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
        database = connections[self.alias]
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
        return database

    def _begin_in(self, database: BaseDatabaseWrapper, handler: Handler) -> None:
        """Begin the transaction on the server, with the level that was declared, and ask for its id."""
        with self._cursor(database) as cursor:
            if handler.isolation:
                cursor.execute(set_isolation(handler.isolation))
            self._xact_id = xact_status.current_xact_id(cursor.connection, begin=True)

    def _end_in(self, database: BaseDatabaseWrapper, run: ClaimedRun, ending: AttemptResult) -> None:
        """End the run in the handler's transaction, if that is still the one it was given."""
        if database.closed_in_transaction or database.connection is None:
            raise RolledBack(CLOSED)
        if database.connection.info.transaction_status is TransactionStatus.IDLE:
            raise RolledBack(ROLLED_BACK)
        if database.needs_rollback:
            raise RolledBack(MUST_ROLL_BACK)
        require_at_rest(database.connection)
        with self._cursor(database) as cursor:
            run_end.end_within(cursor, run, self._sealed(run, ending), str(self._xact_id))

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
