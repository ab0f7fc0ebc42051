"""Ends attempts that succeed, in their handlers' transactions; a worker whose lease was lost is fenced by its token.

A run's row of the queue goes, and its outcome is there. A worker that has lost the claim's token finds no row, and
`LeaseLost` is raised. Attempts that fail: `receiver.ledger.runs.failed_attempts`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import plans, schema, session_reset
from hookonce.receiver.ledger.database.round_trip import (
    PreparingConnection,
    Statement,
    encoding_of,
    failed_by,
    require,
    round_trip,
)
from hookonce.receiver.ledger.runs import claimed, marks
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.marks import Marked
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats.issues import Issue


class LeaseLost(claimed.LeaseLost):
    """The run is no longer ours: its lease ran out and somebody has taken it, or it was ended for us."""


_NO_EVENT = "{}.runs.event"
"""The column that an outcome without an event lacks."""
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
    """The runs of one attempt, one or a batch, that all ended as done, each with its result; `also` goes with that."""

    runs: Sequence[ClaimedRun]
    results: Sequence[AttemptResult]
    took: timedelta
    also: Also | None = None


def _ending(wanted: str, found: str, results: str, *others: str) -> str:
    """Write the statement that ends rows of the queue as done: all of them, or none.

    `found` says which these are, `wanted` how many, `results` what came of each. Each is ended only under our token,
    and only in the transaction `xact_id` of this session. An outcome without an event is what is left of a row that is
    not ours: it is refused (`_is_refused`), so that a COMMIT behind it in the pipeline does nothing. Advisory locks
    that a handler has left in the session go with the row.
    """
    return f"""
WITH gone AS (
    DELETE FROM hookonce.queue q {found} AND q.token = %(token)s
          AND (%(xact_id)s::text IS NULL OR %(xact_id)s::text::xid8 = pg_current_xact_id_if_assigned())
    RETURNING q.event, q.n, q.handler, q.cycle, q.attempts, q.received_at, pg_advisory_unlock_all()
){"".join(others)}
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at, result, sealed_result,
                           key_id)
SELECT gone.event, gone.handler, cycle, '{RunStatus.DONE}', attempts + 1, clock_timestamp() - %(took)s::interval,
       clock_timestamp(), {results} FROM {wanted}
"""  # noqa: S608  constants


_ONE = (
    "(VALUES (1)) AS one LEFT JOIN gone ON true",
    "WHERE q.event = %(event)s AND q.n = %(n)s",
    "%(result)s::text::json, %(sealed)s::bytea, %(key)s::text",
)
_END_ONE = _ending(*_ONE)
_LOGGED = """, logged AS (
    INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines, key_id)
    SELECT gone.event, handler, cycle, attempts + 1, received_at, {lines} FROM gone {of}
)"""
_END_LOGGED = _ending(*_ONE, _LOGGED.format(lines="%(logs)s::bytea, %(logs_key)s::text", of=""))
# The first event's row has the lines, and comes first (`receiver.ledger.queries.event_details`).
_MANY_LOGGED = _LOGGED.format(
    lines="logs, logs_key",
    of="""JOIN unnest(%(events)s::bigint[], %(places)s::smallint[], %(logs)s::bytea[], %(logs_keys)s::text[])
    AS l (of_event, of_n, logs, logs_key) ON gone.event = of_event AND gone.n = of_n
    WHERE logs IS NOT NULL ORDER BY gone.event""",
)
_MANY = (
    """unnest(%(events)s::bigint[], %(places)s::smallint[], %(results)s::text[], %(sealed)s::bytea[], %(keys)s::text[])
     AS t (event, n, result, sealed, key) LEFT JOIN gone ON gone.event = t.event AND gone.n = t.n""",
    """USING unnest(%(events)s::bigint[], %(places)s::smallint[]) AS t (event, n)
    WHERE q.event = t.event AND q.n = t.n""",
    "t.result::json, t.sealed, t.key",
)
_END_MANY_WITHIN = _ending(*_MANY, _MANY_LOGGED)
# With the batch's claim.
_END_MANY = _ending(
    *_MANY,
    _MANY_LOGGED,
    """, claim AS (
    DELETE FROM hookonce.claims WHERE token = %(token)s
)""",
)

# Of a source that keeps no bodies, with the end of the last run: what failed needs its body again. Ends of siblings
# take turns, and each sees in its next statement what those before it have committed.
_LOCK_EVENTS = "SELECT FROM hookonce.events WHERE id = ANY(%(unkept)s::bigint[]) ORDER BY id FOR UPDATE"
_DROP_BODIES = f"""
DELETE FROM hookonce.bodies b USING unnest(%(unkept)s::bigint[], %(times)s::timestamptz[]) AS t (event, received_at)
WHERE b.event = t.event AND b.received_at = t.received_at
      AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = t.event)
      AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = t.event AND r.is_last
                                                        AND r.status = '{RunStatus.DEAD}')
"""  # noqa: S608  constants


def end(  # noqa: PLR0913  the last five by keyword
    connection: psycopg.Connection[Any],
    ended: Ended,
    *,
    chain: bool = False,
    xact_id: str | None = None,
    is_session_ours: bool = True,
    asks_for_prepared: bool = False,
    waits_for_flush: bool = True,
) -> None:
    """End an attempt as done and commit, in one round trip.

    What the transaction holds besides is committed with it, and what a handler has left in the session is taken out
    before (`session_reset`); what can't be, and is found with `asks_for_prepared`, uses the session up. `chain` begins
    the next one in the same round trip. `is_session_ours`: no handler may have deallocated what is prepared in it.
    Without `waits_for_flush` a crash of the server may yet lose it, with all that the transaction has written.

    Raises `LeaseLost` if the run is no longer ours, or the transaction not the one that was marked, and what has
    failed at the end of the transaction; the caller must roll back.
    """
    statements = _statements(ended, xact_id, _END_MANY)
    sending = partial(_send, connection, runs=ended.runs, prepare=is_session_ours)
    first, asked_at = [*taking_out(connection)], None
    if asks_for_prepared:
        asked_at = len(first)
        first.append(session_reset.IS_ANYTHING_PREPARED)
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
    runs: Sequence[ClaimedRun],
    first: Sequence[bytes],
    prepare: bool,
    asked_at: int | None,
) -> None:
    """Send statements of an end. `asked_at`: which of `first` asks whether anything is prepared in the session."""
    results = round_trip(connection, statements, first=first, prepare=prepare)
    if results[-1].status == ExecStatus.FATAL_ERROR:
        is_lost = _is_refused(results[-1], connection)
        raise lost(runs) if is_lost else error_from_result(results[-1])
    if asked_at is not None and results[asked_at].get_value(0, 0) == b"t":
        use_up(connection)


_COMMIT: Statement = ("COMMIT", {})
_COMMIT_AND_CHAIN: Statement = ("COMMIT AND CHAIN", {})
FORGET_NUMBERS: Statement = ("DISCARD SEQUENCES", {})
"""Of rows of ours: the next handler of the session sees none of them by `lastval()`."""


def end_within(cursor: psycopg.Cursor[Any], ended: Ended, xact_id: str | None) -> None:
    """End an attempt as done in the transaction that a cursor is in, where another than hookonce is to commit it.

    The claim of a batch is forgotten later. Raises `LeaseLost` as `end` does.
    """
    try:
        for statement in _statements(ended, xact_id, _END_MANY_WITHIN):
            cursor.execute(*statement)
    except psycopg.errors.NotNullViolation as error:
        if error.pgresult is None or not _is_refused(error.pgresult, cursor.connection):
            raise
        raise lost(ended.runs) from None
    reach(_point(ended))


def _point(ended: Ended) -> str:
    return "batch.ended" if len(ended.runs) > 1 else "run.ended"


def taking_out(connection: psycopg.Connection[Any]) -> Sequence[bytes]:
    """Return what takes out of a session what a handler has left there; nothing where no handler can have had it."""
    if not isinstance(connection, PreparingConnection):
        return ()
    if encoding_of(connection) != "utf-8":  # what is sent behind them is to be in the usual one
        use_up(connection)
        for result in round_trip(connection, [], first=connection.reset.statements):
            require(result)
        return ()
    return connection.reset.statements


def use_up(connection: psycopg.Connection[Any]) -> None:
    """Note that a session holds what can't be taken out of it."""
    if isinstance(connection, PreparingConnection):
        connection.is_used_up = True


def _is_refused(result: PGresult, connection: psycopg.Connection[Any]) -> bool:
    """Return whether the end of a run that is not ours has failed."""
    fields = (DiagnosticField.SCHEMA_NAME, DiagnosticField.TABLE_NAME, DiagnosticField.COLUMN_NAME)
    return failed_by(result, psycopg.errors.NotNullViolation) and _NO_EVENT.format(
        schema.of(connection)
    ) == ".".join((result.error_field(field) or b"").decode(errors="replace") for field in fields)


def mark(cursor: psycopg.Cursor[Any], runs: Sequence[ClaimedRun]) -> str:
    """Mark an attempt in its handler's transaction; return the `xact_id` that its end is to be given.

    Raises `LeaseLost` if a run is no longer ours.
    """
    if (xact_id := marks.insert(cursor, Marked.of(runs))) is None:
        raise lost(runs, "this transaction may write nothing more")
    return xact_id


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


def _statements(ended: Ended, xact_id: str | None, many: str) -> list[Statement]:
    """Return the statements that end an attempt, with their values; `many` ends a batch."""
    runs = ended.runs
    ending = (many, _values_of_many(ended, xact_id)) if len(runs) > 1 else _end_of_one(ended, xact_id)
    statements = _with_bodies(runs, ending)
    if xact_id is not None:
        statements.append(marks.deletion(Marked.of(runs)))
    if any(result.logs is not None for result in ended.results):
        statements.append(FORGET_NUMBERS)
    return statements


def _end_of_one(ended: Ended, xact_id: str | None) -> Statement:
    (run,), (result,) = ended.runs, ended.results
    values = {
        "event": run.event.id,
        "n": run.n,
        "token": run.token,
        "result": _json(result.result),
        "sealed": result.sealed_result,
        "key": None if result.sealed_result is None else result.key_id,
        "took": ended.took,
        "xact_id": xact_id,
    }
    if result.logs is None:
        return _END_ONE, values
    return _END_LOGGED, values | {"logs": result.logs, "logs_key": result.logs_key}


def _values_of_many(ended: Ended, xact_id: str | None) -> dict[str, object]:
    return {
        **Marked.of(ended.runs).values,
        "results": [_json(each.result) for each in ended.results],
        "sealed": [each.sealed_result for each in ended.results],
        "keys": [each.key_id for each in ended.results],
        "logs": [each.logs for each in ended.results],
        "logs_keys": [each.logs_key for each in ended.results],
        "took": ended.took,
        "xact_id": xact_id,
    }


def _with_bodies(runs: Sequence[ClaimedRun], ending: Statement) -> list[Statement]:
    """Return what ends runs, with what drops the bodies that are not to be kept."""
    if all(run.event.keep_body for run in runs):
        return [ending]
    unkept = sorted((run.event.id, run.event.received_at) for run in runs if not run.event.keep_body)
    values = {"unkept": [event for event, _ in unkept], "times": [at for _, at in unkept]}
    return [(_LOCK_EVENTS, values), ending, (_DROP_BODIES, values)]


def _json(result: Any) -> str | None:  # noqa: ANN401  whatever the handler returned
    return None if result is None else json.dumps(result)
