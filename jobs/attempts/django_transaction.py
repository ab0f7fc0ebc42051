"""Attempts on Django's own connection: what a handler writes through the ORM commits together with the run's `done`.

The handler runs inside `transaction.atomic(durable=True)`, and our end is the last statement there; Django commits, and
then calls the hooks of `on_commit`. Nothing is read through Django's connection: it has adapters and a time zone of its
own. Claims, bodies and failures go through ours: a run takes two connections and one more commit (docs/decisions/0018).

Cursors send each statement by itself, and refuse what would end the transaction, as those of other handlers do. A
handler has psycopg's own connection besides, and libpq's in that: so PostgreSQL refuses to commit the transaction as
long as a row is there that it began with, and that its end deletes (`hookonce.guards`). Where it is not there at the
end, the handler has rolled back, and may have begun and committed others: the run is dead at once.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg
from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from hookonce.jobs.attempts.attempt_connection import (
    THROWN_AWAY,
    AttemptConnection,
    CutOff,
    is_begun,
    shut_down,
)
from hookonce.jobs.attempts.calls import MakeEventLoop, handler_event_loop
from hookonce.jobs.attempts.driver_cursors import given
from hookonce.jobs.attempts.endings import names_of
from hookonce.jobs.attempts.ports import Attempt, Blocks, Transaction
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.transaction_guard import (
    WAS_ROLLED_BACK,
    RolledBack,
    StatementGuard,
    Texts,
    require_at_rest,
    set_isolation,
)
from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.handlers import GiveUp
from hookonce.receiver.config.server_urls import USUAL_SCHEMA
from hookonce.receiver.ledger.database import functions, pinned, plans, schema, session_reset
from hookonce.receiver.ledger.database.connections import is_stale
from hookonce.receiver.ledger.database.round_trip import hear_crashes
from hookonce.receiver.ledger.database.session_reset import SessionReset
from hookonce.receiver.ledger.entities import Entities
from hookonce.receiver.ledger.runs import ends
from hookonce.receiver.ledger.runs.ends import Also, Ended, NotGuarded

log = logging.getLogger(__name__)

ROLLED_BACK = f"{WAS_ROLLED_BACK}; put what may be rolled back in a transaction.atomic() of its own"
CLOSED = "the handler closed the connection that its transaction was on; it is hookonce's to close"
MUST_ROLL_BACK = (
    "the handler returned after an error of the database, or a set_rollback(True), that its transaction can't survive; "
    "let errors out, or put what may fail in a transaction.atomic() of its own"
)

REPLACED = (
    "the handler ended the transaction it was given; what it committed stays, so there is no further attempt: only "
    "return, and its writes are committed with the run; what may be rolled back goes in a transaction.atomic()"
)

# As for connections of ours (`receiver.ledger.database.engines`): a backend whose worker is gone lets go of its locks.
_SET_UP = "SET client_connection_check_interval = 500; SET idle_in_transaction_session_timeout = '2h'"
# The zone is what Django's TIME_ZONE says.
_PINNED = {name: value for name, value in pinned.SETTINGS.items() if name != "timezone"}
_PIN = pinned.statement(_PINNED)
_PIN_SESSION = pinned.statement(_PINNED, is_local=False)


class TransactionReplaced(GiveUp):
    """A handler ended its transaction past everything that looks at statements: it may have committed others."""


class DjangoTransactions:
    """The transactions of one executor on the connection of an alias of DATABASES.

    A handler gets `(event, connection)`.
    """

    rolled_back = ROLLED_BACK
    blocks: Blocks | None = None

    def __init__(
        self,
        connection: AttemptConnection,
        alias: str = "default",
        place: str = USUAL_SCHEMA,
        event_loop: MakeEventLoop = handler_event_loop,
    ) -> None:
        """Write on the connection of `alias`, which leads to the ledger in the schema `place`.

        `event_loop` makes what `async def` handlers run on.
        """
        self.event_loop = event_loop
        self.alias = alias
        self.place = place
        self._connection = connection
        self._set_up: psycopg.Connection[Any] | None = None
        self._session_reset = session_reset.NOTHING
        self._factories: tuple[Any, Any] = (tuple_row, psycopg.Cursor)
        self.by_function = False
        """Whether Django's role has no right on the ledger's tables, and ends runs by functions."""

    def begin(self, attempt: Attempt) -> None:  # noqa: ARG002  the port's
        """Begin, on our connection, what the body of an event is read in."""
        self._connection.begin_attempt(goes_on=False)

    @contextmanager
    def open(self, attempt: Attempt, alarm: TimeLimit) -> Iterator[Transaction]:
        """Begin a guarded transaction of Django's; after the commit call its hooks, whose errors harm nobody's run."""
        self._connection.reset()  # nothing of ours stays open while the handler runs
        try:
            database = self._database()
        except OperationalError:
            self._connection.is_lost = False
            raise
        opened = _Opened(self, database, attempt)
        hooks = _Hooks(alarm, attempt.handler.timeout)
        try:
            with hooks, transaction.atomic(using=self.alias, durable=True), self._rolling_back(database):
                opened.begin()
                transaction.on_commit(hooks.begin, using=self.alias)
                yield opened
        except BaseException as error:
            if not hooks.have_begun:
                if opened.is_cut_off:
                    raise CutOff(type(error).__name__) from error
                raise
            _log_failed_hook(attempt, error)
        finally:
            if opened.uses_session_up:
                database.close()
        if opened.also is not None:  # on our connection: Django's role need have no rights for that
            with self._connection.ledger.transaction():
                opened.also(self._connection.ledger)

    def discard(self) -> None:
        """Close Django's connection, in whatever state it is."""
        database = connections[self.alias]
        if not database.in_atomic_block:
            database.close()

    @property
    def backend(self) -> int | None:
        """The process id of the backend that Django's connection is with: the handler writes there."""
        with suppress(Exception):  # it may be closed at this moment
            return self._set_up.info.backend_pid if self._set_up is not None else None
        return None

    def entities(self, given: BaseDatabaseWrapper) -> Entities:
        """Return the entities, past Django's cursors."""
        cursor = self.cursor(given)
        cursor.row_factory = tuple_row
        return Entities(cursor, by_function=self.by_function)

    def cursor(self, database: BaseDatabaseWrapper) -> psycopg.Cursor[Any]:
        """Return a cursor for statements of ours, past Django's own kind."""
        return schema.cursor(database.connection, self.place)

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
            hear_crashes(database.connection)
            if not _is_pooled(database):
                with database.cursor() as cursor:
                    cursor.execute(_SET_UP)
                    cursor.execute(_PIN_SESSION)
            with self.cursor(database) as cursor:
                self.by_function = functions.are_needed(cursor)
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

    @contextmanager
    def _rolling_back(self, database: BaseDatabaseWrapper) -> Iterator[None]:
        """Roll back on an error, with what a rollback leaves in the session: Django would only do the first."""
        try:
            yield
        except BaseException:
            if (driver := database.connection) is not None:
                self._connection.note_loss(driver)
                if not driver.closed:
                    with suppress(psycopg.Error):
                        session_reset.roll_back(driver)
            raise

    def take_out(self, database: BaseDatabaseWrapper) -> bool:
        """Take out of Django's session what the handler has left there; what Django has set there stays.

        Return whether anything is prepared there, which uses the session up.
        """
        driver = database.connection
        with database.wrap_database_errors, driver.pipeline():
            for statement in self._session_reset.statements:
                schema.cursor(driver).execute(statement)
            if driver.prepare_threshold is None:
                return False
            asked = schema.cursor(driver)
            asked.row_factory = tuple_row
            return asked.execute(session_reset.IS_ANYTHING_PREPARED).fetchone() == (True,)


def _is_pooled(database: BaseDatabaseWrapper) -> bool:
    """Return whether a pooler is in between, to go by what Django is told for one."""
    return bool(database.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"))


class _Opened:
    """One transaction of Django's."""

    shares_flushes = False

    def __init__(self, owner: DjangoTransactions, database: BaseDatabaseWrapper, attempt: Attempt) -> None:
        self.also: Also | None = None
        """Writes that belong to its end, made once it is committed."""
        self._owner = owner
        self._database = database
        self._driver: psycopg.Connection[Any] = database.connection
        self._attempt = attempt
        self._guard = _Guard(self._driver)
        self._xact_id = ""
        self._has_prepared = False
        self._is_ending = False

    def begin(self) -> None:
        """Begin the transaction on the server, with the level that was declared, and guard it."""
        isolation = self._attempt.handler.isolation
        is_pooled = _is_pooled(self._database)
        if is_pooled and self._driver.isolation_level is None:
            isolation = isolation or "read committed"
        with self._owner.cursor(self._database) as cursor:
            if isolation:
                cursor.execute(set_isolation(isolation))
            if is_pooled:
                cursor.execute(_PIN)
            self._xact_id = ends.guard(cursor, by_function=self._owner.by_function)

    @contextmanager
    def lent(self) -> Iterator[BaseDatabaseWrapper]:
        """Give Django's connection, and look at what goes through it."""
        driver, guard = self._driver, self._guard
        driver.__dict__["guard"], kind = guard, driver.cursor_factory
        driver.cursor_factory = given(kind)
        try:
            yield self._database
        except Exception:
            guard.require_no_commit()
            self._require_own()
            raise
        finally:
            guard.has_ended = True
            driver.cursor_factory = kind

    def _require_own(self) -> None:
        """Raise `TransactionReplaced` where the handler is in none, or in one that it has begun itself."""
        status = self._driver.info.transaction_status
        if status is TransactionStatus.IDLE:
            raise self._replaced()
        if status is TransactionStatus.INTRANS:
            cursor = schema.cursor(self._driver)
            cursor.row_factory = tuple_row
            if cursor.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone() != (self._xact_id,):
                raise self._replaced()

    def _replaced(self) -> TransactionReplaced:
        """Return what is raised of all events: no half of a batch may be tried again, either."""
        return TransactionReplaced(REPLACED, event=self._attempt.events)

    def require_open(self) -> None:
        """Raise `TransactionReplaced`, `RolledBack` or `RuntimeError` where it can't be committed any more."""
        self._guard.require_no_commit()
        database = self._database
        if database.closed_in_transaction or database.connection is None:
            raise RolledBack(CLOSED)
        if database.connection.info.transaction_status is TransactionStatus.IDLE:
            raise self._replaced()
        if database.needs_rollback:
            raise RolledBack(MUST_ROLL_BACK)
        require_at_rest(database.connection)

    def end(self, ended: Ended, **_: bool) -> None:
        """End the attempt, by the last statements of the transaction, which Django commits."""
        self.also, self._is_ending = ended.also, True
        owner = self._owner
        with owner.cursor(self._database) as cursor:
            if ended.limit is not None:
                cursor.execute(*ends.within(ended.limit))
            try:
                self._has_prepared = owner.take_out(self._database)
            except OperationalError as error:
                ends.raise_as_waited(error.__cause__ or error, ended.limit)
            for statement in plans.FOR_ONE_END:
                cursor.execute(statement)
            try:
                ends.end_within(cursor, ended, by_function=owner.by_function)
            except NotGuarded:
                raise self._replaced() from None

    @property
    def is_cut_off(self) -> bool:
        """Whether its connection ended while it was ended: it may be committed, or not."""
        return self._is_ending and self._driver.closed

    @property
    def uses_session_up(self) -> bool:
        """Whether the session holds what can't be taken out of it."""
        return self._guard.is_session_used_up or self._has_prepared


def _log_failed_hook(attempt: Attempt, error: BaseException) -> None:
    """Say that what was to happen after the commit did not; as in a request of Django's, nobody tries again."""
    named = names_of(attempt.runs[0]) | ({"events": len(attempt.runs)} if len(attempt.runs) > 1 else {})
    log.error("the run is done, but a hook of on_commit failed: %s", whereabouts(error), extra=named)
    if isinstance(error, TimeUp):  # it may have cut a call into libpq, on any of them
        connections.close_all()


class _Guard(StatementGuard):
    """Looks at each statement that goes through a cursor of Django's connection, or of psycopg's beneath it."""

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        super().__init__(Texts(rolled_back=ROLLED_BACK))
        self.given = driver


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
