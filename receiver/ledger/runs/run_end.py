"""Ends attempts: the run, what its event's state becomes, and the start of the next run, all with the handler's writes.

Whoever's lease ran out finds no row with its token: `LeaseLost`, and its writes roll back.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, LiteralString

import psycopg
from psycopg.pq.abc import PGresult

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import session_reset
from hookonce.receiver.ledger.database.round_trip import (
    PreparingConnection,
    Statement,
    failed_by,
    require,
    round_trip,
)
from hookonce.receiver.ledger.runs import claimed, event_status, marks
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.states import EventStatus, RunStatus


class LeaseLost(claimed.LeaseLost):
    """The run is no longer ours: its lease ran out and somebody has taken it, or it was ended for us."""


Also = Callable[[psycopg.Connection], None]


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended: `done` with a result, `waiting` for `delay`, or `dead`; `error` says why.

    `traceback` is sealed with the key `key_id`, unless that is None (`encryption.traceback_context`); so is
    `sealed_result`, which then stands for `result`. `counted` is
    False for an attempt that does not use one up (RetryLater). `also` is done in the transaction that ends it.
    `backoff`: of a run that is dead for want of attempts only, how long it waits if another worker gives it more.
    """

    status: RunStatus
    result: Any = None
    error: str | None = None
    delay: timedelta | None = None
    counted: bool = True
    traceback: bytes | None = field(default=None, repr=False)
    key_id: str | None = None
    also: Also | None = None
    sealed_result: bytes | None = field(default=None, repr=False)
    backoff: timedelta | None = None


def _end(event: str, run: str, *others: str) -> str:
    """Write a statement that ends one run and starts the next: what becomes of event and run, and what else is done.

    Each only if it is still ours, and only in the transaction `xact_id` of this session; it fails by dividing by zero
    if the first is not, so that a COMMIT behind it in the pipeline does nothing. A sole run's event is locked by
    following it at once; with siblings, LOCK comes before and DERIVE after, to see what others committed.
    """
    return f"""
WITH followed AS (
    UPDATE hookonce.events SET {event}, parked = NULL WHERE id = %(event)s AND %(is_sole)s
    RETURNING 1
), ended AS (
    UPDATE hookonce.runs SET {run}, token = NULL, lease_until = NULL
    WHERE event = %(event)s AND handler = %(handler)s AND token = %(token)s AND status = '{RunStatus.RUNNING}'
          AND (EXISTS (SELECT FROM followed) OR NOT %(is_sole)s)
          AND (%(xact_id)s::text IS NULL OR %(xact_id)s::text::xid8 = pg_current_xact_id_if_assigned())
    RETURNING cycle, attempts
), {"".join(others)} started AS (
    UPDATE hookonce.runs SET status = '{RunStatus.RUNNING}', attempts = attempts + 1, started_at = clock_timestamp(),
                    slot_at = NULL, beside = %(next_beside)s,
                    lease_until = clock_timestamp() + %(lease)s::interval,
                    due_at = clock_timestamp() + %(lease)s::interval
    WHERE event = %(next_event)s AND handler = %(next_handler)s AND token = %(next_token)s
          AND status = '{RunStatus.WAITING}'
    RETURNING 1
)
SELECT 1 / (SELECT count(*) FROM ended), (SELECT count(*) FROM started)
"""  # noqa: S608  constants


_END_DONE = _end(
    f"status = '{EventStatus.DONE}', due_at = NULL",
    f"""status = '{RunStatus.DONE}', due_at = NULL, finished_at = clock_timestamp(), result = %(result)s::text::json,
        sealed_result = %(sealed_result)s::bytea, key_id = %(result_key)s::text""",
)
_END_UNDONE = _end(
    "status = %(status)s, due_at = statement_timestamp() + %(delay)s::interval",
    f"""status = %(status)s, due_at = statement_timestamp() + %(delay)s::interval, attempts = attempts - %(refund)s,
        finished_at = CASE WHEN %(status)s <> '{RunStatus.WAITING}' THEN clock_timestamp() END,
        result = NULL, sealed_result = NULL, key_id = NULL""",
    """failed AS (
    INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback, key_id)
    SELECT %(event)s, %(handler)s, cycle, attempts + %(refund)s, %(error)s, %(traceback)s::bytea, %(key_id)s::text
    FROM ended WHERE %(error)s::text IS NOT NULL
),""",
)

# Of a source that keeps no bodies, in the transaction that ends the last run: what failed needs its body again.
_DROP_BODY = f"""
DELETE FROM hookonce.bodies b USING hookonce.events e
WHERE b.event = %s AND b.received_at = %s AND e.id = b.event AND e.status = '{EventStatus.DONE}'
"""  # noqa: S608  constants


def end(  # noqa: PLR0913  the last five by keyword
    connection: psycopg.Connection,
    run: ClaimedRun,
    ending: AttemptResult,
    following: ClaimedRun | None = None,
    *,
    chain: bool = False,
    xact_id: str | None = None,
    is_marked: bool = False,
    is_session_ours: bool = True,
    asks_for_prepared: bool = False,
) -> bool:
    """End an attempt, start the `following` run and commit, in one round trip; return whether that started.

    What the transaction holds besides is committed with it, and what a handler has left in the session is taken out
    before (`session_reset`); what can't be, and is found with `asks_for_prepared`, uses the session up. `chain` begins
    the next one in the same round trip. `is_session_ours`: no handler may have deallocated what is prepared in it.
    `is_marked`: the run's mark goes with its end, as it does where `xact_id` says which transaction was marked.
    Raises `LeaseLost` if the run is no longer ours, or the transaction not the one called `xact_id`; the caller
    must roll back.
    """
    commit = "COMMIT AND CHAIN" if chain else "COMMIT"
    resets = taking_out(connection, asks_for_prepared=asks_for_prepared)
    unmark = [(marks.DELETE_ONE, _key(run))] if xact_id is not None or is_marked else []
    ended = _ended(run, ending, following, xact_id)
    if run.is_sole and run.event.keep_body and ending.also is None:
        reach(_failpoint(ending))
        statements = [ended, *unmark, (commit, {})]
        results = round_trip(connection, statements, first=resets, prepare=is_session_ours)
        is_prepared, started = _read(results, run, len(resets))
    else:
        taken_out, row = _end_in_steps(
            connection, run, ending, resets=resets, statements=[ended, *unmark], commit=commit
        )
        is_prepared = bool(taken_out) and taken_out[-1].description is not None
        is_prepared = is_prepared and taken_out[-1].fetchone() == (True,)
        started = bool(row and row[1])
    if asks_for_prepared and is_prepared:
        use_up(connection)
    return started


def _end_in_steps(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection[Any],
    run: ClaimedRun,
    ending: AttemptResult,
    *,
    resets: Sequence[bytes],
    statements: Sequence[Statement],
    commit: str,
) -> tuple[Sequence[psycopg.Cursor[Any]], tuple[Any, ...] | None]:
    """End an attempt with what else belongs to it; return what came of the resets, and of the end."""
    taken_out: list[psycopg.Cursor[Any]] = []
    try:
        with connection.pipeline():
            taken_out += [connection.execute(statement) for statement in resets]
            if not run.is_sole:
                connection.execute(event_status.LOCK_EVENTS, [[run.event.id]], prepare=True)
            ended, *_ = [connection.execute(*statement, prepare=True) for statement in statements]
            if not run.is_sole:
                connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": [run.event.id]}, prepare=True)
            if not run.event.keep_body:
                connection.execute(_DROP_BODY, [run.event.id, run.event.received_at])
            if ending.also is not None:
                ending.also(connection)
            reach(_failpoint(ending))
            connection.execute(commit)
    except psycopg.errors.DivisionByZero:
        if is_theirs(taken_out, ended):
            raise
        raise lost(run) from None
    return taken_out, ended.fetchone()


def is_theirs(resets: Sequence[psycopg.Cursor[Any]], ended: psycopg.Cursor[Any]) -> bool:
    """Return whether an error is a deferred trigger's of the user's: at the resets, or at the COMMIT."""
    return ended.rowcount > 0 or any(each.statusmessage is None for each in resets)


def taking_out(connection: psycopg.Connection[Any], *, asks_for_prepared: bool = False) -> Sequence[bytes]:
    """Return what takes out of a session what a handler has left there; nothing where no handler can have had it.

    With `asks_for_prepared` the last one asks whether a handler has prepared anything there.
    """
    if not isinstance(connection, PreparingConnection):
        return ()
    if connection.info.encoding != "utf-8":  # what is sent behind them is to be in the usual one
        use_up(connection)
        for result in round_trip(connection, [], first=connection.reset.statements):
            require(result)
        return ()
    asked = (session_reset.IS_ANYTHING_PREPARED,) if asks_for_prepared else ()
    return (*connection.reset.statements, *asked)


def use_up(connection: psycopg.Connection[Any]) -> None:
    """Note that a session holds what can't be taken out of it."""
    if isinstance(connection, PreparingConnection):
        connection.is_used_up = True


def _read(results: Sequence[PGresult], run: ClaimedRun, resets: int) -> tuple[bool, bool]:
    """Read what came of the end of a run and of its commit: what the last reset told, and whether the next started."""
    for result in results[:resets]:
        require(result)
    ends = results[resets:]
    if failed_by(ends[0], psycopg.errors.DivisionByZero):
        raise lost(run)
    for result in ends:
        require(result)
    last = results[resets - 1] if resets else None
    return last is not None and last.get_value(0, 0) == b"t", ends[0].get_value(0, 1) == b"1"


def _failpoint(ending: AttemptResult) -> str:
    return "run.ended" if ending.status == RunStatus.DONE else "failure.ended"


def end_within(cursor: psycopg.Cursor[Any], run: ClaimedRun, ending: AttemptResult, xact_id: str) -> None:
    """End an attempt in the transaction that a cursor is in, where another than hookonce is to commit it.

    Raises `LeaseLost` as `end` does.
    """
    try:
        if not run.is_sole:
            cursor.execute(event_status.LOCK_EVENTS, [[run.event.id]])
        cursor.execute(*_ended(run, ending, None, xact_id))
        if not run.is_sole:
            cursor.execute(event_status.DERIVE_EVENT_STATUS, {"events": [run.event.id]})
        if not run.event.keep_body:
            cursor.execute(_DROP_BODY, [run.event.id, run.event.received_at])
        cursor.execute(marks.DELETE_ONE, _key(run))
    except psycopg.errors.DivisionByZero:
        raise lost(run) from None
    reach("run.ended")


def mark(cursor: psycopg.Cursor[Any], run: ClaimedRun) -> str:
    """Mark an attempt in its handler's transaction; return the `xact_id` that `end` is to be given.

    Raises `LeaseLost` if the run is no longer ours.
    """
    if (xact_id := marks.insert(cursor, marked(run))) is None:
        raise lost(run, "this transaction may write nothing more")
    return xact_id


def marked(run: ClaimedRun) -> marks.Marked:
    """Return what an attempt of a run marks."""
    return marks.Marked([run.event.id], run.handler, run.token)


def _key(run: ClaimedRun) -> dict[str, Any]:
    return {"event": run.event.id, "handler": run.handler, "token": run.token}


def lost(run: ClaimedRun, so: str = "this attempt's writes are rolled back") -> LeaseLost:
    """Return what is to be raised where a run is no longer ours; `so` says what that means here."""
    return LeaseLost(
        f"lease on event {run.event.id} (handler {run.handler}) ran out and another worker may have it; {so}"
    )


def _ended(
    run: ClaimedRun, ending: AttemptResult, following: ClaimedRun | None, xact_id: str | None
) -> tuple[LiteralString, dict[str, Any]]:
    """Return the statement that ends an attempt, and its values."""
    how: dict[str, Any]
    if ending.status == RunStatus.DONE:
        query = _END_DONE
        how = {
            "result": None if ending.result is None else json.dumps(ending.result),
            "sealed_result": ending.sealed_result,
            "result_key": None if ending.sealed_result is None else ending.key_id,
        }
    else:
        query = _END_UNDONE
        how = {
            "status": ending.status,
            "error": ending.error,
            "traceback": ending.traceback,
            "key_id": ending.key_id,
            "refund": 0 if ending.counted else 1,
            "delay": ending.delay,
        }
    return query, how | {
        "event": run.event.id,
        "handler": run.handler,
        "token": run.token,
        "xact_id": xact_id,
        "next_event": following.event.id if following else None,
        "next_handler": following.handler if following else None,
        "next_token": following.token if following else None,
        "next_beside": following.beside if following else False,
        "lease": following.lease if following else None,
        "is_sole": run.is_sole,
    }
