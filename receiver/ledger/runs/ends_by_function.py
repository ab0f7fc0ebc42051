"""Marks and ends an attempt by functions of the ledger, where a handler's role has no right on any of its tables.

For a connection that handlers write on and nobody claims on: Django's. What the functions ask for, and how they are
given, `receiver.ledger.database.functions` and `roles` say; they do what `receiver.ledger.runs.ends` does.
"""

import json
from datetime import timedelta
from typing import Any

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs import ends
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.runs.marks import Marked

_IS_NEEDED = f"""
SELECT has_function_privilege(to_regprocedure('{functions.END_RUN.signature}'), 'EXECUTE')
       AND NOT has_table_privilege('hookonce.queue', 'DELETE')
"""
_MARK = "SELECT hookonce.mark_run(%(event)s::bigint, %(n)s::smallint, %(token)s::uuid, %(lock)s::bigint)"
_END = """
SELECT hookonce.end_run(%(event)s::bigint, %(n)s::smallint, %(token)s::uuid, %(xact_id)s::text, %(took)s::interval,
                        %(result)s::text, %(sealed)s::bytea, %(key)s::text)
"""


def are_needed(cursor: psycopg.Cursor[Any]) -> bool:
    """Return whether the role of a connection may end runs by the functions, and not without them."""
    return cursor.execute(_IS_NEEDED).fetchone() == (True,)


def mark(cursor: psycopg.Cursor[Any], run: ClaimedRun) -> str:
    """Mark an attempt in its handler's transaction; as `ends.mark`."""
    row = cursor.execute(_MARK, {**run.key._asdict(), "lock": Marked.of(run.key).key}).fetchone()
    if row is None or row[0] is None:
        raise ends.lost(run, "this transaction may write nothing more")
    return str(row[0])


def end_within(
    cursor: psycopg.Cursor[Any], run: ClaimedRun, ending: AttemptResult, took: timedelta, xact_id: str
) -> None:
    """End an attempt as done in the transaction that a cursor is in, as `ends.end_within`. Raises `LeaseLost`."""
    values = {
        **run.key._asdict(),
        "xact_id": xact_id,
        "took": took,
        "result": None if ending.result is None else json.dumps(ending.result),
        "sealed": ending.sealed_result,
        "key": None if ending.sealed_result is None else ending.key_id,
    }
    try:
        cursor.execute(_END, values)
    except psycopg.errors.DivisionByZero:
        raise ends.lost(run) from None
    reach("run.ended")
