"""Records in PostgreSQL, beside the ledger: nothing that was committed is lost, and all times are the server's.

    hookonce.idempotency (scope, key)   one row per key; see `receiver.ledger.database.tables`

A result can be stored in the transaction of the work (`PostgresStore.within`): then the two are one, and a claim that
was lost rolls the work back. That works on any connection to the same database, psycopg's, SQLAlchemy's or Django's.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

import psycopg

from hookonce.receiver.config.server_urls import USUAL_SCHEMA, schema_of
from hookonce.receiver.idempotency.records import (
    Claim,
    Key,
    LeaseLost,
    Record,
    Result,
    State,
    StoreUnavailable,
)
from hookonce.receiver.ledger.database import connections, schema
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.maintenance import steady_clock
from hookonce.receiver.ledger.maintenance.steady_clock import IS_STEADY

SWEEP_BATCH = 100
"""Expired rows that go whenever one is made: more than come, so what expired never piles up."""
LOOK_INTERVAL = timedelta(hours=1)
"""How often a process looks at the clock: where no sweep runs, keys would count for ever (`steady_clock`)."""
MAX_RESULT = 16 * 1024**2

# A transaction that was waited for may have taken a moment: then `statement_timestamp` is early, and a lease that
# seems to hold is respected. A key counts on while the clock is not trusted.
_IS_OVER = f"expires_at <= statement_timestamp() AND {IS_STEADY}"
_EXPIRED = f"(i.{_IS_OVER})"
_MINE = "(i.state = 'in_progress' AND i.owner = excluded.owner)"
# No row: the key is taken, by a result, by a request that is under way, or by another request.
_CLAIM = f"""
INSERT INTO hookonce.idempotency AS i (scope, key, fingerprint, state, owner, lease_until, started_at, expires_at)
VALUES (%(scope)s, %(key)s, %(fingerprint)s, 'in_progress', %(owner)s, statement_timestamp() + %(lease)s,
        statement_timestamp(), statement_timestamp() + %(retention)s)
ON CONFLICT (scope, key) DO UPDATE
SET fingerprint = excluded.fingerprint, state = excluded.state, owner = excluded.owner,
    lease_until = excluded.lease_until, started_at = excluded.started_at, expires_at = excluded.expires_at,
    attempt = CASE WHEN {_EXPIRED} THEN 1 WHEN {_MINE} THEN i.attempt ELSE i.attempt + 1 END,
    is_uncertain = CASE WHEN {_EXPIRED} THEN false WHEN {_MINE} THEN i.is_uncertain
                        ELSE i.is_uncertain OR i.state = 'in_progress' END,
    finished_at = NULL, status = NULL, headers = NULL, body = NULL
WHERE {_EXPIRED}
      OR i.fingerprint = excluded.fingerprint
         AND (i.state = 'failed_retryable' OR {_MINE}
              OR i.state = 'in_progress' AND i.lease_until <= statement_timestamp())
RETURNING attempt, is_uncertain
"""  # noqa: S608  constants of this module
_FIND = """
SELECT fingerprint, state, owner, attempt, is_uncertain,
       coalesce(lease_until - statement_timestamp(), interval '0'), expires_at - statement_timestamp(),
       status, headers, body
FROM hookonce.idempotency WHERE scope = %(scope)s AND key = %(key)s
"""
_COMPLETE = """
UPDATE hookonce.idempotency
SET state = %(state)s, finished_at = statement_timestamp(), expires_at = statement_timestamp() + %(retention)s,
    status = %(status)s, headers = %(headers)s, body = %(body)s
WHERE scope = %(scope)s AND key = %(key)s AND owner = %(owner)s AND state = 'in_progress'
"""
_RELEASE = """
DELETE FROM hookonce.idempotency
WHERE scope = %(scope)s AND key = %(key)s AND owner = %(owner)s AND state = 'in_progress'
"""
_SWEEP = f"""
DELETE FROM hookonce.idempotency WHERE (scope, key) IN (
    SELECT scope, key FROM hookonce.idempotency
    WHERE {_IS_OVER} ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""  # noqa: S608  constants of this module

Connections = Callable[[], AbstractContextManager[psycopg.Connection]]


class Cursor(Protocol):
    """A cursor of the DB-API, as psycopg's and Django's are."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""
        ...

    def execute(self, query: Any, parameters: Any, /) -> object:  # noqa: ANN401  the driver's
        """Send a statement."""
        ...


class PostgresStore:
    """Records in the table beside the ledger, on connections in autocommit mode."""

    loses = ""
    max_result = MAX_RESULT

    def __init__(self, connect: Connections, place: str = USUAL_SCHEMA) -> None:
        self._connect = connect
        self._place = place
        self._look_at = 0.0

    def close(self) -> None:
        """Close the connections that are kept for the next request."""
        if isinstance(self._connect, Pool):
            self._connect.close()

    @classmethod
    def at(cls, url: str, *, size: int = 8) -> "PostgresStore":
        """Return the store in the ledger at a URL, on up to `size` connections that are kept."""
        return cls(Pool(url, size), schema_of(url))

    def claim(self, wanted: Claim) -> Claim | Record | None:
        """Claim a key; see `Store`."""
        parameters = _named(wanted.key) | {
            "fingerprint": wanted.fingerprint,
            "owner": wanted.owner,
            "lease": wanted.terms.lease,
            "retention": wanted.terms.retention,
        }
        with self._asking() as connection:
            if time.monotonic() > self._look_at:
                steady_clock.look(connection)
                self._look_at = time.monotonic() + LOOK_INTERVAL.total_seconds()
            connection.execute(_SWEEP, [SWEEP_BATCH])
            row = connection.execute(_CLAIM, parameters).fetchone()
            if row is None:
                return _found(connection, wanted.key)
        return Claim(wanted.key, wanted.fingerprint, wanted.owner, wanted.terms, *row)

    def complete(self, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim, in a transaction of its own; see `Store`."""
        with self._asking() as connection:
            if connection.execute(_COMPLETE, _ending(claim, state, result)).rowcount:
                return
            found = _found(connection, claim.key)
        if found is None or (found.owner, found.state) != (claim.owner, state):
            raise LeaseLost(f"the claim on {claim.key.digest[:12]} was taken over or has expired")

    def within(self, cursor: Cursor, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim in the transaction of a cursor, to be committed by whose it is. Raises: `LeaseLost`.

        Errors of the database are the driver's: the transaction has failed with them.
        """
        cursor.execute(schema.named(_COMPLETE, self._place), _ending(claim, state, result))
        if not cursor.rowcount:
            raise LeaseLost(f"the claim on {claim.key.digest[:12]} was taken over or has expired")

    def release(self, claim: Claim) -> None:
        """Forget a claim; see `Store`."""
        with self._asking() as connection:
            connection.execute(_RELEASE, _named(claim.key) | {"owner": claim.owner})

    def find(self, key: Key) -> Record | None:
        """Return the record; see `Store`."""
        with self._asking() as connection:
            return _found(connection, key)

    @contextmanager
    def _asking(self) -> Iterator[psycopg.Connection]:
        try:
            with self._connect() as connection:
                yield connection
        except (psycopg.OperationalError, LedgerUnavailable) as error:
            raise StoreUnavailable(
                f"PostgreSQL does not answer, or not in time: {type(error).__name__}"
            ) from error
        except psycopg.IntegrityError as error:  # it quotes the row, with the client's key
            raise StoreUnavailable(
                f"PostgreSQL refuses the record: {type(error).__name__} ({error.diag.constraint_name}); expected the "
                "schema of this version; see `hookonce db upgrade`"
            ) from None


class Pool:
    """Connections that are kept for the next request; who finds none free waits for one, within limits.

    One that broke is closed; so are those that waited beside it, for what broke one has often broken all.
    """

    PATIENCE = timedelta(seconds=2)

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._free: deque[psycopg.Connection] = deque()
        self._turns = threading.BoundedSemaphore(size)
        self._is_closed = False

    @contextmanager
    def __call__(self) -> Iterator[psycopg.Connection]:
        """Lend a connection. Raises `LedgerUnavailable`."""
        if not self._turns.acquire(timeout=self.PATIENCE.total_seconds()):
            raise LedgerUnavailable("every connection for idempotency keys is in use")
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._turns.release()

    def close(self) -> None:
        """Close what is free; what is lent is closed when it comes back."""
        self._is_closed = True
        self._close_free()

    def _close_free(self) -> None:
        while self._free:
            self._free.pop().close()

    def _take(self) -> psycopg.Connection:
        while True:
            try:
                connection = self._free.pop()
            except IndexError:
                return connections.connect(self._url)
            if not connections.is_stale(connection):
                return connection
            connection.close()

    def _give_back(self, connection: psycopg.Connection) -> None:
        if connection.broken or connection.closed:
            self._close_free()
        elif connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            self._free.append(connection)
            if self._is_closed:
                self._close_free()
        else:
            connection.close()


def _found(connection: psycopg.Connection, key: Key) -> Record | None:
    row = connection.execute(_FIND, _named(key)).fetchone()
    if row is None:
        return None
    fingerprint, state, owner, attempt, is_uncertain, lease_left, kept_for, status, headers, body = row
    result = None if status is None else Result(status, headers or {}, body or b"", body is not None)
    return Record(
        fingerprint, State(state), owner or UUID(int=0), attempt, is_uncertain, lease_left, kept_for, result
    )


def _named(key: Key) -> dict[str, Any]:
    return {"scope": key.scope, "key": key.key}


def _ending(claim: Claim, state: State, result: Result | None) -> dict[str, Any]:
    """Return the values of `_COMPLETE`, as any driver of PostgreSQL takes them."""
    return _named(claim.key) | {
        "owner": str(claim.owner),
        "state": str(state),
        "retention": claim.terms.retention,
        "status": None if result is None else result.status,
        "headers": None if result is None else json.dumps(dict(result.headers)),
        "body": result.body if result is not None and result.is_kept else None,
    }
