"""Seals again, with the first key, what is stored under an older one or in the clear.

In small steps, each committed by itself: nothing that receives or works waits, and whoever stops in the middle
goes on where they were, since a row that is done is not found again. A row that changed meanwhile is left.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from hookonce.receiver.encryption import (
    AssociatedData,
    CannotDecrypt,
    Keyring,
    body_context,
    quarantine_context,
    rejected_context,
    traceback_context,
)
from hookonce.receiver.ledger.access import audit_log

ROTATION_BATCH = 200
"""Rows of one step at most."""
ROTATION_BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of one step, beyond which it has a single row."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of sealed rows: which column, and what it is bound to."""

    name: str
    id: LiteralString
    column: LiteralString
    bound_to: LiteralString
    join: LiteralString
    bond: Callable[..., AssociatedData]


_EVENT: LiteralString = "LEFT JOIN hookonce.events e ON e.id = t.event"
KINDS = (
    Kind("bodies", "event", "body", "e.source, e.event_id, e.fingerprint", _EVENT, body_context),
    Kind("conflicts", "id", "body", "e.source, e.event_id, t.fingerprint", _EVENT, body_context),
    Kind("failures", "id", "traceback", "e.id, t.handler, t.cycle, t.attempt", _EVENT, traceback_context),
    Kind("rejected", "id", "body_prefix", "t.source, t.reason, t.rejected_at", "", rejected_context),
    Kind("quarantine", "id", "delivery", "t.source, t.reason, t.arrived_at", "", quarantine_context),
)

_PARTITIONS = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'hookonce.bodies'::regclass ORDER BY c.relname
"""

_USED = "SELECT key_id, count(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY key_id"
_IS_USED = "SELECT DISTINCT key_id FROM {table} WHERE {column} IS NOT NULL"
_COUNT = "SELECT count(*) FROM {table} WHERE {column} IS NOT NULL AND key_id IS DISTINCT FROM %s"

_PAGE = """
SELECT id FROM (
    SELECT {id} AS id, sum(octet_length({column})) OVER (ORDER BY {id}) - octet_length({column}) AS before
    FROM (SELECT * FROM {table} WHERE {id} > %(last)s AND key_id IS DISTINCT FROM %(first)s AND {column} IS NOT NULL
          ORDER BY {id} LIMIT %(step)s) AS page
) AS sized WHERE before < %(bytes)s ORDER BY id
"""

_READ = "SELECT t.{id}, t.{column}, t.key_id, {bound_to} FROM {table} t {join} WHERE t.{id} = ANY(%s)"

_WRITE = """
UPDATE {table} t SET {column} = n.text, key_id = %s
FROM unnest(%s::bigint[], %s::bytea[], %s::text[]) AS n (id, text, old)
WHERE t.{id} = n.id AND t.key_id IS NOT DISTINCT FROM n.old
"""


@dataclass(slots=True)
class Rotated:
    """What a rotation did: rows sealed anew, and those that could not be opened, by the key they need."""

    total: int = 0
    sealed: int = 0
    left: dict[str, int] = field(default_factory=dict)


def used(connection: psycopg.Connection) -> dict[str, dict[str | None, int]]:
    """Count rows by kind and key id (None: in the clear), reading every row's key."""
    found: dict[str, dict[str | None, int]] = {}
    for kind, table in _tables(connection):
        counts = found.setdefault(kind.name, {})
        for key, count in _rows(connection, _USED, kind, table):
            counts[key] = counts.get(key, 0) + count
    return found


def keys_in_use(connection: psycopg.Connection) -> set[str | None]:
    """Return the ids of the keys that rows need (None: some are in the clear)."""
    return {key for kind, table in _tables(connection) for (key,) in _rows(connection, _IS_USED, kind, table)}


def rotate(connection: psycopg.Connection, keyring: Keyring, who: str) -> Iterator[Rotated]:
    """Seal everything with the first key; yield how far it is after each step. Audited, at the start and the end.

    `connection` is in autocommit mode. Safe to stop and to run again. Raises `KeyMissing` where the first key is
    not here.
    """
    keyring.encrypt(b"", ("test",))
    done = Rotated()
    for kind, table in _tables(connection):
        done.total += sum(row[0] for row in _rows(connection, _COUNT, kind, table, [keyring.first]))
    _audit(connection, keyring, who, {"begun": True, "rows": done.total})
    yield done
    for kind, table in _tables(connection):
        yield from _reseal_table(connection, keyring, kind, table, done)
    _audit(connection, keyring, who, {"begun": False, "sealed": done.sealed, "left": done.left})


def _reseal_table(
    connection: psycopg.Connection, keyring: Keyring, kind: Kind, table: str, done: Rotated
) -> Iterator[Rotated]:
    last = -1
    while True:
        page = {"last": last, "first": keyring.first, "step": ROTATION_BATCH, "bytes": ROTATION_BATCH_BYTES}
        ids = [row[0] for row in _rows(connection, _PAGE, kind, table, page)]
        if not ids:
            return
        last = ids[-1]
        anew = []
        for row, text, key, *bound_to in _rows(connection, _READ, kind, table, [ids]):
            sealed = _sealed_anew(keyring, text, key, None if None in bound_to else kind.bond(*bound_to))
            if sealed is None:
                done.left[key or "none"] = done.left.get(key or "none", 0) + 1
            else:
                anew.append((row, sealed, key))
        if anew:
            columns = [list(column) for column in zip(*anew, strict=True)]
            with connection.cursor() as cursor:
                _execute(cursor, _WRITE, kind, table, [keyring.first, *columns])
                done.sealed += cursor.rowcount
        yield done


def _sealed_anew(keyring: Keyring, text: bytes, key: str | None, bond: AssociatedData | None) -> bytes | None:
    """Open and seal; None where that can't be: without the key, or for a body whose event is gone."""
    try:
        return None if bond is None else keyring.encrypt(keyring.open(text, key, bond), bond)[0]
    except CannotDecrypt:
        return None


def _tables(connection: psycopg.Connection) -> list[tuple[Kind, str]]:
    """Every table that holds sealed rows; of bodies each day, the oldest first."""
    days = [row[0] for row in connection.execute(_PARTITIONS)]
    return [(kind, table) for kind in KINDS for table in (days if kind.name == "bodies" else [kind.name])]


def _rows(
    connection: psycopg.Connection,
    query: LiteralString,
    kind: Kind,
    table: str,
    parameters: Any = (),  # noqa: ANN401
) -> list[tuple[Any, ...]]:
    """Run a query on one table; a day that was dropped meanwhile has no rows."""
    with connection.cursor() as cursor:
        try:
            _execute(cursor, query, kind, table, parameters)
        except psycopg.errors.UndefinedTable:
            return []
        return cursor.fetchall()


def _execute(
    cursor: psycopg.Cursor,
    query: LiteralString,
    kind: Kind,
    table: str,
    parameters: Any,  # noqa: ANN401
) -> None:
    text = sql.SQL(query).format(
        table=sql.SQL("hookonce.{}").format(sql.Identifier(table)),
        id=sql.SQL(kind.id),
        column=sql.SQL(kind.column),
        bound_to=sql.SQL(kind.bound_to),
        join=sql.SQL(kind.join),
    )
    cursor.execute(text, parameters)


def _audit(connection: psycopg.Connection, keyring: Keyring, who: str, detail: dict[str, Any]) -> None:
    audit_log.note(connection, who, "rotate keys", f"key {keyring.first}", detail)
