"""Several statements in one round trip, for the one place where psycopg's own pipeline costs too much; and flushes.

Ending a run is done once for every event. psycopg's cursors and pipeline take 95 µs of a worker's time for it, the same
libpq calls by themselves 35 (docs/decisions/0029). Values go as text, and PostgreSQL infers their types, so a
statement is prepared once for a connection, whatever it is given. What was committed without waiting for the disk
(`synchronous_commit = off`) is made durable by another commit.
"""

import itertools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from hookonce.receiver.ledger.database import schema
from hookonce.receiver.ledger.database.pinned import PIN, PinnedConnection
from hookonce.receiver.ledger.database.plans import BEGIN
from hookonce.receiver.ledger.database.session_reset import SessionReset

log = logging.getLogger(__name__)

Statement = tuple[str, Mapping[str, object]]
"""A statement with named placeholders, as psycopg has them, and its values."""

_Parameters = Sequence[bytes | None] | None

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_MICROSECOND = timedelta(microseconds=1)
_IS_TOLD = hasattr(psycopg.Connection, "_deallocate")
"""Whether this psycopg lets us know when it gives up what is prepared; if not, nothing is prepared here."""


def hear_crashes(connection: psycopg.Connection[Any]) -> None:
    """Have a connection remember, for `is_crash_of_others`, that its server ends it since another session crashed."""

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.sqlstate == psycopg.errors.CrashShutdown.sqlstate:
            connection.__dict__["ended_by_crash"] = True

    connection.add_notice_handler(hear)


def is_crash_of_others(connection: psycopg.Connection[Any]) -> bool:
    """Return whether another session's crash has ended a connection; that one itself hears nothing."""
    return "ended_by_crash" in connection.__dict__


class PreparingConnection(PinnedConnection):
    """A connection that remembers what `round_trip` has prepared on it.

    psycopg deallocates all that is prepared in the session after a rollback, a DROP or an ALTER, ours included.
    """

    is_betrayed = False
    """Set for the whole process once somebody else was found to have deallocated what was prepared."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  psycopg's
        super().__init__(*args, **options)
        self.prepared: dict[bytes, bytes] = {}
        self.numbers = itertools.count()
        self.reset = SessionReset()
        self.is_used_up = False
        """Whether a handler has left what can't be taken out: nobody else may get the session."""
        hear_crashes(self)

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        if name is None:
            self.prepared.clear()
        return super()._deallocate(name)


def round_trip(
    connection: psycopg.Connection[Any],
    statements: Sequence[Statement],
    *,
    first: Sequence[bytes | Statement] = (),
    prepare: bool = True,
) -> list[PGresult]:
    """Send statements and wait for their results: one for each, up to the first that has failed (`require`).

    `first`: those that go before these, some of them without values; their results are first, too. All go to the
    transaction that is open; as psycopg does, one is begun where there is none. They are prepared, and found prepared
    the next time, on a `PreparingConnection` that `prepare` vouches for: nobody but psycopg has deallocated anything
    there. Raises:
    `psycopg.OperationalError` when the server is gone; what was sent may then have been done.
    """
    preparing = _of_prepared(connection) if prepare else None
    new: dict[bytes, bytes] = {}
    place = schema.of(connection)
    encoding = encoding_of(connection)
    wanted = [
        (each, None) if isinstance(each, bytes) else _wanted(place, encoding, *each)
        for each in (*first, *statements)
    ]
    pgconn = connection.pgconn
    is_idle = pgconn.transaction_status == TransactionStatus.IDLE
    begin = _begin(connection) if is_idle and not connection.autocommit else ()
    with connection.lock:
        pgconn.enter_pipeline_mode()
        try:
            for text in begin:
                pgconn.send_query_params(text, None)
            _send(pgconn, wanted, preparing, new)
            pgconn.pipeline_sync()
            if pgconn.flush():
                connection.wait(_sent(pgconn))
            results: list[PGresult] = connection.wait(_results(pgconn))
        finally:
            _leave_pipeline(pgconn)
    if preparing is not None and (new or not results or results[-1].status == ExecStatus.FATAL_ERROR):
        _remember(preparing, new, results)
    if new:  # what has only been prepared has no status of its command
        results = [
            result for result in results if result.status != ExecStatus.COMMAND_OK or result.command_status
        ]
    for _ in begin:
        require(results.pop(0))
    return results


def _begin(connection: psycopg.Connection[Any]) -> Sequence[bytes]:
    """Return what begins a transaction."""
    return (BEGIN.encode(), PIN.encode()) if connection.prepare_threshold is None else (BEGIN.encode(),)


def _of_prepared(connection: psycopg.Connection[Any]) -> PreparingConnection | None:
    """Return the connection if statements may be prepared on it."""
    prepares = _IS_TOLD and not PreparingConnection.is_betrayed
    prepares &= connection.prepare_threshold is not None
    return connection if prepares and isinstance(connection, PreparingConnection) else None


def _send(
    pgconn: PGconn,
    wanted: Sequence[tuple[bytes, _Parameters]],
    preparing: PreparingConnection | None,
    new: dict[bytes, bytes],
) -> None:
    """Send statements, each prepared by its name where they may be; those prepared just now are in `new`."""
    for text, parameters in wanted:
        if preparing is None:
            pgconn.send_query_params(text, parameters)
            continue
        if (name := preparing.prepared.get(text) or new.get(text)) is None:
            name = new[text] = b"hookonce_%d" % next(preparing.numbers)
            pgconn.send_prepare(name, text)
        pgconn.send_query_prepared(name, parameters)


def encoding_of(connection: psycopg.Connection[Any]) -> str:
    """Return the encoding of a session, as Python calls it; a handler may have changed it."""
    is_usual = connection.pgconn.parameter_status(b"client_encoding") == b"UTF8"
    return "utf-8" if is_usual else connection.info.encoding


def _leave_pipeline(pgconn: PGconn) -> None:
    """Leave the pipeline; one that was cut in the midst stays in it: whoever uses it next finds it unusable."""
    with suppress(psycopg.OperationalError):
        if pgconn.status != ConnStatus.BAD:
            pgconn.exit_pipeline_mode()


def _remember(
    connection: PreparingConnection, new: Mapping[bytes, bytes], results: Sequence[PGresult]
) -> None:
    """Remember what was prepared; where somebody has deallocated it, prepare nothing more."""
    if not results or results[-1].status != ExecStatus.FATAL_ERROR:  # nothing is done behind what fails
        connection.prepared |= new
    elif failed_by(results[-1], psycopg.errors.InvalidSqlStatementName):
        connection.prepared.clear()
        PreparingConnection.is_betrayed = True
        log.warning(
            "a handler has deallocated what was prepared in its session; nothing is prepared any more"
        )


def _wanted(place: str, encoding: str, query: str, values: Mapping[str, object]) -> tuple[bytes, _Parameters]:
    """Return a statement and its values as they are sent."""
    text, names = _numbered(query, place)
    if not names:
        return text, None
    parameters: list[bytes | None] = []
    for name in names:
        value = values[name]
        if type(value) is int:  # most of what ends a run
            parameters.append(b"%d" % value)
        else:
            parameters.append(None if value is None else _as_text(value, encoding))
    return text, parameters


def require(result: PGresult) -> PGresult:
    """Return a result. Raises: the `psycopg.Error` that it stands for."""
    if result.status == ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result)
    return result


def failed_by(result: PGresult, error: type[psycopg.Error]) -> bool:
    """Return whether a statement has failed by this error."""
    return result.error_field(DiagnosticField.SQLSTATE) == (error.sqlstate or "").encode()


def _list_as_text(values: Sequence[object], encoding: str) -> bytes:
    """Return an array as PostgreSQL reads it."""
    found = [_as_text(value, encoding) for value in values]
    quoted = (
        b"NULL" if each is None else b'"' + each.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
        for each in found
    )
    return b"{" + b",".join(quoted) + b"}"


def _sent(pgconn: PGconn) -> PQGen[None]:
    """Wait until all is on its way; what comes meanwhile is taken, or both sides would wait for each other."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()


def _results(pgconn: PGconn) -> PQGen[list[PGresult]]:
    """Collect what comes until the end of the pipeline."""
    results: list[PGresult] = []
    has_ended = False
    is_busy, get_result = pgconn.is_busy, pgconn.get_result
    while True:
        while is_busy():
            yield Wait.R
            pgconn.consume_input()
        result = get_result()
        if result is None:  # the end of one statement's
            is_over = has_ended and pgconn.status == ConnStatus.BAD
            has_ended = True
            if is_over:
                raise psycopg.OperationalError(
                    "the connection to the ledger broke in the midst of a statement"
                )
            continue
        has_ended = False
        status = result.status
        if status == ExecStatus.PIPELINE_SYNC:
            return results
        if status != ExecStatus.PIPELINE_ABORTED:
            results.append(result)


@lru_cache(maxsize=128)
def _numbered(query: str, place: str) -> tuple[bytes, Sequence[str]]:
    """Return a statement as libpq has it, with `$1`, and the names of its placeholders in order."""
    names = list(dict.fromkeys(_PLACEHOLDER.findall(query)))
    text = _PLACEHOLDER.sub(lambda found: f"${names.index(found[1]) + 1}", schema.named(query, place))
    return text.encode(), names


def _as_text(value: object, encoding: str) -> bytes | None:
    """Return a value as PostgreSQL reads it, in an encoding as Python calls it.

    Raises: KeyError for a type that is not known here; `psycopg.DataError` or UnicodeEncodeError for text that it
    can't hold.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if "\0" in value:  # libpq would send what is before it
            raise psycopg.DataError("a text with a NUL can't be stored")
        return value.encode(encoding)
    if isinstance(value, list):
        return _list_as_text(value, encoding)
    return _AS_TEXT[type(value)](value).encode()


# No lambdas where there is a type's own: each end of a run sends a few of these.
_AS_TEXT: Mapping[type, Callable[[Any], str]] = {
    bool: str,
    int: str,
    bytes: lambda value: "\\x" + value.hex(),
    UUID: str,
    datetime: datetime.isoformat,
    # One number of microseconds would be too large for PostgreSQL 14.
    timedelta: lambda value: f"{value.total_seconds():.6f} seconds",
}


# A commit that has written to the log waits for all that was written before.
_FLUSH = "SELECT pg_logical_emit_message(true, 'hookonce', '')"
_USUAL = "SELECT current_setting('synchronous_commit') = 'on'"


def can_flush(connection: psycopg.Connection[Any]) -> bool:
    """Return whether commits may go unflushed, and be flushed on this connection; committed.

    Not behind a pooler, whose next server knows nothing of a crash of the last, and not where the role or the server
    asks for other than the usual.
    """
    if connection.prepare_threshold is None:
        return False
    with connection.transaction():
        row = connection.execute(_USUAL).fetchone()
    flush(connection)
    return row == (True,)


def flush(connection: psycopg.Connection[Any]) -> None:
    """Make durable what was committed before, by anybody. Raises: `psycopg.Error`."""
    for result in round_trip(connection, [(_FLUSH, {}), ("COMMIT", {})]):
        require(result)
