"""Marks and ends an attempt by functions of the ledger, where a handler's role has no right on any of its tables.

For a connection that handlers write on and nobody claims on: Django's. What the functions ask for, and how they are
given, `receiver.ledger.database.functions` and `roles` say; they do what `receiver.ledger.runs.ends` does.
"""

import json
from collections.abc import Sequence
from typing import Any

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs import ends
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Ended
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


def mark(cursor: psycopg.Cursor[Any], runs: Sequence[ClaimedRun]) -> str:
    """Mark an attempt in its handler's transaction; as `ends.mark`. Raises `LeaseLost`."""
    lock = Marked.of(runs).key
    marked = [cursor.execute(_MARK, {**run.key._asdict(), "lock": lock}).fetchone() for run in runs]
    found = [row and row[0] for row in marked]
    if None in found:
        raise ends.lost(runs, "this transaction may write nothing more")
    return str(found[0])


def end_within(cursor: psycopg.Cursor[Any], ended: Ended, xact_id: str | None) -> None:
    """End an attempt as done in the transaction that a cursor is in, as `ends.end_within`. Raises `LeaseLost`."""
    # In the order in which `ends` logs them.
    for run, result in sorted(zip(ended.runs, ended.results, strict=True), key=lambda each: each[0].event.id):
        values = {
            **run.key._asdict(),
            "xact_id": xact_id,
            "took": ended.took,
            "result": None if result.result is None else json.dumps(result.result),
            "sealed": result.sealed_result,
            "key": None if result.sealed_result is None else result.key_id,
            "logs": result.logs,
            "logs_key": result.logs_key,
        }
        try:
            cursor.execute(_END, values)
        except psycopg.errors.DivisionByZero:
            raise ends.lost(ended.runs) from None
    if any(result.logs is not None for result in ended.results):
        cursor.execute(*ends.FORGET_NUMBERS)
    reach("batch.ended" if len(ended.runs) > 1 else "run.ended")
