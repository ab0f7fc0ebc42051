"""Marks: by them it is known that a handler's transaction was committed, though the run's end was not in it.

Before a handler does what cannot be seen (it takes the driver's connection, sends text that is not plainly harmless),
its own transaction inserts a mark under the run's token; the run's end deletes it there. So a mark that another
session sees says that this very transaction was committed, by the handler. It survives a crash of PostgreSQL with the
transaction or goes with it; a transaction's id does not, and is given out again (docs/decisions/0032).

    hookonce.marks (event, handler, token)    one row per attempt; the token alone is the claim's, and others share it

Whoever takes a run from its attempt locks the run FOR UPDATE and looks for the mark in the next statement: one that
waits for a lock does not see what was committed meanwhile. A mark holds the run FOR KEY SHARE: so it waits for that
lock, and finds the token gone, or keeps the other waiting until its transaction has ended. What changes no key
(renewals, steps, replays, the run's own end elsewhere) waits for no handler.

The transaction holds an advisory lock besides, by which its backend is found, and no other, when it must be ended.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg

from hookonce.receiver.ledger.database.arrays import array
from hookonce.receiver.ledger.runs import event_status
from hookonce.receiver.ledger.runs.claimed import Attempt
from hookonce.receiver.ledger.states import RunStatus

COMMITTED = (
    "the handler committed the transaction it was given: what it wrote until then stays, so there is no further "
    "attempt; only return, and it is committed with the run"
)
LOCK_TIMEOUT = timedelta(milliseconds=250)
"""How long a lock is waited for at a time: less than PostgreSQL waits before it looks for a deadlock."""
ENDS_WITHIN = timedelta(milliseconds=500)
"""How long a backend that was ended is waited for."""
_WAIT_SHORTLY = f"SET LOCAL lock_timeout = {LOCK_TIMEOUT // timedelta(milliseconds=1)}"
TRIES = 20
"""After so many a marked transaction that nothing ends counts as committed: one that is prepared, for instance."""

T = TypeVar("T")

_INSERT = f"""
WITH ours AS MATERIALIZED (
    SELECT event, handler, token FROM hookonce.runs
    WHERE event = ANY(%(events)b::bigint[]) AND handler = %(handler)s AND token = %(token)s
          AND status = '{RunStatus.RUNNING}'
    ORDER BY event FOR KEY SHARE
), marked AS (
    INSERT INTO hookonce.marks (event, handler, token) SELECT event, handler, token FROM ours ON CONFLICT DO NOTHING
)
SELECT count(*), pg_current_xact_id()::text, (SELECT pg_advisory_xact_lock_shared(%(key)s)) FROM ours
"""  # noqa: S608  constants
_DELETE = """
DELETE FROM hookonce.marks WHERE event = ANY(%(events)b::bigint[]) AND handler = %(handler)s AND token = %(token)s
"""
DELETE_ONE = """
DELETE FROM hookonce.marks WHERE event = %(event)s AND handler = %(handler)s AND token = %(token)s
"""
"""For a run by itself; `_DELETE` is for what was marked together."""
_LOCK = """
SELECT FROM hookonce.runs
WHERE event = ANY(%(events)b::bigint[]) AND handler = %(handler)s AND token = %(token)s ORDER BY event FOR UPDATE
"""
_FIND = """
SELECT EXISTS (SELECT FROM hookonce.marks
               WHERE event = ANY(%(events)b::bigint[]) AND handler = %(handler)s AND token = %(token)s)
"""
# One that is prepared has no backend.
_HOLDERS = """
FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid IS DISTINCT FROM pg_backend_pid()
     AND (classid::bigint << 32 | objid::bigint) = ANY(%s)
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_ENDS_WITHIN = ENDS_WITHIN // timedelta(milliseconds=1)
_END_HOLDERS = f"SELECT pg_terminate_backend(pid, {_ENDS_WITHIN}) {_HOLDERS} AND pid IS NOT NULL"
_IS_HELD = f"SELECT EXISTS (SELECT {_HOLDERS})"
_ARE_PREPARED = f"SELECT EXISTS (SELECT {_HOLDERS} AND pid IS NULL)"
# A mark without a run under its token says nothing any more: another has ended the run.
_FORGET = """
DELETE FROM hookonce.marks m
WHERE NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = m.event AND r.handler = m.handler AND r.token = m.token)
"""


@dataclass(frozen=True, slots=True)
class Marked:
    """What one transaction marks: the runs of one handler under one token; of a batch all, otherwise one."""

    events: Sequence[int]
    handler: str
    token: UUID
    is_batch: bool = False

    @classmethod
    def of(cls, attempt: Attempt) -> "Marked":
        """Return what an attempt of a single run marks."""
        return cls([attempt.event], attempt.handler, attempt.token)

    @property
    def key(self) -> int:
        """The number of its advisory lock."""
        return key(None if self.is_batch else self.events[0], self.handler, self.token)

    @property
    def values(self) -> dict[str, Any]:
        """What the statements about it are given."""
        return {"events": array("bigint", self.events), "handler": self.handler, "token": self.token}


def key(event: int | None, handler: str, token: UUID) -> int:
    """Return the number of the advisory lock of a marked transaction; `event` is None for a batch."""
    name = f"hookonce mark {event} {token.hex} {handler}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def insert(cursor: psycopg.Cursor[Any], marked: Marked) -> str | None:
    """Mark an attempt in the transaction of its handler; return that transaction's id, good for this session only.

    Return None if a run is no longer under the token: then nothing may be written.
    """
    row = cursor.execute(_INSERT, {**marked.values, "key": marked.key}).fetchone()
    return row[1] if row and row[0] == len(marked.events) else None


def delete(cursor: "psycopg.Cursor[Any] | psycopg.Connection[Any]", marked: Marked) -> None:
    """Delete the mark of an attempt, in the transaction that ends it."""
    cursor.execute(_DELETE, marked.values)


def ask(connection: psycopg.Connection[Any], marked: Marked) -> bool:
    """Lock the runs of an attempt in the caller's transaction, then return whether its handler has committed it.

    Their events are locked first, as everywhere. As long as the locks last the answer does. Raises
    `psycopg.errors.LockNotAvailable` while a transaction of the attempt goes on, which `end_holders` ends.
    """
    with connection.pipeline():
        connection.execute(_WAIT_SHORTLY)
        connection.execute(event_status.LOCK_EVENTS, [list(marked.events)])
        connection.execute(_LOCK, marked.values)
        found = connection.execute(_FIND, marked.values)
        connection.execute("SET LOCAL lock_timeout TO DEFAULT")
    row = found.fetchone()
    return bool(row and row[0])


def end_holders(connection: psycopg.Connection[Any], keys: Collection[int]) -> None:
    """End the backends whose open transactions hold these marks, and wait shortly until they have gone.

    A transaction that waits for a standby stays committed.
    """
    connection.execute(_END_HOLDERS, [list(keys)])


def is_held(connection: psycopg.Connection[Any], keys: Collection[int]) -> bool:
    """Return whether an open transaction holds one of these marks."""
    row = connection.execute(_IS_HELD, [list(keys)]).fetchone()
    return bool(row and row[0])


def are_prepared(connection: psycopg.Connection[Any], keys: Collection[int]) -> bool:
    """Return whether one of these marks is held by a prepared transaction: whether that commits nobody can wait for."""
    row = connection.execute(_ARE_PREPARED, [list(keys)]).fetchone()
    return bool(row and row[0])


def settle(
    connection: psycopg.Connection[Any],
    marked: Marked,
    write: Callable[[bool], T],
    *,
    first: Callable[[], object] = lambda: None,
) -> T:
    """Take runs from their attempt: have written, in one transaction with the lock, what becomes of them. Committed.

    `write` is told whether the handler has committed; `first` locks what is locked before events. `connection` is idle.
    A transaction of the attempt that goes on is ended. Raises `psycopg.errors.LockNotAvailable` where others keep the
    locks.
    """

    def look() -> T:
        with connection.transaction():
            first()
            return write(ask(connection, marked))

    for answer in patiently(look, lambda: connection, marked):
        return answer
    with connection.transaction():
        first()
        return write(True)  # noqa: FBT003  as it is given what `ask` returns


def patiently(look: Callable[[], T], idle: Callable[[], psycopg.Connection[Any]], marked: Marked) -> list[T]:
    """Return, in a list, what `look` does once it gets its locks; ends the transaction of the attempt that has them.

    The list is empty where nothing ends that: it counts as committed, at once dead rather than done twice. `idle` gives
    a connection that is in no transaction. Raises `psycopg.errors.LockNotAvailable` where others keep the locks.
    """
    for left in reversed(range(TRIES)):
        try:
            return [look()]
        except psycopg.errors.LockNotAvailable:
            connection = idle()
            with connection.transaction():
                end_holders(connection, [marked.key])
                if not left and not is_held(connection, [marked.key]):
                    raise
    return []


def forget(connection: psycopg.Connection[Any]) -> None:
    """Delete marks that say nothing any more. Safe in many processes at once."""
    connection.execute(_FORGET)
