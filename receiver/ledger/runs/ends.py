"""Ends attempts that succeed, in their handlers' transactions; a worker whose lease was lost is fenced by its token.

A run's row of the queue goes, and its outcome is there. A worker that has lost the claim's token finds no row, and
`LeaseLost` is raised. Attempts that fail: `receiver.ledger.runs.failed_attempts`.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, NoReturn

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from hookonce.receiver.config.server_urls import USUAL_SCHEMA
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import functions, plans, schema, session_reset
from hookonce.receiver.ledger.database.round_trip import PreparingConnection, Statement, failed_by, round_trip
from hookonce.receiver.ledger.runs import claimed
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats.issues import Issue


class LeaseLost(claimed.LeaseLost):
    """The run is no longer ours: its lease ran out and somebody has taken it, or it was ended for us."""


class NotGuarded(Exception):  # noqa: N818  what was found
    """The transaction of an attempt is another than the one that was begun for it."""


Also = Callable[[psycopg.Connection], None]


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended: `done` with a result, `waiting` for `delay`, or `dead`; `error` says why.

    `traceback` is sealed with the key `key_id`, unless that is None (`encryption.traceback_context`); so is
    `sealed_result`, which then stands for `result`. `counted` is False for an attempt that does not use one up
    (RetryLater). `most`: how many attempts this worker gives, if it knows; a run that waits is dead instead once they
    are used up, unless another worker gives more. `waits`: what it waits for besides (`states.Waits`). `also` is done
    in the transaction that ends it. `logs` is what the handler wrote, sealed with `logs_key` as a traceback is. `issue`
    is what a failure is of; without it that is known by what `error` says, which quotes nothing of an event then.
    """

    status: RunStatus
    result: Any = None
    error: str | None = None
    delay: timedelta = timedelta(0)
    counted: bool = True
    traceback: bytes | None = field(default=None, repr=False)
    key_id: str | None = None
    also: Also | None = None
    sealed_result: bytes | None = field(default=None, repr=False)
    most: int | None = None
    waits: str | None = None
    logs: bytes | None = field(default=None, repr=False)
    logs_key: str | None = None
    issue: Issue | None = None


class Ended(NamedTuple):
    """The runs of one attempt, one or a batch, that all ended as done, each with its result; `also` goes with that.

    `limit`: how much time is left for what the handler has deferred to the end of its transaction.
    """

    runs: Sequence[ClaimedRun]
    results: Sequence[AttemptResult]
    took: timedelta
    also: Also | None = None
    limit: timedelta | None = None


class Waited(Exception):  # noqa: N818  what was found
    """The end of a transaction had to wait until the time of its attempt was up."""


def end(  # noqa: PLR0913  the last four by keyword
    connection: psycopg.Connection[Any],
    ended: Ended,
    *,
    chain: bool = False,
    is_session_ours: bool = True,
    asks_for_prepared: bool = False,
    waits_for_flush: bool = True,
) -> None:
    """End an attempt as done and commit, in one round trip.

    What the transaction holds besides is committed with it, and what a handler has left in the session is taken out
    before (`session_reset`); what can't be, and is found with `asks_for_prepared`, uses the session up. `chain` begins
    the next one in the same round trip. `is_session_ours`: no handler may have deallocated what is prepared in it.
    Without `waits_for_flush` a crash of the server may yet lose it, with all that the transaction has written.

    Raises `LeaseLost` if the run is no longer ours, and what has failed at the end of the transaction; the caller must
    roll back.
    """
    statements = _statements(ended)
    sending = partial(_send, connection, ended=ended, prepare=is_session_ours)
    first, asked_at = [*taking_out(connection, ended.limit)], None
    if asks_for_prepared:
        asked_at = len(first)
        first.append(asking(connection))
    if len(ended.runs) > 1:
        first.append(plans.FOR_END)
    else:
        first += plans.FOR_ONE_END if waits_for_flush else plans.FOR_UNFLUSHED_END
    if ended.also is not None:
        sending(statements, first=first, asked_at=asked_at)
        ended.also(connection)
        statements, first, asked_at = [FORGET_NUMBERS], [], None
    reach(_point(ended))
    sending([*statements, _COMMIT_AND_CHAIN if chain else _COMMIT], first=first, asked_at=asked_at)


def _send(  # noqa: PLR0913  the last four by keyword
    connection: psycopg.Connection[Any],
    statements: Sequence[Statement],
    *,
    ended: Ended,
    first: Sequence[bytes | Statement],
    prepare: bool,
    asked_at: int | None,
) -> None:
    """Send statements of an end. `asked_at`: which of `first` asks whether anything is prepared in the session."""
    results = round_trip(connection, statements, first=first, prepare=prepare)
    if results[-1].status == ExecStatus.FATAL_ERROR:
        if _is_refused(results[-1], connection):
            raise lost(ended.runs)
        raise_as_waited(error_from_result(results[-1]), ended.limit)
    if asked_at is not None and results[asked_at].get_value(0, 0) == b"t":
        use_up(connection)


_COMMIT: Statement = ("COMMIT", {})
_COMMIT_AND_CHAIN: Statement = ("COMMIT AND CHAIN", {})
_LOCK_UNKEPT = f"SELECT {functions.LOCK_UNKEPT}"
FORGET_NUMBERS: Statement = ("DISCARD SEQUENCES", {})
"""Of rows of ours: the next handler of the session sees none of them by `lastval()`."""


def end_within(cursor: psycopg.Cursor[Any], ended: Ended, *, by_function: bool = False) -> None:
    """End an attempt as done in the transaction that a cursor is in, where another than hookonce is to commit it.

    `by_function`: the cursor's role has no right on the ledger's tables, and the function takes the guard off as well.
    Raises `LeaseLost` as `end` does, and `NotGuarded`.
    """
    try:
        if not by_function and cursor.execute(functions.UNGUARD).rowcount != 1:
            raise NotGuarded
        for statement in _statements(ended, by_function=by_function):
            cursor.execute(*statement)
    except psycopg.errors.InvalidTransactionTermination:
        raise NotGuarded from None
    except psycopg.errors.NotNullViolation as error:
        if error.pgresult is None or not _is_refused(error.pgresult, cursor):
            raise
        raise lost(ended.runs) from None
    reach(_point(ended))


def _point(ended: Ended) -> str:
    return "batch.ended" if len(ended.runs) > 1 else "run.ended"


def taking_out(
    connection: psycopg.Connection[Any], limit: timedelta | None = None
) -> Sequence[bytes | Statement]:
    """Return what takes out of a session what a handler has left there; nothing where no handler can have had it.

    What the handler has deferred is done first, within `limit`.
    """
    if not isinstance(connection, PreparingConnection):
        return ()
    statements: list[bytes | Statement] = [*connection.reset.statements]
    if limit is not None:
        statements.insert(0, within(limit))
    if (
        connection.pgconn.parameter_status(b"client_encoding") != b"UTF8"
    ):  # what is sent behind them is to be in that
        use_up(connection)
        for result in round_trip(connection, [], first=statements):
            if result.status == ExecStatus.FATAL_ERROR:
                raise_as_waited(error_from_result(result), limit)
        return ()
    return statements


_LEAST = timedelta(seconds=1)
_WITHIN = (
    "SELECT set_config('lock_timeout', %(lock)s, true), set_config('statement_timeout', %(statement)s, true)"
)
_LOCKED_IN = re.compile(r'in relation "([^"]+)"')


def within(limit: timedelta) -> Statement:
    """Return what bounds the statements that follow in a transaction, until its settings are reset.

    A wait for a lock ends first, so that its error names what is locked.
    """
    milliseconds = max(limit, _LEAST) // timedelta(milliseconds=1)
    return _WITHIN, {"lock": str(milliseconds), "statement": str(milliseconds + 100)}


def raise_as_waited(error: BaseException, limit: timedelta | None) -> NoReturn:
    """Raise `Waited` for an error of the end that is its time limit's; any other as it is."""
    if limit is None or not isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
        raise error
    relation = _LOCKED_IN.search(error.diag.context or "")
    what = f"a lock in {relation[1]}" if relation else "a deferred constraint or trigger"
    raise Waited(
        f"the end of the transaction waited for {what} until the attempt's time was up; `hookonce doctor` names who "
        "waits for whom"
    ) from error


def asking(connection: psycopg.Connection[Any]) -> bytes:
    """Return what asks whether a session was used up: by a PREPARE, or by a DEALLOCATE of what was prepared in it."""
    is_pooled = connection.prepare_threshold is None
    return session_reset.IS_ANYTHING_PREPARED if is_pooled else session_reset.IS_ANYTHING_AMISS


def use_up(connection: psycopg.Connection[Any]) -> None:
    """Note that a session holds what can't be taken out of it."""
    if isinstance(connection, PreparingConnection):
        connection.is_used_up = True


def _is_refused(result: PGresult, sender: psycopg.Connection[Any] | psycopg.Cursor[Any]) -> bool:
    """Return whether the end of a run that is not ours has failed."""
    if not failed_by(result, psycopg.errors.NotNullViolation):
        return False
    place = schema.of(sender) if isinstance(sender, psycopg.Connection) else schema.of_cursors(sender)
    fields = (DiagnosticField.SCHEMA_NAME, DiagnosticField.TABLE_NAME, DiagnosticField.COLUMN_NAME)
    found = ".".join((result.error_field(field) or b"").decode(errors="replace") for field in fields)
    return found == functions.NO_EVENT.replace(USUAL_SCHEMA, place, 1)


def guard(cursor: psycopg.Cursor[Any], *, by_function: bool = False) -> str:
    """Have PostgreSQL refuse every COMMIT of the transaction before its attempt's end; return the transaction's id."""
    row = cursor.execute(functions.CALL_GUARD if by_function else functions.GUARD).fetchone()
    return str(row[0]) if row else ""


def lost(runs: Sequence[ClaimedRun], so: str = "this attempt's writes are rolled back") -> LeaseLost:
    """Return what is to be raised where runs are no longer ours; `so` says what that means here, for one by itself."""
    run = runs[0]
    if len(runs) > 1:
        return LeaseLost(
            f"the lease on a batch of {len(runs)} events (handler {run.handler}) ran out and another worker "
            "may have some of them; this batch's writes are rolled back"
        )
    return LeaseLost(
        f"lease on event {run.event.id} (handler {run.handler}) ran out and another worker may have it; {so}"
    )


def _statements(ended: Ended, *, by_function: bool = False) -> list[Statement]:
    """Return the statements that end an attempt, with their values."""
    runs, results = ended.runs, ended.results
    if not by_function and len(runs) == 1 and results[0].logs is None and runs[0].event.keep_body:
        return [(functions.END_ONE, _values_of_one(runs[0], results[0], ended.took))]
    has_logs = any(result.logs is not None for result in ended.results)
    statements: list[Statement]
    if by_function:
        statements = [(functions.CALL_END, _values_of_many(ended))]
    elif len(runs) == 1 and not has_logs:
        statements = [(functions.END_ONE, _values_of_one(runs[0], results[0], ended.took))]
    else:
        values = _values_of_many(ended)
        statements = [(functions.LOG, values)] if has_logs else []
        statements.append((functions.END_MANY, values))
    if not by_function and not all(run.event.keep_body for run in runs):
        rows = _rows(runs)
        statements = [(_LOCK_UNKEPT, rows), *statements, (functions.DROP_UNKEPT, rows)]
    if has_logs:
        statements.append(FORGET_NUMBERS)
    return statements


def _rows(runs: Sequence[ClaimedRun]) -> dict[str, object]:
    return {
        "events": [run.event.id for run in runs],
        "places": [run.n for run in runs],
        "token": runs[0].token,
    }


def _values_of_one(run: ClaimedRun, result: AttemptResult, took: timedelta) -> dict[str, object]:
    return {
        "event": run.event.id,
        "n": run.n,
        "token": run.token,
        "result": None if result.result is None else json.dumps(result.result),
        "sealed": result.sealed_result,
        "key": None if result.sealed_result is None else result.key_id,
        "took": took,
    }


def _values_of_many(ended: Ended) -> dict[str, object]:
    return {
        **_rows(ended.runs),
        "results": [None if each.result is None else json.dumps(each.result) for each in ended.results],
        "sealed": [each.sealed_result for each in ended.results],
        "keys": [None if each.sealed_result is None else each.key_id for each in ended.results],
        "logs": [each.logs for each in ended.results],
        "logs_keys": [each.logs_key for each in ended.results],
        "took": ended.took,
    }
