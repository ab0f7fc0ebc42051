"""Cursors of psycopg whose statements all go out by the extended protocol, each looked at as the bytes that are sent.

psycopg takes the simple protocol where a statement has no values, and for every COPY: a text may hold several
statements there, and end the transaction by any of them. By the extended protocol PostgreSQL refuses a second one. What
is forced and what is read stands in two methods of psycopg's that have no public counterpart, `_convert_query` and
`_execute_send`; a third, `_start_query`, is the first that is called once a cursor has the connection's lock.
`test_cursor_of_any_class_is_forced_by_what_psycopg_still_calls` in `tests/jobs/attempts/test_driver_connection.py`
notices if psycopg no longer calls them.
"""

import sys
from typing import Any, NoReturn, Protocol

from psycopg import Connection, Cursor, ServerCursor
from psycopg.adapt import AdaptersMap

_PSYCOPG = "psycopg"
_KEPT_ROWS = 100
"""Rows of a result that is kept with its cursor for the next run."""


class Guard(Protocol):
    """The guard of a transaction, as cursors know it."""

    driver: "Connection[Any]"
    spare: "SpareCursor"
    has_ended: bool
    own_adapters: AdaptersMap
    """The adapters that the driver's connection has by itself."""
    blocks: int
    """Savepoints and pipelines that are open on the driver's connection."""

    @property
    def given(self) -> object:
        """The driver's connection, as the handler has it."""

    def require_given(self) -> None:
        """Raise `RuntimeError` once the attempt has ended."""

    def look_at(self, statement: bytes) -> None:
        """Look at a statement that is about to be sent. Raises what the handler is to be told."""

    def refuse(self, *_: object) -> NoReturn:
        """Raise what a handler is told that tries to commit."""

    def roll_back(self) -> None:
        """Roll back, after which there is nothing to write to."""


class GivenCursor(Cursor[Any]):
    """A cursor of the driver's while a handler has the connection, whether or not SQLAlchemy has made it.

    What it is given it sends as it is: the ledger's schema is put into our own statements only.
    """

    is_changed = False
    """Whether the handler may have given it adapters of its own."""

    def __init__(self, connection: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
        self.guard: Guard = connection.__dict__["guard"]
        super().__init__(connection, *args, **options)

    @property
    def connection(self) -> Any:  # noqa: ANN401  psycopg's, or what stands for it
        """The connection as the handler has it; psycopg itself asks for its own."""
        return self._conn if _asks_psycopg() else self.guard.given

    @property
    def adapters(self) -> Any:  # noqa: ANN401  psycopg's
        """Loaders and dumpers of this cursor."""
        if not _asks_psycopg():
            self.is_changed = True
        return super().adapters

    def _start_query(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  psycopg's
        # Now that it has the connection: a thread may have waited for it until the handler had returned.
        if self.guard.has_ended:
            self.guard.require_given()
        return super()._start_query(*args, **options)

    def _convert_query(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  psycopg's
        converted = super()._convert_query(*args, **options)
        self.guard.look_at(converted.query)
        return converted

    def _execute_send(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
        super()._execute_send(*args, **{**options, "force_extended": True})


class GivenServerCursor(GivenCursor, ServerCursor[Any]):
    """A cursor of the server's while a handler has the connection; closed with it, as what it reads from is gone."""

    @property
    def closed(self) -> bool:
        """Whether nothing more can be fetched: for whoever has kept it, too."""
        return self.guard.has_ended or super().closed


def given(kind: type[Cursor[Any]]) -> type[Cursor[Any]]:
    """Return a class of cursors, as one whose statements are looked at and go out by the extended protocol."""
    if kind not in _GIVEN:
        _GIVEN[kind] = type(kind.__name__, (GivenCursor, kind), {})
    return _GIVEN[kind]


_GIVEN: dict[type[Cursor[Any]], type[Cursor[Any]]] = {}


class SpareCursor:
    """One cursor that is used again where nobody holds it any more, which halves what a statement costs."""

    def __init__(self) -> None:
        self._spare: list[Any] = []  # none while it is in use: popped by one thread alone

    def take(self) -> Any:  # noqa: ANN401  a cursor
        """Return the cursor if nobody else holds it, else None."""
        try:
            cursor = self._spare.pop()
        except IndexError:
            return None
        return cursor if sys.getrefcount(cursor) <= _UNHELD else None

    def put(self, cursor: object) -> None:
        """Keep a cursor for the next statement, whoever holds it for now."""
        self._spare[:] = [cursor]

    def forget_result(self) -> None:
        """Let go of a cursor that somebody holds, or whose result is large."""
        cursor = self.take()
        if cursor is not None and not cursor.is_changed and cursor.rowcount <= _KEPT_ROWS:
            self._spare[:] = [cursor]

    def references(self) -> int:
        """Count as `take` does; the cursor goes."""
        cursor = self._spare.pop()
        return sys.getrefcount(cursor)


def _references_of_one_that_nobody_holds() -> int:
    spare = SpareCursor()
    spare.put(object())
    return spare.references()


_UNHELD = _references_of_one_that_nobody_holds()  # another number from Python 3.14 on


def _asks_psycopg() -> bool:
    """Return whether what asks for a property, two frames up, is psycopg itself."""
    asks: str = sys._getframe(2).f_globals.get("__name__", "")  # noqa: SLF001  documented, for CPython
    return asks.partition(".")[0] == _PSYCOPG
