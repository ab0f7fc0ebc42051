"""The transaction that a handler writes in through SQLAlchemy, kept from its commits, and from children left on it.

A rollback is let through: an ORM session does one whenever a flush fails. It costs the attempt and nothing else, so
nothing more may be done then: it would go to a transaction that nobody gave out. `RolledBack` is raised, and written
down as any failure is (`receiver.ledger.runs.failed_attempts`). A handler that tries to commit is told so, and gives up
by that, whatever it makes of the error: the next attempt would try the same.

The transaction is begun on the driver's connection before the handler is called: psycopg's `transaction()` makes a
savepoint of it then, and would commit otherwise. The run's end is written and committed in one round trip, which begins
the next run's transaction where one follows at once.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn

from psycopg import Connection as PsycopgConnection
from psycopg import Cursor
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row
from sqlalchemy import Connection, Engine

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.calls import handler_event_loop
from hookonce.jobs.attempts.driver_connection import DriverConnection, PooledConnection
from hookonce.jobs.attempts.driver_cursors import Effect, GivenCursor, GivenServerCursor, effect_of
from hookonce.jobs.attempts.ports import Attempt, Blocks, Transaction
from hookonce.jobs.attempts.time_limit import TimeLimit
from hookonce.jobs.handlers import ISOLATION_LEVELS, GiveUp
from hookonce.receiver.ledger.database import schema
from hookonce.receiver.ledger.entities import Entities

WAS_ROLLED_BACK = "the transaction was rolled back inside the handler"
ROLLED_BACK = (
    f"{WAS_ROLLED_BACK}; for an ORM session whose rollback is its own, name the second "
    "parameter session, as in def handler(event, session); on tx, use tx.begin_nested()"
)
CANCELLED = (
    "a statement was cancelled inside the handler, and its transaction with it; do not catch the cancellation"
)
REFUSED = "the transaction is hookonce's: return to commit it, raise to roll it back"
ENDED = "the attempt has ended, and what it was given with it; take a connection of your own"
ISOLATION_IS_DECLARED = (
    "the isolation of a handler's transaction can't be set inside it; declare it, "
    "as in @on(..., isolation='serializable')"
)

BLOCK_REFUSED = "the transaction is hookonce's: end the block to commit it, raise to roll it back"
BLOCK_ISOLATION = "the isolation of event.tx() can't be set; tx='none' gives READ COMMITTED"


class Texts(NamedTuple):
    """The refusals of what a handler may not do with its transaction, in words."""

    refused: str = REFUSED
    rolled_back: str = ROLLED_BACK
    isolation: str = ISOLATION_IS_DECLARED


OF_ATTEMPT = Texts()
OF_BLOCK = Texts(BLOCK_REFUSED, f"{WAS_ROLLED_BACK}; use tx.begin_nested()", BLOCK_ISOLATION)
"""The same for a block of `event.tx()`."""

_HOOKED = ("commit", "rollback", "wait", "guard")
"""Names that an attempt puts on the driver's connection, over its own."""


class CommitRefused(GiveUp, RuntimeError):  # noqa: N818  what happened
    """A handler tried to commit: nothing of what it wrote is there, and there is no further attempt."""


class RolledBack(Exception):  # noqa: N818  what was found
    """A handler's transaction is no longer the one it was given, and nothing that was written in that is there."""


class OverlongBlock(RuntimeError):  # noqa: N818  what was found
    """A transaction was open for longer than its lease allows, and its connection is gone."""


def require_at_rest(connection: PsycopgConnection[Any]) -> None:
    """Raise `RuntimeError` where a handler that has returned left its transaction aborted, or a statement under way."""
    status = connection.pgconn.transaction_status
    if status == TransactionStatus.INERROR:
        raise RuntimeError("the handler returned with its transaction aborted; let errors out")
    if status == TransactionStatus.ACTIVE:
        raise RuntimeError(
            "the handler returned with a statement under way; close its cursor, copy or pipeline"
        )


class StatementGuard:
    """Looks at each statement of a handler before it is sent: what would end the transaction is refused.

    A handler that was refused a commit gives up by that, whatever it makes of the error.
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.has_ended = False
        self.is_session_used_up = False
        """Whether something was prepared or deallocated, which nothing puts back."""
        self.is_session_ours = True
        """Whether nothing that was sent can have taken away what is prepared in the session."""
        self.may_have_prepared = False
        """Whether code that was called may have prepared something there, or deallocated it."""
        self.is_transaction_changed = False
        """Whether a transaction that is chained to this one would take something over."""
        self._is_rolled_back = False
        self._refused: CommitRefused | None = None

    def require_given(self) -> None:
        """Raise `RuntimeError` once the attempt has ended."""
        if self.has_ended:
            raise RuntimeError(ENDED)

    def look_at(self, statement: bytes) -> None:
        """Look at a statement before it is sent, whoever sends it. Raises what the handler is to be told."""
        effect = effect_of(statement)
        if effect is Effect.NONE:
            return
        if effect is Effect.COMMITS:
            self.refuse()
        if effect is Effect.ROLLS_BACK:
            self.refuse_end()
        if effect is Effect.SETS_ISOLATION:
            raise RuntimeError(self.texts.isolation)
        if effect is Effect.SETS_TRANSACTION:
            self.is_transaction_changed = True
            return
        self.may_have_prepared = True
        if effect is not Effect.MAY_PREPARE:
            self.is_session_ours = False
            self.is_session_used_up |= effect is Effect.USES_SESSION_UP

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise `CommitRefused`, and remember it; or `RuntimeError` behind a rollback."""
        if self._is_rolled_back:
            self.refuse_end()
        self._refused = CommitRefused(self.texts.refused)
        raise self._refused

    def refuse_end(self, *_: object, **__: object) -> NoReturn:
        """Raise `RuntimeError` for what would roll back, or for anything behind a rollback."""
        raise RuntimeError(self.texts.rolled_back if self._is_rolled_back else self.texts.refused)

    def require_no_commit(self) -> None:
        """Raise `CommitRefused` once more, if the handler has tried to commit."""
        if self._refused is not None:
            raise self._refused


class TransactionGuard(StatementGuard):
    """Keeps the handler in its block from committing the transaction it is given; savepoints work.

    What the handler sets up on the connection goes with the block, and what it keeps of it is closed then: the `owner`
    adopts the object that the connection goes on as.
    """

    def __init__(self, owner: AttemptConnection, *, texts: Texts = OF_ATTEMPT) -> None:
        super().__init__(texts)
        self._owner = owner
        self._connection, self.driver = owner.in_transaction()
        self.spare = owner.spare
        self.blocks = 0
        self.as_given: Callable[[DriverConnection], object] = lambda given: given
        """Makes of the driver's connection what the handler gets: for an `async def`, one whose methods are awaited."""
        self._transaction = self._connection.get_transaction()
        self._is_invalidated = False
        self._pooled: PooledConnection | None = None

    def __enter__(self) -> Connection:
        connection, driver = self._connection, self.driver
        self._options, self._engine = connection.get_execution_options(), connection.engine
        self._factories = driver.row_factory, driver.cursor_factory, driver.server_cursor_factory
        self.own_adapters = driver.adapters
        if driver.pgconn.transaction_status == TransactionStatus.IDLE:
            driver.execute("")
        driver.cursor_factory = GivenCursor
        driver.server_cursor_factory = GivenServerCursor
        refuse = self.refuse
        connection.__dict__.update(commit=refuse, rollback=self.refuse_end, close=self.refuse_end, guard=self)
        connection.engine = self._owner.engine_of_handlers
        connection.__class__ = _GivenConnection
        driver.__dict__.update(commit=refuse, rollback=self.roll_back, guard=self)
        return connection

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        connection, driver, owner = self._connection, self.driver, self._owner
        self.has_ended = True
        connection.__class__ = Connection
        kept, of_driver = connection.__dict__, driver.__dict__
        del kept["commit"], kept["rollback"], kept["close"], kept["guard"]
        for name in _HOOKED:
            of_driver.pop(name, None)
        driver.row_factory, driver.cursor_factory, driver.server_cursor_factory = self._factories
        driver._adapters = self.own_adapters  # noqa: SLF001  as in `driver_connection`
        self.spare.forget_result()
        self._is_invalidated = connection.invalidated
        if not self._is_invalidated:
            is_left_open = self.blocks or driver.pgconn.pipeline_status != PipelineStatus.OFF
            has_options = connection.get_execution_options() != self._options
            owner.is_session_changed |= self.is_session_used_up or bool(is_left_open) or has_options
            owner.is_transaction_changed |= self.is_transaction_changed or connection.in_nested_transaction()
            owner.is_session_ours, owner.may_have_prepared = self.is_session_ours, self.may_have_prepared
        owner.adopt(withdraw(connection, self._engine))
        if isinstance(error, Exception):
            self.require_no_commit()

    @property
    def pooled(self) -> PooledConnection:
        """The pooled connection by which a handler gets to the driver's."""
        if self._pooled is None:
            given = DriverConnection(self)
            self._pooled = PooledConnection(self, given, self.as_given(given))
        return self._pooled

    @property
    def given(self) -> object:
        """The driver's connection, as the handler has it."""
        return self.pooled.driver_connection

    def cursor(self) -> Cursor[Any]:
        """Return a cursor for statements of ours in the handler's transaction."""
        cursor = schema.cursor(self.driver, schema.of_cursors(self._factories[1]))
        cursor.row_factory = tuple_row
        return cursor

    def require_open(self) -> None:
        """Raise `CommitRefused` if the handler tried to commit, and `RolledBack` if it has ended its transaction.

        `RuntimeError`, where it has left that aborted, or a statement under way.
        """
        if self._refused is not None:
            raise self._refused
        if self._is_invalidated:
            raise RolledBack(CANCELLED)
        status = self.driver.pgconn.transaction_status
        if status == TransactionStatus.IDLE or not (self._transaction and self._transaction.is_active):
            raise RolledBack(self.texts.rolled_back)
        if status != TransactionStatus.INTRANS:
            require_at_rest(self.driver)

    def roll_back(self) -> None:
        """Roll back, for the handler or a session of its; from now on there is nothing to write to."""
        self.require_given()
        self._is_rolled_back = True
        self.driver.__dict__["rollback"] = _nothing
        type(self.driver).rollback(self.driver)
        self.driver.__dict__["wait"] = self.refuse


def withdraw(connection: Connection, engine: Engine) -> Connection:
    """Return another object for a connection of `engine` and its transaction; the one that others keep is closed.

    A holder of it, a thread that goes on or a callback, is told so, and can begin nothing on what is somebody else's
    by now. Listeners to the engine listen to it, and none that a handler has added. SQLAlchemy knows no such thing, so
    its private names stand here; what notices their change is `tests/jobs/attempts/test_kept_connections.py`, and
    `test_left_in_drivers.py` beside it.
    """
    kept = connection.__dict__
    fresh = Connection.__new__(Connection)
    fresh.__dict__.update(kept, engine=engine, _nested_transaction=None)
    if fresh.__dict__.pop("_has_events", False):
        del fresh.__dict__["dispatch"]
        fresh.dispatch = fresh.dispatch._join(fresh.engine.dispatch)  # noqa: SLF001  as its constructor does
    if (transaction := connection.get_transaction()) is not None:
        transaction.connection = fresh
    kept.update(
        _dbapi_connection=None, _transaction=None, _nested_transaction=None, _Connection__can_reconnect=False
    )
    return fresh


class _GivenConnection(Connection):
    """A connection while a handler has it."""

    @property
    def connection(self) -> Any:  # noqa: ANN401  what stands for the pool's
        """The connection of the pool, with the driver's own in it, as these are given out."""
        guard = self.__dict__.get("guard")
        return super().connection if guard is None else guard.pooled


def _nothing() -> None:
    """Roll back again."""


_ISOLATION = {level: f"SET TRANSACTION ISOLATION LEVEL {level}".encode() for level in ISOLATION_LEVELS}


def set_isolation(level: str) -> bytes:
    """Return the statement that gives a transaction its level, one of `ISOLATION_LEVELS`."""
    return _ISOLATION[level]


class HandlerTransactions:
    """The transactions of one executor, one after the other; itself the one that is open."""

    rolled_back = ROLLED_BACK
    shares_flushes = True
    event_loop = staticmethod(handler_event_loop)
    blocks: Blocks | None = None

    def __init__(self, connection: AttemptConnection) -> None:
        self.connection = connection
        self.end = connection.end
        self.require_open: Callable[[], None]
        self._guard: TransactionGuard

    def begin(self, attempt: Attempt) -> None:
        """Begin the transaction, if the end of the one before has not."""
        connection, isolation = self.connection, attempt.handler.isolation
        connection.begin_attempt(goes_on=not isolation)
        if isolation:
            connection.ledger.execute(set_isolation(isolation))
            connection.is_transaction_changed = True

    def open(self, attempt: Attempt, alarm: TimeLimit) -> AbstractContextManager[Transaction]:  # noqa: ARG002  the port's
        """Guard the transaction that was begun."""
        self._guard = TransactionGuard(self.connection)
        self.require_open = self._guard.require_open
        return nullcontext(self)

    def entities(self, given: Any) -> Entities:  # noqa: ANN401, ARG002  the port's
        """Return the entities, past the guard."""
        return Entities(self._guard.cursor())

    def lent(self) -> AbstractContextManager[object]:
        """Give the guarded connection out."""
        return self._guard

    @property
    def backend(self) -> int | None:
        """The backend of the connection."""
        return self.connection.backend

    def discard(self) -> None:
        """There is no other connection."""
