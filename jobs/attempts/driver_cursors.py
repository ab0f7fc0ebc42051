"""Cursors of psycopg whose statements all go out by the extended protocol, each looked at as the bytes that are sent.

psycopg takes the simple protocol where a statement has no values, and for every COPY: a text may hold several
statements there, and end the transaction by any of them. By the extended protocol a statement is one statement:
PostgreSQL refuses a second one, and whatever a function, a procedure, a DO block or a trigger would commit. So what
ends a transaction is COMMIT, END, ABORT, ROLLBACK (but to a savepoint) or PREPARE TRANSACTION, and nothing stands
before these words but blanks, semicolons and comments, as PostgreSQL's own scanner reads them: comments nest, and a
carriage return ends a `--` as well. A text whose first words are not sure counts as an end.

What is forced and what is read stands in two methods of psycopg's that have no public counterpart, `_convert_query` and
`_execute_send`; a third, `_start_query`, is the first that is called once a cursor has the connection's lock.
`test_cursor_of_any_class_is_forced_by_what_psycopg_still_calls` in `tests/jobs/attempts/test_driver_connection.py`
notices if psycopg no longer calls them.
"""

import re
import sys
from enum import Enum, auto
from functools import lru_cache
from typing import Any, NoReturn, Protocol

from psycopg import Connection, Cursor, ServerCursor
from psycopg.adapt import AdaptersMap

_BLANK = re.compile(rb"(?:[ \t\n\r\f\v]+|--[^\n\r]*)*")  # the vertical tab is one from PostgreSQL 16 on
_BLANK_OR_SEMICOLON = re.compile(rb"(?:[ \t\n\r\f\v;]+|--[^\n\r]*)*")
_COMMENT_EDGE = re.compile(rb"/\*|\*/")
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*")
_INSERTED_INTO = re.compile(rb"\binsert\s+into\s+[^\s(]+\s*\(", re.IGNORECASE)
_CALL = re.compile(
    rb"(?<![\w.])(?!(?:values|in|any|all|and|or|not|on|as|by|conflict|exists|filter|from|group|join|lateral|over|select|set"
    rb"|sets|some|using|when|where|with|do|update|then|else|case|returning|materialized)\b)[\w.\"]+\s*\(",
    re.IGNORECASE,
)
_READ_LENGTH = 4096
"""Bytes of a statement whose effect is remembered; longer ones are hardly ever sent twice."""


class Effect(Enum):
    """The effect of a statement on the transaction and the session that it is sent in."""

    NONE = auto()
    COMMITS = auto()
    """It ends the transaction, or may."""
    ROLLS_BACK = auto()
    SETS_ISOLATION = auto()
    SETS_TRANSACTION = auto()
    """It changes what a transaction that is chained to this one would take over."""
    USES_SESSION_UP = auto()
    """It prepares statements, or takes away what is prepared, which nothing puts back."""
    MAY_USE_SESSION_UP = auto()
    """It is code, which may do that as well."""
    MAY_PREPARE = auto()
    """It may call a function that does; triggers aside."""


_BY_WORDS = [
    (re.compile(rb"(?:%s)(?: |\Z)" % words), effect)
    for words, effect in (
        (rb"rollback(?: work| transaction)? to", Effect.NONE),
        (rb"commit|end|prepare transaction", Effect.COMMITS),
        (rb"rollback|abort", Effect.ROLLS_BACK),
        (rb"begin|start|set transaction", Effect.SETS_TRANSACTION),
        (rb"set(?: local| session)? transaction_isolation", Effect.SETS_ISOLATION),
        (rb"prepare|deallocate|discard", Effect.USES_SESSION_UP),
        (rb"do|call", Effect.MAY_USE_SESSION_UP),
    )
]


def effect_of(statement: bytes) -> Effect:
    """Return what a statement does, as far as its first words tell."""
    return _remembered(statement) if len(statement) <= _READ_LENGTH else _effect_of(statement)


def _effect_of(statement: bytes) -> Effect:
    words = None if b"\0" in statement else _first_words(statement)  # libpq sends what is before a NUL
    if words is None:
        return Effect.COMMITS
    found = next((effect for each, effect in _BY_WORDS if each.match(words)), Effect.NONE)
    if found is Effect.SETS_TRANSACTION and b"isolation" in statement.lower():
        return Effect.SETS_ISOLATION
    if found is not Effect.NONE or words.startswith((b"rollback", b"savepoint", b"release")):
        return found
    if words.startswith(b"set") and b"transaction_" in statement.lower():
        return Effect.SETS_TRANSACTION
    is_short = len(statement) <= _READ_LENGTH
    return Effect.MAY_PREPARE if not is_short or _CALL.search(_INSERTED_INTO.sub(b"", statement)) else found


def _first_words(statement: bytes) -> bytes | None:
    """Return up to three words that a statement begins with; None where a comment before one of them does not end."""
    words: list[bytes] = []
    at: int | None = _past_blanks(statement, 0, _BLANK_OR_SEMICOLON)
    while at is not None and (word := _WORD.match(statement, at)) and len(words) < 3:  # noqa: PLR2004  ROLLBACK WORK TO
        words.append(word[0].lower())
        at = _past_blanks(statement, word.end(), _BLANK)
    return None if at is None else b" ".join(words)


def _past_blanks(statement: bytes, at: int, blank: re.Pattern[bytes]) -> int | None:
    """Return where the next word would begin; None where a comment does not end."""
    while True:
        at = blank.match(statement, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        if not statement.startswith(b"/*", at):
            return at
        depth = 0
        for edge in _COMMENT_EDGE.finditer(statement, at):
            depth += 1 if edge[0] == b"/*" else -1
            if depth == 0:
                at = edge.end()
                break
        else:
            return None


_remembered = lru_cache(maxsize=512)(_effect_of)


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
