"""psycopg's connection as a handler has it: for COPY, pipelines and whatever SQLAlchemy lacks.

It stands before the driver's own connection, with what a handler may do in a transaction that is not its own: there is
no commit, no libpq, nothing that would outlast the attempt. A handler gets it where its second parameter is annotated
`psycopg.Connection`, and as `tx.connection.driver_connection` of SQLAlchemy's; it is the same connection.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format

from hookonce.jobs.attempts.driver_cursors import GivenCursor, GivenServerCursor, Guard

NOT_THERE = (
    "a handler's connection has no '{}': its transaction and its session are hookonce's; take a connection of your own "
    "for that"
)


class _Savepoint(psycopg.Transaction):
    """A savepoint that leads back to what the handler was given."""

    given: "DriverConnection"

    @property
    def connection(self) -> Any:  # noqa: ANN401  what stands for psycopg's
        return self.given


class _Info:
    """The parameters of a session, without libpq's connection."""

    def __init__(self, info: psycopg.ConnectionInfo) -> None:
        self._info = info

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  psycopg's
        if name == "pgconn":
            raise AttributeError(NOT_THERE.format(name))
        return getattr(self._info, name)


class DriverConnection:
    """A connection of psycopg's, inside the transaction of an attempt."""

    __slots__ = ("_driver", "_guard", "row_factory")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._driver = guard.driver
        self.row_factory = guard.driver.row_factory

    def execute(
        self,
        query: Any,  # noqa: ANN401  whatever psycopg takes
        params: Any = None,  # noqa: ANN401
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> psycopg.Cursor[Any]:
        """Execute a statement, and return a cursor with its result, which stays as it is for as long as it is held."""
        guard = self._guard
        guard.require_given()
        cursor: GivenCursor | None = guard.spare.take()
        if cursor is None or cursor.closed or cursor.is_changed:
            cursor = GivenCursor(self._driver, row_factory=self.row_factory)
        else:
            cursor.guard = guard
            cursor.arraysize, cursor.format = 1, Format.TEXT
            if cursor.row_factory is not self.row_factory:
                cursor.row_factory = self.row_factory
        if binary:
            cursor.format = Format.BINARY
        cursor.execute(query, params, prepare=prepare)
        if self._driver._adapters is guard.own_adapters:  # noqa: SLF001  else it has copied them, and would keep them
            guard.spare.put(cursor)
        return cursor

    def cursor(self, name: str = "", *, binary: bool = False, **options: Any) -> Any:  # noqa: ANN401  psycopg's
        """Return a cursor: `execute`, `executemany`, `copy`, `stream`; by a name, one of the server's."""
        self._guard.require_given()
        options["row_factory"] = options.get("row_factory") or self.row_factory
        made = (
            GivenServerCursor(self._driver, name=name, **options)
            if name
            else GivenCursor(self._driver, **options)
        )
        if binary:
            made.format = Format.BINARY
        return made

    @contextmanager
    def transaction(
        self,
        savepoint_name: str | None = None,
        force_rollback: bool = False,  # noqa: FBT001, FBT002  psycopg's
    ) -> Iterator[psycopg.Transaction]:
        """Put what follows in a savepoint."""
        with self._block(), self._driver.transaction(savepoint_name, force_rollback) as savepoint:
            savepoint.__class__ = _Savepoint
            savepoint.given = self  # type: ignore[attr-defined]  # of the class that it has by now
            yield savepoint

    @contextmanager
    def pipeline(self) -> Iterator[psycopg.Pipeline]:
        """Send what follows without waiting for each result."""
        with self._block(), self._driver.pipeline() as pipeline:
            yield pipeline

    @contextmanager
    def _block(self) -> Iterator[None]:
        """Count a block as long as it is open: one that outlives the attempt costs the session."""
        guard = self._guard
        guard.require_given()
        guard.blocks += 1
        try:
            yield
        finally:
            guard.blocks -= 1

    @property
    def adapters(self) -> AdaptersMap:
        """Loaders and dumpers that a handler registers, for its attempt alone."""
        guard, driver = self._guard, self._driver
        guard.require_given()
        # What psycopg's own property returns; a handler's cursors have it so.
        if driver._adapters is guard.own_adapters:  # noqa: SLF001
            driver._adapters = AdaptersMap(driver.adapters)  # noqa: SLF001
            guard.spare.take()
        return driver.adapters

    @property
    def info(self) -> Any:  # noqa: ANN401  as psycopg's
        """The parameters of the session."""
        return _Info(self._driver.info)

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._guard.has_ended or self._driver.closed

    @property
    def broken(self) -> bool:
        """Whether the connection was lost."""
        return self._driver.broken

    @property
    def autocommit(self) -> bool:
        """False: all is one transaction."""
        return False

    @autocommit.setter
    def autocommit(self, _: bool) -> NoReturn:
        self._guard.refuse()

    def rollback(self) -> None:
        """Roll the attempt back, which fails it."""
        self._guard.require_given()
        self._guard.roll_back()

    def commit(self) -> None:
        """Raise: returning commits."""
        self._guard.refuse()

    close = __enter__ = commit

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(NOT_THERE.format(name))


class PooledConnection:
    """SQLAlchemy's `Connection.connection` for a handler: it leads to the driver's connection as that is given out."""

    def __init__(self, guard: Guard, given: DriverConnection, driver_connection: object) -> None:
        self.driver_connection = driver_connection
        self.dbapi_connection = given
        self.info: dict[str, object] = {}
        self.record_info = self.info
        self.is_valid = True
        self.commit: Callable[[], None] = guard.refuse
        self.rollback: Callable[[], None] = guard.roll_back
        self.cursor = given.cursor

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the driver's has
        return getattr(self.dbapi_connection, name)


def call(function: Callable[..., object], event: object, connection: Any) -> object:  # noqa: ANN401  SQLAlchemy's
    """Call a handler with psycopg's connection in the place of SQLAlchemy's."""
    return function(event, connection.connection.driver_connection)
