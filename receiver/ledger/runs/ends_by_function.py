"""Marks and ends an attempt by functions of the ledger, where a handler's role has no right on any of its tables.

For a connection that handlers write on and nobody claims on: Django's. What the functions ask for, and how they are
given, `receiver.ledger.database.functions` and `roles` say; they do what `receiver.ledger.runs.ends` does.
"""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs import ends
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult, EndedBatch, LeaseLost
from hookonce.receiver.ledger.runs.marks import Marked

_IS_NEEDED = f"""
SELECT has_function_privilege(to_regprocedure('{functions.END_RUN.signature}'), 'EXECUTE')
       AND NOT has_table_privilege('hookonce.queue', 'DELETE')
"""
_MARK = "SELECT hookonce.mark_run(%(event)s::bigint, %(n)s::smallint, %(token)s::uuid, %(lock)s::bigint)"
_END = """
SELECT hookonce.end_run(%(event)s::bigint, %(n)s::smallint, %(token)s::uuid, %(xact_id)s::text, %(took)s::interval,
                        %(result)s::text, %(sealed)s::bytea, %(key)s::text, %(logs)s::bytea,
                        %(logs_key)s::text)
"""


def are_needed(cursor: psycopg.Cursor[Any]) -> bool:
    """Return whether the role of a connection may end runs by the functions, and not without them."""
    return cursor.execute(_IS_NEEDED).fetchone() == (True,)


def mark(cursor: psycopg.Cursor[Any], run: ClaimedRun) -> str:
    """Mark an attempt in its handler's transaction; as `ends.mark`."""
    if (xact_id := _marked(cursor, run, Marked.of(run.key).key)) is None:
        raise ends.lost(run, "this transaction may write nothing more")
    return xact_id


def mark_batch(cursor: psycopg.Cursor[Any], runs: Sequence[ClaimedRun]) -> str:
    """Mark all runs of a batch; as `ends.mark_batch`."""
    lock = Marked.of_batch(runs).key
    found = [_marked(cursor, run, lock) for run in runs]
    if (xact_id := found[0]) is None or None in found:
        raise ends.lost_batch(runs)
    return xact_id


def end_within(
    cursor: psycopg.Cursor[Any], run: ClaimedRun, ending: AttemptResult, took: timedelta, xact_id: str
) -> None:
    """End an attempt as done in the transaction that a cursor is in, as `ends.end_within`. Raises `LeaseLost`."""
    _end(cursor, [(run, ending)], took, xact_id, partial(ends.lost, run))
    reach("run.ended")


def end_many_within(cursor: psycopg.Cursor[Any], batch: EndedBatch, xact_id: str) -> None:
    """End all runs of a batch as done, as `ends.end_many_within`. Raises `LeaseLost`."""
    # In the order in which `ends` logs them.
    in_order = sorted(zip(batch.runs, batch.results, strict=True), key=lambda each: each[0].event.id)
    _end(cursor, in_order, batch.took, xact_id, partial(ends.lost_batch, batch.runs))
    reach("batch.ended")


def _marked(cursor: psycopg.Cursor[Any], run: ClaimedRun, lock: int) -> str | None:
    """Mark a run under a lock; return the transaction's id, or None where the run is no longer ours."""
    row = cursor.execute(_MARK, {**run.key._asdict(), "lock": lock}).fetchone()
    return row[0] if row else None


def _end(
    cursor: psycopg.Cursor[Any],
    done: Sequence[tuple[ClaimedRun, AttemptResult]],
    took: timedelta,
    xact_id: str,
    lost: Callable[[], LeaseLost],
) -> None:
    for run, ending in done:
        values = {
            **run.key._asdict(),
            "xact_id": xact_id,
            "took": took,
            "result": None if ending.result is None else json.dumps(ending.result),
            "sealed": ending.sealed_result,
            "key": None if ending.sealed_result is None else ending.key_id,
            "logs": ending.logs,
            "logs_key": ending.logs_key,
        }
        try:
            cursor.execute(_END, values)
        except psycopg.errors.DivisionByZero:
            raise lost() from None
