"""The newest version of each entity that a handler has done: it is raised in the handler's own transaction.

Runs of one entity take turns by the row's lock, and an attempt that fails takes the raise back. Of equal versions the
event that came later to the ledger is the newer one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel, all_as
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

_NEWEST = """
SELECT event FROM hookonce.entities WHERE source = %(source)s AND entity = %(entity)s AND account = %(account)s
                                          AND handler = %(handler)s
"""
_OF_ENTITY = "FROM hookonce.entities WHERE source = %s AND entity = %s"
_LIST = f"SELECT handler, account, version, event, raised_at {_OF_ENTITY} ORDER BY handler, account"
_FORGET = f"DELETE {_OF_ENTITY}"


class Busy(Exception):  # noqa: N818  what was found
    """Another run of the entity is under way."""


class Version(NamedTuple):
    """A version of an entity, and the event that told it; an account is empty for none."""

    handler: str
    source: str
    account: str
    entity: str
    version: int
    event: int


class NewestVersion(ResponseModel):
    """The newest version that a handler has done of an entity."""

    handler: Ours
    account: str
    version: int
    event: Identifier
    raised_at: datetime


class Entities(NamedTuple):
    """Entities as a handler's transaction has them; `by_function` where its role has no right on tables."""

    cursor: psycopg.Cursor[Any]
    by_function: bool = False

    def raise_to(self, version: Version, patience: int) -> int:
        """Raise the newest version, unless a newer one was done; return the event that told the newest.

        Waits `patience` milliseconds for other runs of the entity. Raises `Busy`, also where it is forgotten meanwhile.
        """
        values = {**version._asdict(), "patience": str(patience)}
        with self._locking() as cursor:
            row = cursor.execute(
                functions.CALL_RAISE if self.by_function else functions.RAISE, values
            ).fetchone()
            if not self.by_function and row is not None and row[0] is None:
                row = cursor.execute(_NEWEST, values).fetchone()
        if row is None or row[0] is None:
            raise Busy
        return int(row[0])

    def count_unguarded(self, handler: str, event: int) -> None:
        """Count an event that was handled without a version."""
        with self._locking() as cursor:
            if self.by_function:
                nothing = dict.fromkeys(("entity", "version", "patience"))
                cursor.execute(functions.CALL_RAISE, {"event": event, "handler": handler, **nothing})
            else:
                counters.add(cursor, {Tally(Kind.UNGUARDED, handler): 1})

    @contextmanager
    def _locking(self) -> Iterator[psycopg.Cursor[Any]]:
        try:
            yield self.cursor
        except (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure) as error:
            raise Busy(type(error).__name__) from error


def newest(connection: psycopg.Connection, source: str, entity: str) -> list[NewestVersion]:
    """Return what handlers have done of an entity of a source."""
    return all_as(NewestVersion, connection, _LIST, [source, entity])


def forget(connection: psycopg.Connection, source: str, entity: str) -> int:
    """Have whatever comes next of an entity be the newest; return of how many handlers and accounts."""
    return connection.execute(_FORGET, [source, entity]).rowcount
