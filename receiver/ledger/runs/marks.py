"""Marks: by them it is known that a handler's transaction was committed, though the run's end was not in it.

Before a handler does what cannot be seen (it takes the driver's connection, sends text that is not plainly harmless),
its own transaction inserts a mark under the claim's token; the run's end deletes it there. So a mark that another
session sees says that this very transaction was committed, by the handler. It survives a crash of PostgreSQL with the
transaction or goes with it; a transaction's id does not, and is given out again (docs/decisions/0032).

    hookonce.marks (event, n, token)    one row per attempt; the token alone is the claim's, and others share it

Whoever takes a run from its attempt locks its row of the queue FOR UPDATE and looks for the mark in the next statement:
one that waits for a lock does not see what was committed meanwhile. A mark holds the row FOR KEY SHARE: so it waits for
that lock, and finds the token gone, or keeps the other waiting until its transaction has ended. What changes no key
waits for no handler.

The transaction holds an advisory lock besides, by which its backend is found, and no other, when it must be ended.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg

from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

log = logging.getLogger(__name__)

COMMITTED = (
    "the handler committed the transaction it was given: what it wrote until then stays, so there is no further "
    "attempt; only return, and it is committed with the run"
)
LOCK_TIMEOUT = timedelta(milliseconds=250)
"""How long a lock is waited for at a time: less than PostgreSQL waits before it looks for a deadlock."""
ENDS_WITHIN = timedelta(milliseconds=500)
"""How long a backend that was ended is waited for."""
WAIT_SHORTLY = f"SET LOCAL lock_timeout = {LOCK_TIMEOUT // timedelta(milliseconds=1)}"
TRIES = 20
"""After so many a marked transaction that nothing ends is left alone: one that is prepared, for instance."""

T = TypeVar("T")


class Kept(psycopg.errors.LockNotAvailable):
    """Nothing ends a marked transaction, since it is prepared or at its COMMIT: its run stays in its claim."""


_ROWS = "unnest(%(events)s::bigint[], %(places)s::smallint[]) AS t (event, n)"
_INSERT = f"""
WITH ours AS MATERIALIZED (
    SELECT q.event, q.n, q.token FROM hookonce.queue q JOIN {_ROWS} ON q.event = t.event AND q.n = t.n
    WHERE q.token = %(token)s ORDER BY q.event, q.n FOR KEY SHARE OF q
), marked AS (
    INSERT INTO hookonce.marks (event, n, token) SELECT event, n, token FROM ours ON CONFLICT DO NOTHING
)
SELECT count(*), pg_current_xact_id()::text, (SELECT pg_advisory_xact_lock_shared(%(key)s)) FROM ours
"""  # noqa: S608  constants
_DELETE_ONE = "DELETE FROM hookonce.marks WHERE event = %(event)s AND n = %(n)s AND token = %(token)s"
_LOCK = f"""
SELECT FROM hookonce.queue q JOIN {_ROWS} ON q.event = t.event AND q.n = t.n
WHERE q.token = %(token)s ORDER BY q.event, q.n FOR UPDATE OF q
"""
_FIND = f"""
SELECT EXISTS (SELECT FROM hookonce.marks m JOIN {_ROWS} ON m.event = t.event AND m.n = t.n WHERE m.token = %(token)s)
"""  # noqa: S608  constants
# One that is prepared has no backend.
_HOLDERS = """
FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid IS DISTINCT FROM pg_backend_pid()
     AND (classid::bigint << 32 | objid::bigint) = ANY(%s)
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_ENDS_WITHIN = ENDS_WITHIN // timedelta(milliseconds=1)
_END_HOLDERS = f"SELECT pg_terminate_backend(pid, {_ENDS_WITHIN}) {_HOLDERS} AND pid IS NOT NULL"
# A mark without a row under its token says nothing any more: another has ended the run.
_FORGET = """
DELETE FROM hookonce.marks m
WHERE NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = m.event AND q.n = m.n AND q.token = m.token)
"""


@dataclass(frozen=True, slots=True)
class Marked:
    """What one transaction marks: rows (event, n) of the queue under one token; of a batch all, otherwise one."""

    rows: Sequence[tuple[int, int]]
    token: UUID
    is_batch: bool = False

    @classmethod
    def of(cls, runs: Sequence[ClaimedRun]) -> "Marked":
        """Return what an attempt of a run, or of a batch, marks."""
        return cls([(run.event.id, run.n) for run in runs], runs[0].token, is_batch=len(runs) > 1)

    @property
    def key(self) -> int:
        """The number of its advisory lock."""
        return key(None if self.is_batch else self.rows[0], self.token)

    @property
    def values(self) -> dict[str, Any]:
        """What the statements about it are given."""
        return {
            "events": [event for event, _ in self.rows],
            "places": [n for _, n in self.rows],
            "token": self.token,
        }


def key(row: tuple[int, int] | None, token: UUID) -> int:
    """Return the number of the advisory lock of a marked transaction; `row` is None for a batch."""
    name = f"hookonce mark {token.hex}" if row is None else f"hookonce mark {token.hex} {row[0]} {row[1]}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def insert(cursor: psycopg.Cursor[Any], marked: Marked) -> str | None:
    """Mark an attempt in the transaction of its handler; return that transaction's id, good for this session only.

    Return None if a run is no longer under the token: then nothing may be written.
    """
    row = cursor.execute(_INSERT, {**marked.values, "key": marked.key}).fetchone()
    return row[1] if row and row[0] == len(marked.rows) else None


def insert_by_function(cursor: psycopg.Cursor[Any], marked: Marked) -> str | None:
    """Do as `insert` does where the cursor's role has no right on the ledger's tables."""
    values = {"token": marked.token, "lock": marked.key}
    rows = [
        cursor.execute(functions.CALL_MARK, values | {"event": event, "n": n}).fetchone()
        for event, n in marked.rows
    ]
    found = [row and row[0] for row in rows]
    return None if None in found else str(found[0])


def deletion(marked: Marked) -> tuple[str, dict[str, Any]]:
    """Return what deletes the mark of an attempt, in the transaction that ends it: a statement and its values."""
    if marked.is_batch:
        return functions.DELETE_MARKS, marked.values
    ((event, n),) = marked.rows
    return _DELETE_ONE, {"event": event, "n": n, "token": marked.token}


def ask(connection: psycopg.Connection[Any], marked: Marked) -> bool:
    """Lock the rows of an attempt in the caller's transaction, then return whether its handler has committed it.

    As long as the locks last the answer does. Raises
    `psycopg.errors.LockNotAvailable` while a transaction of the attempt goes on, which `end_holders` ends.
    """
    with connection.pipeline():
        connection.execute(WAIT_SHORTLY)
        connection.execute(_LOCK, marked.values)
        found = connection.execute(_FIND, marked.values)
        connection.execute("SET LOCAL lock_timeout TO DEFAULT")
    row = found.fetchone()
    return bool(row and row[0])


def end_holders(connection: psycopg.Connection[Any], keys: Collection[int]) -> None:
    """End the backends whose open transactions hold these marks, and wait shortly until they have gone. Committed.

    A transaction that waits for a standby stays committed; one of another role may not be ours to end.
    """
    try:
        with connection.transaction():
            connection.execute(_END_HOLDERS, [list(keys)])
    except psycopg.errors.InsufficientPrivilege as error:
        log.warning("a transaction that is in the way was not ended: %s", error.diag.message_primary)


def settle(
    connection: psycopg.Connection[Any],
    marked: Marked,
    write: Callable[[bool], T],
    *,
    first: Callable[[], object] = lambda: None,
) -> T:
    """Take runs from their attempt: have written, in one transaction with the lock, what becomes of them. Committed.

    `write` is told whether the handler has committed; `first` locks what is locked before rows of the queue.
    `connection` is idle. A transaction of the attempt that goes on is ended. Raises `Kept` where it does not end, or
    where others keep the locks.
    """

    def look() -> T:
        with connection.transaction():
            first()
            return write(ask(connection, marked))

    return patiently(look, lambda: connection, [marked.key])


def patiently(look: Callable[[], T], idle: Callable[[], psycopg.Connection[Any]], keys: Collection[int]) -> T:
    """Return what `look` does once it gets its locks; ends the transactions that hold marks of these keys.

    `idle` gives a connection that is in no transaction. Raises `Kept` where that helps not.
    """
    for left in reversed(range(TRIES)):
        try:
            return look()
        except psycopg.errors.LockNotAvailable:
            end_holders(idle(), keys)
            if not left:
                raise Kept("a transaction of the attempt goes on, and nothing ends it") from None
    raise AssertionError("unreachable")


def forget(connection: psycopg.Connection[Any]) -> None:
    """Delete marks that say nothing any more. Safe in many processes at once."""
    connection.execute(_FORGET)
