"""Transactions on the queue: what they send together, and how its statements are planned.

A queue is empty at one moment and has a million rows at the next. The plan of a prepared statement is kept: one that
was made over an empty queue reads all of it, for each row that is asked for, until statistics are gathered a minute
later. So it is planned by its indexes, however small it is just now. Without `jit`: what has no index costs "too much"
by these settings, and would be compiled. They hold for one transaction.

And it is planned once. PostgreSQL takes an array that it does not know for ten elements, finds that dearer than the one
that came, and plans anew each time: 1 ms for a claim that then takes 0.1.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from hookonce.receiver.ledger.database.pinned import PIN


def _set(settings: Mapping[str, str]) -> str:
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


_ONCE = {"plan_cache_mode": "force_generic_plan"}
_BY_INDEX = {"enable_seqscan": "off", "jit": "off"}
# Row by row, and in the order of an index: whoever wants the first few reads no more than those.
_BY_ROW = dict.fromkeys(("enable_bitmapscan", "enable_hashjoin", "enable_mergejoin"), "off")
_FOR_CLAIM = _set(_BY_INDEX | _BY_ROW | _ONCE)
_LOCKED = "10s"  # our own rows: a person's session may lock them
FOR_END = _set(_BY_INDEX | _ONCE | {"lock_timeout": _LOCKED}).encode()
FOR_ONE_END = (b"SET LOCAL enable_seqscan = off", f"SET LOCAL lock_timeout = '{_LOCKED}'".encode())
"""For the end of one run: its statements have their indexes, so nothing of theirs is dear enough to be compiled."""
FOR_UNFLUSHED_END = (*FOR_ONE_END, b"SET LOCAL synchronous_commit = off")
"""For the end of one run whose commit does not wait for the disk (`receiver.ledger.database.round_trip`)."""


BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Whatever the server, or a pooler's, is used to."""


@contextmanager
def claiming(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Begin a transaction that claims, with its first statement, and commit it with the last one.

    Only what is fetched meanwhile is waited for. Where one is open, this is a part of it.
    """
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        with connection.pipeline(), connection.transaction():
            connection.execute(_FOR_CLAIM, prepare=True)
            yield
        return
    # Else psycopg begins one by itself, and waits for that.
    is_autocommit, connection.autocommit = connection.autocommit, True
    try:
        with connection.pipeline():
            connection.execute(BEGIN, prepare=True)
            if connection.prepare_threshold is None:
                connection.execute(PIN)
            connection.execute(_FOR_CLAIM, prepare=True)
            yield
            connection.execute("COMMIT", prepare=True)
    finally:
        if not connection.closed:
            if connection.info.transaction_status is not TransactionStatus.IDLE:
                connection.rollback()
            connection.autocommit = is_autocommit
