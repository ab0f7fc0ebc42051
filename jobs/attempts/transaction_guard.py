"""What a handler may not do with the connection it is given: commit its transaction, or leave a child on it.

A rollback is let through: an ORM session does one whenever a flush fails. It costs the attempt and nothing else, so
nothing more may be done then: it would go to a transaction that nobody gave out.

A handler may take the driver's own connection (`tx.connection.driver_connection`) for what SQLAlchemy lacks. So the
transaction is begun there before the handler is called: psycopg's `transaction()` makes a savepoint of it then, and
would commit otherwise. A session that was given out so is closed after the attempt: settings, locks and adapters that
were left on it are for nobody else.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Self

import psycopg
from psycopg import Cursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from sqlalchemy import Connection, PoolProxiedConnection

from hookonce.jobs.attempts.statement_effects import effects_of
from hookonce.receiver.ledger.database import engines, schema

SESSION_CHANGED = "stained"
"""The key in a connection's `info` that says: a handler has changed the session."""
TRANSACTION_CHANGED = "unchained"
"""Says: a handler has changed its transaction in a way that a chained one would take over."""

WAS_ROLLED_BACK = "the transaction was rolled back inside the handler"
ROLLED_BACK = (
    f"{WAS_ROLLED_BACK}; for an ORM session whose rollback is its own, name the second "
    "parameter session, as in def handler(event, session); on tx, use tx.begin_nested()"
)
CANCELLED = (
    "a statement was cancelled inside the handler, and its transaction with it; let the cancellation out"
)
REFUSED = "the transaction is hookonce's: return to commit it, raise to roll it back"
ABORTED = (
    "the transaction is aborted by an error: let it out, or go back to a savepoint by a statement of its own"
)
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


OF_BLOCK = Texts(BLOCK_REFUSED, f"{WAS_ROLLED_BACK}; use tx.begin_nested()", BLOCK_ISOLATION)
"""The same for a block of `event.tx()`."""

_ONLY_LOOK = ("psycopg", "sqlalchemy", "opentelemetry", "sentry_sdk", "ddtrace")
"""Libraries that ask a cursor for its connection, and do nothing with it that stays."""
_HOOKED = {"connection": ("commit", "rollback", "close"), "driver": ("commit", "rollback", "wait")}


class Marking:
    """What is known of the mark of an attempt's transaction, and of what it is sure to have left alone."""

    def __init__(self) -> None:
        self.xact_id: str | None = None
        """The marked transaction's, good for the end of the attempt in this session."""
        self.is_marked = False
        """Whether a mark was tried."""
        self.is_session_ours = True
        """Whether all that the handler has sent is sure to have left alone what is prepared in the session."""
        self.may_have_prepared = False
        """Whether it may have prepared something there by a function."""

    def unmarked(self) -> "Marking":
        """Return the same for a transaction of ours that follows: it has no mark."""
        self.xact_id = None
        return self


class RolledBack(Exception):  # noqa: N818  what was found
    """A handler's transaction is no longer the one it was given, and nothing that was written in that is there."""


class OverlongBlock(RuntimeError):  # noqa: N818  what was found
    """A transaction was open for longer than its lease allows, and its connection is gone."""


class TransactionGuard(Marking):
    """Keeps the handler in its block from committing the transaction it is given; savepoints work.

    What the handler sets up on the connection goes with the block, and what it keeps of it is closed then: `adopt` is
    given the object that the connection goes on as. Before the handler does what might end the transaction, `mark` is
    called with a cursor in it: it inserts what tells others later that it was committed, and returns the transaction's
    id, which `xact_id` keeps for the end of the run in this session. `is_marked` says that this was tried. Marks are
    not for everybody: one costs a round trip, and an id, beyond which no vacuum goes while the transaction lasts.
    """

    def __init__(
        self,
        connection: Connection,
        driver: psycopg.Connection[Any],
        adopt: Callable[[Connection], None],
        mark: Callable[[Cursor[Any]], str] | None = None,
        texts: Texts = Texts(),  # noqa: B008  immutable
    ) -> None:
        super().__init__()
        self.texts = texts
        self._adopt = adopt
        self._mark = mark
        self._connection = connection
        self._driver = driver
        self._given = connection.get_transaction()
        self._is_rolled_back = False
        self._is_given_out = False
        self._is_invalidated = False
        self.has_ended = False

    def __enter__(self) -> Connection:
        connection, driver = self._connection, self._driver
        self._options = connection.get_execution_options()
        self._factories = driver.row_factory, driver.cursor_factory
        if driver.pgconn.transaction_status == TransactionStatus.IDLE:
            driver.execute("")
        driver.cursor_factory = GivenCursor
        connection.__dict__.update(dict.fromkeys(_HOOKED["connection"], self._refuse), guard=self)
        connection.__class__ = _GivenConnection
        driver.__dict__.update(commit=self._refuse, rollback=self._roll_back, guard=self)
        return connection

    def __exit__(self, *_: object) -> None:
        connection, driver = self._connection, self._driver
        self.has_ended = True
        connection.__class__ = Connection
        for name in (*_HOOKED["connection"], "guard"):
            connection.__dict__.pop(name, None)
        for name in (*_HOOKED["driver"], "guard"):
            driver.__dict__.pop(name, None)
        driver.row_factory, driver.cursor_factory = self._factories
        self._is_invalidated = connection.invalidated
        if not self._is_invalidated:
            if self._is_given_out or connection.get_execution_options() != self._options:
                connection.info[SESSION_CHANGED] = True
            if connection.in_nested_transaction():
                connection.info[TRANSACTION_CHANGED] = True
        self._adopt(engines.withdraw(connection))

    def identify(self) -> None:
        """Mark the transaction, unless it is marked already, or is at no point where it can be."""
        if self.xact_id is None:
            self._mark_now()

    def _mark_now(self) -> None:
        is_open = self._driver.pgconn.transaction_status == TransactionStatus.INTRANS
        if self._mark is None or self._is_rolled_back or not is_open:
            return
        self.is_marked = True
        cursor = schema.cursor(self._driver, schema.of_cursors(self._factories[1]))
        cursor.row_factory = tuple_row
        xact_id = self._mark(cursor)
        self.xact_id = self.xact_id or xact_id

    def look_at(self, query: object) -> None:
        """Mark the transaction before a statement that may end it, or take away the right to, whoever sends it.

        An aborted transaction takes no mark any more, and nothing but a savepoint leads out of it.
        """
        effects = effects_of(query) if isinstance(query, str) else None
        if effects is None or effects.changes_session:
            self.is_session_ours, self._is_given_out = False, True
        if effects is not None and effects.keeps_transaction:
            self.may_have_prepared |= effects.may_call
            if effects.may_set_role:
                self.identify()
            return
        self.is_session_ours, self.may_have_prepared = False, True
        if self._driver.pgconn.transaction_status == TransactionStatus.INERROR:
            raise RuntimeError(ABORTED)
        self.identify()

    def has_sent(self, query: object) -> None:
        """Mark the transaction anew behind a rollback to a savepoint, which may have taken the mark along."""
        if (
            (self.is_marked or self._is_given_out)
            and isinstance(query, str)
            and effects_of(query).rolls_back_to
        ):
            self._mark_now()

    def give_out(self) -> None:
        """Prepare for a handler that goes past SQLAlchemy: there it may do anything to transaction and session."""
        self.identify()
        self._is_given_out = True
        self.is_session_ours = False

    def require_open(self) -> None:
        """Raise `RolledBack` if the handler has visibly ended its transaction; how, its mark can tell."""
        if self._is_invalidated:
            raise RolledBack(CANCELLED)
        is_idle = self._driver.pgconn.transaction_status == TransactionStatus.IDLE
        if is_idle or not (self._given and self._given.is_active):
            raise RolledBack(self.texts.rolled_back)

    def _roll_back(self) -> None:
        """Roll back, for the handler or a session of its; from now on there is nothing to write to."""
        self._is_rolled_back = True
        self._driver.__dict__["rollback"] = _nothing
        type(self._driver).rollback(self._driver)
        self._driver.__dict__["wait"] = self._refuse

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

    def __init__(self, connection: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
        super().__init__(connection, *args, **options)
        self._guard: TransactionGuard | None = connection.__dict__.get("guard")

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The driver's connection, which is given out with it, as SQLAlchemy's is by its `connection`."""
        guard = self._conn.__dict__.get("guard")
        asks = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001  documented, for CPython
        if guard is not None and asks.partition(".")[0] not in _ONLY_LOOK:
            guard.give_out()
        return self._conn

    def execute(self, query: Any, *args: Any, **options: Any) -> Self:  # noqa: ANN401, D102  psycopg's
        self._look_at(query)
        super().execute(query, *args, **options)
        if self._guard is not None:
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

    def _look_at(self, query: object) -> None:
        if self._guard is not None and self._guard.has_ended:
            raise RuntimeError(ENDED)
        if guard := self._conn.__dict__.get("guard"):
            guard.look_at(query)


def _nothing() -> None:
    """Roll back again."""


class ExitForkedChildren:
    """Ends a child that a handler forked and let return: it must not touch what it shares with its parent."""

    def __enter__(self) -> None:
        self._home = os.getpid()

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._home:
            os._exit(70)


def watch_sql(connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
    """Refuse SQL that plainly ends the transaction or sets its isolation, early and with a clear error.

    What is not seen here is found out later, by a mark (`receiver.ledger.runs.marks`). SQL that changes the session
    leaves `SESSION_CHANGED` in the connection's `info`, SQL that changes what kind of transaction it is
    `TRANSACTION_CHANGED`.
    """
    effects = effects_of(statement)
    guard = connection.__dict__.get("guard")
    texts = guard.texts if isinstance(guard, TransactionGuard) else Texts()
    if effects.sets_isolation:
        raise RuntimeError(texts.isolation)
    if effects.ends_transaction:
        raise RuntimeError(texts.refused)
    if effects.changes_session:
        connection.info[SESSION_CHANGED] = True
    if effects.changes_transaction:
        connection.info[TRANSACTION_CHANGED] = True
