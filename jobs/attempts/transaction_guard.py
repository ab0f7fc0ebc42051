"""Keeps a handler from committing its connection, or leaving a child on it; a rollback is a failed attempt.

A rollback is let through: an ORM session does one whenever a flush fails. It costs the attempt and nothing else, so
nothing more may be done then: it would go to a transaction that nobody gave out. `RolledBack` is raised, and written
down as any failure is (`receiver.ledger.runs.failed_attempts`).

A handler may take the driver's own connection (`tx.connection.driver_connection`) for what SQLAlchemy lacks. So the
transaction is begun there before the handler is called: psycopg's `transaction()` makes a savepoint of it then, and
would commit otherwise. A session that was given out so is closed after the attempt: settings, locks and adapters that
were left on it are for nobody else.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Self

import psycopg
from psycopg import Cursor, ServerCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from sqlalchemy import Connection, PoolProxiedConnection
from sqlalchemy.event import listen

from hookonce.jobs.attempts.attempt_connection import AttemptConnection, Marking
from hookonce.jobs.attempts.statement_effects import StatementEffects, effects_of
from hookonce.receiver.ledger.database import engines, schema

WAS_ROLLED_BACK = "the transaction was rolled back inside the handler"
ROLLED_BACK = (
    f"{WAS_ROLLED_BACK}; for an ORM session whose rollback is its own, name the second "
    "parameter session, as in def handler(event, session); on tx, use tx.begin_nested()"
)
CANCELLED = (
    "a statement was cancelled inside the handler, and its transaction with it; do not catch the cancellation"
)
REFUSED = "the transaction is hookonce's: return to commit it, raise to roll it back"
ABORTED = (
    "the transaction is aborted by an error: let it out, or go back to a savepoint by a statement of its own"
)
GOES_ON_BEHIND_A_ROLLBACK = "statements follow a rollback in one text; send each by itself"
ENDED = "the attempt has ended, and what it was given with it; take a connection of your own"
ISOLATION_IS_DECLARED = (
    "the isolation of a handler's transaction can't be set inside it; declare it, "
    "as in @on(..., isolation='serializable')"
)

BLOCK_REFUSED = "the transaction is hookonce's: end the block to commit it, raise to roll it back"
BLOCK_ISOLATION = "the isolation of event.tx() can't be set; tx='none' gives READ COMMITTED"


class Texts(NamedTuple):
    """What is said to a handler of what it may not do with its transaction."""

    refused: str = REFUSED
    rolled_back: str = ROLLED_BACK
    isolation: str = ISOLATION_IS_DECLARED


OF_ATTEMPT = Texts()
OF_BLOCK = Texts(BLOCK_REFUSED, f"{WAS_ROLLED_BACK}; use tx.begin_nested()", BLOCK_ISOLATION)
"""The same for a block of `event.tx()`."""

FORKED = 70
"""The exit status of a child that a handler forked and let return: it must not touch what it shares with its parent."""
_ONLY_LOOK = ("psycopg", "sqlalchemy", "opentelemetry", "sentry_sdk", "ddtrace")
"""Libraries that ask a cursor for its connection, and do nothing with it that stays."""
_HOOKED = ("commit", "rollback", "wait", "guard")
"""What stands in the place of the driver's own, and the guard."""


class RolledBack(Exception):  # noqa: N818  what was found
    """A handler's transaction is no longer the one it was given, and nothing that was written in that is there."""


class OverlongBlock(RuntimeError):  # noqa: N818  what was found
    """A transaction was open for longer than its lease allows, and its connection is gone."""


class TransactionGuard(Marking):
    """Keeps the handler in its block from committing the transaction it is given; savepoints work.

    What the handler sets up on the connection goes with the block, and what it keeps of it is closed then: the `owner`
    adopts the object that the connection goes on as. Before the handler does what might end the transaction, `mark` is
    called with a cursor in it: it inserts what tells others later that it was committed, and returns the transaction's
    id, which `xact_id` keeps for the end of the run in this session. `is_marked` says that this was tried. Marks are
    not for everybody: one costs a round trip, and an id, beyond which no vacuum goes while the transaction lasts.
    """

    def __init__(
        self,
        owner: AttemptConnection,
        mark: Callable[[Cursor[Any]], str] | None = None,
        *,
        texts: Texts = OF_ATTEMPT,
    ) -> None:
        self.texts = texts
        self._owner = owner
        self._mark = mark
        self._connection, self.driver = owner.in_transaction()
        self._given = self._connection.get_transaction()
        self._is_rolled_back = False
        self.is_given_out = False
        """Whether the handler has got past SQLAlchemy."""
        self._leaves_traces = False
        self._is_invalidated = False
        self.has_ended = False

    def __enter__(self) -> Connection:
        connection, driver = self._connection, self.driver
        self._options, self._engine = connection.get_execution_options(), connection.engine
        self._factories = driver.row_factory, driver.cursor_factory, driver.server_cursor_factory
        if driver.pgconn.transaction_status == TransactionStatus.IDLE:
            driver.execute("")
        driver.cursor_factory = GivenCursor
        driver.server_cursor_factory = _GivenServerCursor
        refuse = self._refuse
        connection.__dict__.update(commit=refuse, rollback=refuse, close=refuse, guard=self)
        connection.engine = self._owner.engine_of_handlers
        connection.__class__ = _GivenConnection
        driver.__dict__.update(commit=refuse, rollback=self._roll_back, guard=self)
        return connection

    def __exit__(self, *_: object) -> None:
        connection, driver, owner = self._connection, self.driver, self._owner
        self.has_ended = True
        connection.__class__ = Connection
        kept, of_driver = connection.__dict__, driver.__dict__
        del kept["commit"], kept["rollback"], kept["close"], kept["guard"]
        for name in _HOOKED:
            of_driver.pop(name, None)
        driver.row_factory, driver.cursor_factory, driver.server_cursor_factory = self._factories
        self._is_invalidated = connection.invalidated
        if not self._is_invalidated:
            if self._leaves_traces or connection.get_execution_options() != self._options:
                owner.is_session_changed = True
            if connection.in_nested_transaction():
                owner.is_transaction_changed = True
        owner.adopt(engines.withdraw(connection, self._engine))

    def identify(self) -> None:
        """Mark the transaction, unless it is marked already, or is at no point where it can be."""
        if self.xact_id is None:
            self._mark_now()

    def _mark_now(self) -> None:
        is_open = self.driver.pgconn.transaction_status == TransactionStatus.INTRANS
        if self._mark is None or self._is_rolled_back or not is_open:
            return
        self.is_marked = True
        xact_id = self._mark(self.cursor())
        self.xact_id = self.xact_id or xact_id

    def cursor(self) -> Cursor[Any]:
        """Return a cursor for statements of ours in the handler's transaction."""
        cursor = schema.cursor(self.driver, schema.of_cursors(self._factories[1]))
        cursor.row_factory = tuple_row
        return cursor

    def look_at(self, query: object, *, is_sqlalchemy_s: bool) -> bool:
        """Look at a statement before it is sent; return whether it is one of those that need nothing more.

        One that may end the transaction, or take away the right to, has it marked, whoever sends it. SQL that plainly
        ends it, or sets its isolation, is refused where it comes through SQLAlchemy: early and with a clear error. What
        is not seen here is found out later, by the mark (`receiver.ledger.runs.marks`). An aborted transaction takes no
        mark any more, and nothing but a savepoint leads out of it.
        """
        status = self.driver.pgconn.transaction_status
        if status == TransactionStatus.IDLE:  # the handler has ended it, and would begin one of its own
            raise RuntimeError(self.texts.rolled_back)
        effects = effects_of(query) if isinstance(query, str) else None
        if effects is not None and effects.is_plain:
            return True
        if effects is not None and is_sqlalchemy_s:
            self.refuse_effects(effects)
        if effects is not None and effects.goes_on_behind_a_rollback:
            raise RuntimeError(GOES_ON_BEHIND_A_ROLLBACK)
        if effects is None or effects.changes_session:
            self.is_session_ours, self._leaves_traces = False, True
        if effects is not None and effects.keeps_transaction:
            self.may_have_prepared |= effects.may_call
            if effects.may_set_role:
                self.identify()
            return False
        self.is_session_ours, self.may_have_prepared = False, True
        if status == TransactionStatus.INERROR:
            raise RuntimeError(ABORTED)
        self.identify()
        return False

    def refuse_effects(self, effects: StatementEffects) -> None:
        """Raise `RuntimeError` for what plainly ends the transaction or sets its isolation."""
        if effects.sets_isolation:
            raise RuntimeError(self.texts.isolation)
        if effects.ends_transaction:
            raise RuntimeError(self.texts.refused)
        if effects.changes_transaction:
            self._owner.is_transaction_changed = True

    def has_sent(self, query: object) -> None:
        """Mark the transaction anew behind a rollback, which may have taken the mark along."""
        is_stained = self.is_marked or self._leaves_traces
        if is_stained and isinstance(query, str) and effects_of(query).rolls_back:
            self._mark_now()

    def give_out(self) -> None:
        """Prepare for a handler that goes past SQLAlchemy: there it may do anything to transaction and session."""
        self.identify()
        if not self.is_given_out:
            listen(self._connection, "before_cursor_execute", _watch_sql)
        self.is_given_out = self._leaves_traces = True
        self.is_session_ours = False

    def require_open(self) -> None:
        """Raise `RolledBack` if the handler has visibly ended its transaction; how, its mark can tell."""
        if self._is_invalidated:
            raise RolledBack(CANCELLED)
        is_idle = self.driver.pgconn.transaction_status == TransactionStatus.IDLE
        if is_idle or not (self._given and self._given.is_active):
            raise RolledBack(self.texts.rolled_back)

    def _roll_back(self) -> None:
        """Roll back, for the handler or a session of its; from now on there is nothing to write to."""
        self._is_rolled_back = True
        self.driver.__dict__["rollback"] = _nothing
        type(self.driver).rollback(self.driver)
        self.driver.__dict__["wait"] = self._refuse

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError(self.texts.rolled_back if self._is_rolled_back else self.texts.refused)


class _GivenConnection(Connection):
    """A connection while a handler has it. Whoever takes the driver's own from it can do anything with that."""

    @property
    def connection(self) -> PoolProxiedConnection:
        """The connection of the pool, with the driver's own in it."""
        if guard := self.__dict__.get("guard"):
            guard.give_out()
        return super().connection


class GivenCursor(Cursor[Any]):
    """A cursor of the driver's while a handler has the connection, whether or not SQLAlchemy has made it.

    What it is given it sends as it is: the ledger's schema is put into our own statements only.
    """

    _is_used = False

    def __init__(self, connection: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
        super().__init__(connection, *args, **options)
        self._guard: TransactionGuard = connection.__dict__["guard"]

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The driver's connection, which is given out with it, as SQLAlchemy's is by its `connection`."""
        guard = self._conn.__dict__.get("guard")
        asks = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001  documented, for CPython
        if guard is not None and asks.partition(".")[0] not in _ONLY_LOOK:
            guard.give_out()
        return self._conn

    def execute(self, query: Any, *args: Any, **options: Any) -> Self:  # noqa: ANN401, D102  psycopg's
        is_plain = self._look_at(query)
        super().execute(query, *args, **options)
        if not is_plain:
            self._guard.has_sent(query)
        return self

    def executemany(self, query: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401, D102  psycopg's
        self._look_at(query)
        super().executemany(query, *args, **options)

    def copy(self, statement: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401, D102  psycopg's
        self._look_at(statement)
        return super().copy(statement, *args, **options)

    def stream(self, query: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401, D102  psycopg's
        self._look_at(query)
        return super().stream(query, *args, **options)

    def _start_query(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  psycopg's
        # Now that it has the connection: a thread may have waited for it until the handler had returned.
        # `tests/jobs/attempts/test_left_to_others.py` notices if psycopg no longer asks here.
        self._require_given()
        return super()._start_query(*args, **options)

    def _require_given(self) -> None:
        if self._guard.has_ended:
            raise RuntimeError(ENDED)

    def _look_at(self, query: object) -> bool:
        self._require_given()
        guard = self._guard
        # SQLAlchemy makes a cursor for each statement; what is sent by it again is the handler's own doing.
        is_sqlalchemy_s, self._is_used = not (self._is_used or guard.is_given_out), True
        return guard.look_at(query, is_sqlalchemy_s=is_sqlalchemy_s)


class _GivenServerCursor(ServerCursor[Any]):
    """A cursor of the server's while a handler has the connection; closed with it, as what it reads from is gone."""

    def __init__(self, connection: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
        self._guard: TransactionGuard = connection.__dict__["guard"]
        super().__init__(connection, *args, **options)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be fetched: for whoever has kept it, too."""
        return self._guard.has_ended or super().closed

    def execute(self, query: Any, *args: Any, **options: Any) -> Self:  # noqa: ANN401  psycopg's
        guard = self._guard
        if guard.has_ended:
            raise RuntimeError(ENDED)
        guard.look_at(query, is_sqlalchemy_s=not guard.is_given_out)
        return super().execute(query, *args, **options)


def _nothing() -> None:
    """Roll back again."""


def _watch_sql(connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
    """Refuse through SQLAlchemy what the cursors, which are given out, let everybody do."""
    if (guard := connection.__dict__.get("guard")) is not None:
        guard.refuse_effects(effects_of(statement))
