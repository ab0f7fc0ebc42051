"""Ends attempts. One that succeeds ends in its handler's transaction: its row of the queue goes, its outcome is there.

One that fails ends in a transaction of its own, after the rollback: it waits for its next attempt, or is dead. Both
only under the claim's token: whoever has lost that finds no row, and `LeaseLost` is raised.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg.pq.abc import PGresult

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import session_reset
from hookonce.receiver.ledger.database.arrays import array
from hookonce.receiver.ledger.database.flushing import UNFLUSHED
from hookonce.receiver.ledger.database.round_trip import (
    PreparingConnection,
    Statement,
    failed_by,
    require,
    round_trip,
)
from hookonce.receiver.ledger.handlers import MOST_ANNOUNCED
from hookonce.receiver.ledger.runs import claimed, marks
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.clock import PUT_OFF_NOW
from hookonce.receiver.ledger.states import RunStatus


class LeaseLost(claimed.LeaseLost):
    """The run is no longer ours: its lease ran out and somebody has taken it, or it was ended for us."""


Also = Callable[[psycopg.Connection], None]


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended: `done` with a result, `waiting` for `delay`, or `dead`; `error` says why.

    `traceback` is sealed with the key `key_id`, unless that is None (`encryption.traceback_context`); so is
    `sealed_result`, which then stands for `result`. `counted` is False for an attempt that does not use one up
    (RetryLater). `most`: how many attempts this worker gives, if it knows; a run that waits is dead instead once they
    are used up, unless another worker gives more. `waits`: what it waits for besides (`states.Waits`). `also` is done
    in the transaction that ends it.
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


def _ending(found: str, result: str, *others: str) -> str:
    """Write the statement that ends rows of the queue as done: all of them, or none.

    `found` says which these are, `result` what came of each. Each only under our token, and only in the transaction
    `xact_id` of this session; it fails by dividing by zero if one is not ours, so that a COMMIT behind it in the
    pipeline does nothing. Advisory locks that a handler has left in the session go with it.
    """
    return f"""
WITH gone AS (
    DELETE FROM hookonce.queue q {found} AND q.token = %(token)s
          AND (%(xact_id)s::text IS NULL OR %(xact_id)s::text::xid8 = pg_current_xact_id_if_assigned())
    RETURNING q.event, q.handler, q.cycle, q.attempts, {result}
), {"".join(others)} ended AS (
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at, result, sealed_result,
                               key_id)
    SELECT event, handler, cycle, '{RunStatus.DONE}', attempts + 1, clock_timestamp() - %(took)s::interval,
           clock_timestamp(), result, sealed, key FROM gone
)
SELECT 1 / ((SELECT count(*) FROM gone) = %(count)s)::int, pg_advisory_unlock_all()
"""  # noqa: S608  constants


_END_ONE = _ending(
    "WHERE q.event = %(event)s AND q.n = %(n)s",
    "%(result)s::text::json AS result, %(sealed_result)s::bytea AS sealed, %(key)s::text AS key",
)
# With the batch's claim, and what it counts for.
_END_MANY = _ending(
    """USING unnest(%(events)b::bigint[], %(places)b::smallint[], %(results)b::text[], %(sealed)b::bytea[],
                  %(keys)b::text[]) AS t (event, n, result, sealed, key)
    WHERE q.event = t.event AND q.n = t.n""",
    "t.result::json AS result, t.sealed, t.key",
    """claim AS (
    DELETE FROM hookonce.claims WHERE token = %(token)s
), counted AS (
    INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings)
    VALUES (%(handler)s, 1, %(count)s, 0)
    ON CONFLICT (handler) DO UPDATE SET batches = c.batches + 1, events = c.events + excluded.events
),""",
)

# Of a source that keeps no bodies, with the end of the last run: what failed needs its body again. Ends of siblings
# take turns, and each sees in its next statement what those before it have committed.
_LOCK_EVENTS = "SELECT FROM hookonce.events WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
_DROP_BODIES = f"""
DELETE FROM hookonce.bodies b USING unnest(%s::bigint[], %s::timestamptz[]) AS t (event, received_at)
WHERE b.event = t.event AND b.received_at = t.received_at
      AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = t.event)
      AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = t.event AND r.is_last
                                                        AND r.status = '{RunStatus.DEAD}')
"""  # noqa: S608  constants

_FAIL = f"""
WITH mine AS MATERIALIZED (
    SELECT q.event, q.n, q.handler, q.cycle, q.attempts, t.*
    FROM hookonce.queue q JOIN unnest(%(events)s::bigint[], %(places)s::smallint[], %(statuses)s::text[],
        %(counted)s::bool[], %(most)s::int[], %(delays)s::interval[], %(waits)s::text[], %(errors)s::text[],
        %(tracebacks)s::bytea[], %(keys)s::text[])
        AS t (of_event, of_n, status, counted, most, delay, waits, error, traceback, key)
        ON q.event = t.of_event AND q.n = t.of_n
    WHERE q.token = %(token)s ORDER BY q.event, q.n FOR UPDATE OF q
), verdict AS MATERIALIZED (
    SELECT mine.*, mine.attempts + counted::int AS used,
           status = '{RunStatus.DEAD}' OR coalesce(counted AND mine.attempts + 1 >=
               greatest(most, {MOST_ANNOUNCED.format(handler="mine.handler")}), false) AS is_dead
    FROM mine
), buried AS (
    DELETE FROM hookonce.queue q USING verdict v WHERE q.event = v.event AND q.n = v.n AND v.is_dead
), ended AS (
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at)
    SELECT event, handler, cycle, '{RunStatus.DEAD}', used, clock_timestamp() - %(took)s::interval, clock_timestamp()
    FROM verdict WHERE is_dead
), put_off AS (
    UPDATE hookonce.queue q SET token = NULL, attempts = v.used, due_at = clock_timestamp() + v.delay, waits = v.waits,
                                slot_at = NULL, schedule = CASE WHEN v.error IS NULL THEN {PUT_OFF_NOW} END
    FROM verdict v WHERE q.event = v.event AND q.n = v.n AND NOT v.is_dead
), failed AS (
    INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback, key_id)
    SELECT event, handler, cycle, attempts + 1, error, traceback, key FROM verdict WHERE error IS NOT NULL
    ORDER BY event, n
)
SELECT event, n, is_dead FROM verdict
"""  # noqa: S608  constants


class Place(NamedTuple):
    """A row of the queue."""

    event: int
    n: int


def end(  # noqa: PLR0913  the last six by keyword
    connection: psycopg.Connection,
    run: ClaimedRun,
    ending: AttemptResult,
    took: timedelta,
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
    Raises `LeaseLost` if the run is no longer ours, or the transaction not the one called `xact_id`; the caller
    must roll back.
    """
    commit = "COMMIT AND CHAIN" if chain else "COMMIT"
    resets = taking_out(connection, asks_for_prepared=asks_for_prepared)
    if not waits_for_flush:
        resets = (UNFLUSHED, *resets) if asks_for_prepared else (*resets, UNFLUSHED)
    statements = [_ended(run, ending, took, xact_id)]
    statements += [(marks.DELETE_ONE, run.key._asdict())] if xact_id is not None else []
    if run.event.keep_body and ending.also is None:
        reach("run.ended")
        results = round_trip(connection, [*statements, (commit, {})], first=resets, prepare=is_session_ours)
        is_prepared = _read(results, run, len(resets))
    else:
        is_prepared = _end_in_steps(
            connection, run, ending, resets=resets, statements=statements, commit=commit
        )
    if asks_for_prepared and is_prepared:
        use_up(connection)


def _end_in_steps(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection[Any],
    run: ClaimedRun,
    ending: AttemptResult,
    *,
    resets: Sequence[bytes],
    statements: Sequence[Statement],
    commit: str,
) -> bool:
    """End an attempt with what else belongs to it; return whether the last of the resets has said yes."""
    taken_out: list[psycopg.Cursor[Any]] = []
    try:
        with connection.pipeline():
            taken_out += [connection.execute(statement) for statement in resets]
            if not run.event.keep_body:
                connection.execute(_LOCK_EVENTS, [[run.event.id]], prepare=True)
            ended, *_ = [connection.execute(*statement, prepare=True) for statement in statements]
            if not run.event.keep_body:
                connection.execute(_DROP_BODIES, [[run.event.id], [run.event.received_at]])
            if ending.also is not None:
                ending.also(connection)
            reach("run.ended")
            connection.execute(commit)
    except psycopg.errors.DivisionByZero:
        if is_theirs(taken_out, ended):
            raise
        raise lost(run) from None
    return _says_yes(taken_out)


def _says_yes(resets: Sequence[psycopg.Cursor[Any]]) -> bool:
    return bool(resets) and resets[-1].description is not None and resets[-1].fetchone() == (True,)


def end_many(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    runs: Sequence[ClaimedRun],
    endings: Sequence[AttemptResult],
    took: timedelta,
    *,
    also: Also | None = None,
    xact_id: str | None = None,
    asks_for_prepared: bool = False,
) -> None:
    """End all runs of a batch as done, each with its result, and commit; as `end` does it.

    Raises `LeaseLost` if one of them is no longer ours; the caller must roll back.
    """
    values = {
        "handler": runs[0].handler,
        "token": runs[0].token,
        **_places(runs),
        "results": array("text", [_json(each.result) for each in endings]),
        "sealed": array("bytea", [each.sealed_result for each in endings]),
        "keys": array("text", [each.key_id for each in endings]),
        "count": len(runs),
        "took": took,
        "xact_id": xact_id,
    }
    unkept = sorted((run.event.id, run.event.received_at) for run in runs if not run.event.keep_body)
    events, times = [event for event, _ in unkept], [at for _, at in unkept]
    taken_out: list[psycopg.Cursor[Any]] = []
    try:
        with connection.pipeline():
            resets = taking_out(connection, asks_for_prepared=asks_for_prepared)
            taken_out += [connection.execute(statement) for statement in resets]
            if unkept:
                connection.execute(_LOCK_EVENTS, [events])
            ended = connection.execute(_END_MANY, values, prepare=True)
            if unkept:
                connection.execute(_DROP_BODIES, [events, times])
            if xact_id is not None:
                marks.delete(connection, marks.Marked.of_batch(runs))
            if also is not None:
                also(connection)
            reach("batch.ended")
            connection.execute("COMMIT")
    except psycopg.errors.DivisionByZero:
        if is_theirs(taken_out, ended):
            raise
        raise lost_batch(runs) from None
    if asks_for_prepared and _says_yes(taken_out):
        use_up(connection)


def end_within(
    cursor: psycopg.Cursor[Any], run: ClaimedRun, ending: AttemptResult, took: timedelta, xact_id: str
) -> None:
    """End an attempt as done in the transaction that a cursor is in, where another than hookonce is to commit it.

    Raises `LeaseLost` as `end` does.
    """
    try:
        if not run.event.keep_body:
            cursor.execute(_LOCK_EVENTS, [[run.event.id]])
        cursor.execute(*_ended(run, ending, took, xact_id))
        if not run.event.keep_body:
            cursor.execute(_DROP_BODIES, [[run.event.id], [run.event.received_at]])
        cursor.execute(marks.DELETE_ONE, run.key._asdict())
    except psycopg.errors.DivisionByZero:
        raise lost(run) from None
    reach("run.ended")


def fail(
    connection: psycopg.Connection,
    runs: Sequence[ClaimedRun],
    endings: Sequence[AttemptResult],
    took: timedelta = timedelta(0),
) -> Mapping[Place, RunStatus]:
    """End attempts of one claim that did not succeed, in the caller's transaction; return what their runs are now.

    Those that are not under their token any more are left out.
    """
    return fail_rows(connection, runs[0].token, [Place(run.event.id, run.n) for run in runs], endings, took)


def fail_rows(
    connection: psycopg.Connection,
    token: object,
    places: Sequence[Place],
    endings: Sequence[AttemptResult],
    took: timedelta = timedelta(0),
) -> Mapping[Place, RunStatus]:
    """Do as `fail` does for rows of the queue, whoever was at them."""
    values = {
        "token": token,
        "events": [place.event for place in places],
        "places": [place.n for place in places],
        "statuses": [str(each.status) for each in endings],
        "counted": [each.counted for each in endings],
        "most": [each.most for each in endings],
        "delays": [each.delay for each in endings],
        "waits": [each.waits for each in endings],
        "errors": [each.error for each in endings],
        "tracebacks": [each.traceback for each in endings],
        "keys": [each.key_id for each in endings],
        "took": took,
    }
    return {
        Place(event, n): RunStatus.DEAD if is_dead else RunStatus.WAITING
        for event, n, is_dead in connection.execute(_FAIL, values)
    }


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


def _read(results: Sequence[PGresult], run: ClaimedRun, resets: int) -> bool:
    """Read what came of the end of a run and of its commit; return whether the last of the resets has said yes."""
    for result in results[:resets]:
        require(result)
    ends = results[resets:]
    if failed_by(ends[0], psycopg.errors.DivisionByZero):
        raise lost(run)
    for result in ends:
        require(result)
    last = results[resets - 1] if resets else None
    return bool(last and last.ntuples and last.get_value(0, 0) == b"t")


def mark(cursor: psycopg.Cursor[Any], run: ClaimedRun) -> str:
    """Mark an attempt in its handler's transaction; return the `xact_id` that `end` is to be given.

    Raises `LeaseLost` if the run is no longer ours.
    """
    if (xact_id := marks.insert(cursor, marks.Marked.of(run.key))) is None:
        raise lost(run, "this transaction may write nothing more")
    return xact_id


def mark_batch(cursor: psycopg.Cursor[Any], runs: Sequence[ClaimedRun]) -> str:
    """Mark all runs of a batch, as `mark` does one."""
    if (xact_id := marks.insert(cursor, marks.Marked.of_batch(runs))) is None:
        raise lost_batch(runs)
    return xact_id


def lost(run: ClaimedRun, so: str = "this attempt's writes are rolled back") -> LeaseLost:
    """Return what is to be raised where a run is no longer ours; `so` says what that means here."""
    return LeaseLost(
        f"lease on event {run.event.id} (handler {run.handler}) ran out and another worker may have it; {so}"
    )


def lost_batch(runs: Sequence[ClaimedRun]) -> LeaseLost:
    """Return what says that a batch is no longer ours."""
    return LeaseLost(
        f"the lease on a batch of {len(runs)} events (handler {runs[0].handler}) ran out and another worker "
        "may have some of them; this batch's writes are rolled back"
    )


def _ended(
    run: ClaimedRun, ending: AttemptResult, took: timedelta, xact_id: str | None
) -> tuple[LiteralString, dict[str, Any]]:
    """Return the statement that ends an attempt, and its values."""
    return _END_ONE, {
        **run.key._asdict(),
        "result": _json(ending.result),
        "sealed_result": ending.sealed_result,
        "key": None if ending.sealed_result is None else ending.key_id,
        "took": took,
        "count": 1,
        "xact_id": xact_id,
    }


def _places(runs: Sequence[ClaimedRun]) -> dict[str, Any]:
    return {
        "events": array("bigint", [run.event.id for run in runs]),
        "places": array("smallint", [run.n for run in runs]),
    }


def _json(result: Any) -> str | None:  # noqa: ANN401  whatever the handler returned
    return None if result is None else json.dumps(result)
