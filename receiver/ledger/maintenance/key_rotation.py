"""Seals again, with the first key, what is stored under an older one or in the clear.

In small steps, each committed by itself: nothing that receives or works waits, and whoever stops in the middle
goes on where they were, since a row that is done is not found again. A row that changed meanwhile is left.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from hookonce.receiver.encryption import (
    AssociatedData,
    CannotDecrypt,
    Keyring,
    answer_context,
    body_context,
    log_context,
    quarantine_context,
    rejected_context,
    result_context,
    secret_context,
    step_context,
    traceback_context,
)
from hookonce.receiver.ledger.access import audit_log

ROTATION_BATCH = 200
"""Rows of one step at most."""
ROTATION_BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of one step, beyond which it has a single row."""


# The class of an error and where it came from, "ValueError (shop/pay.py:12)"; of a sentence of ours, its beginning.
_BARE_ERROR: LiteralString = """
CASE WHEN t.error ~ '^[A-Za-z_][A-Za-z0-9_.]*(:| [(]|$)'
     THEN substring(t.error FROM '^[A-Za-z_][A-Za-z0-9_.]*')
          || coalesce(substring(t.error FROM ' [(][^()[:space:]]+[.]pyx?:[0-9]+[)]$'), '')
     ELSE split_part(t.error, '; then it failed with', 1) END
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of sealed rows `t`: the column that holds what is sealed, what that is bound to, and by which bond.

    `clear` is the column that it stands in where it is not sealed, if that is another; `text` reads it all the same,
    as bytes. `also` is written besides. `id` is what pages are made of; `part` tells rows apart that share it.
    """

    name: str
    column: LiteralString
    bound_to: LiteralString
    bond: Callable[..., AssociatedData]
    clear: LiteralString = ""
    text: LiteralString = ""
    also: LiteralString = "key_id = %(first)s"
    id: LiteralString = "t.id"
    id_type: LiteralString = "bigint"
    part: LiteralString = "''"
    key: LiteralString = "t.key_id"
    join: LiteralString = ""


_EVENT: LiteralString = "LEFT JOIN hookonce.events e ON e.id = t.event"
_BODY: LiteralString = "e.source, e.event_id, e.fingerprint"
_ATTEMPT: LiteralString = "t.event, t.handler, t.cycle, t.attempt"
_HANDLERS: LiteralString = "t.handler || E'\n' || t."
_SEALED_WITH: LiteralString = "t.headers ->> 'Hookonce-Key'"
# As `receiver.idempotency.sealed` seals them: headers and body, the key's id in the place of the headers.
_ANSWER: LiteralString = f"""
CASE WHEN {_SEALED_WITH} IS NOT NULL THEN t.body
     ELSE convert_to(coalesce(t.headers::text, '{{}}') || E'\n', 'UTF8') || t.body END
"""
_ANSWER_KEY: LiteralString = "headers = json_build_object('Hookonce-Key', %(first)s::text)"
_NEW_ERROR: LiteralString = "key_id = %(first)s, error = " + _BARE_ERROR
KINDS = (
    Kind("bodies", "body", _BODY, body_context, id="t.event", join=_EVENT),
    Kind("conflicts", "body", "e.source, e.event_id, t.fingerprint", body_context, join=_EVENT),
    Kind("failures", "traceback", _ATTEMPT, traceback_context, also=_NEW_ERROR),
    Kind("run_logs", "lines", _ATTEMPT, log_context),
    Kind(
        "runs",
        "sealed_result",
        "t.event, t.handler",
        result_context,
        clear="result",
        id="t.event",
        part=_HANDLERS + "cycle",
    ),
    Kind(
        "steps", "result", "t.event, t.handler, t.name", step_context, id="t.event", part=_HANDLERS + "name"
    ),
    Kind("rejected", "body_prefix", "t.source, t.reason, t.rejected_at", rejected_context),
    Kind("quarantine", "delivery", "t.source, t.reason, t.arrived_at", quarantine_context),
    Kind("handed_secrets", "sealed", "t.source", secret_context, clear="secret", id="0", part="t.source"),
    Kind(
        "idempotency",
        "body",
        "t.scope, t.key",
        answer_context,
        text=_ANSWER,
        also=_ANSWER_KEY,
        id="t.expires_at",
        id_type="timestamptz",
        part="t.scope || E'\n' || t.key",
        key=_SEALED_WITH,
    ),
)

# Each day by what it holds, and not by the name of its table: on that only the owner has a right.
_DAYS = """
SELECT replace(pg_get_partition_constraintdef(c.oid), 'received_at', 't.received_at')
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'hookonce.bodies'::regclass ORDER BY c.relname
"""
_ALL: LiteralString = "true"

_USED = "SELECT {key}, count(*) FROM {table} t WHERE {rows} AND {text} IS NOT NULL GROUP BY 1"

# Rows that share an id are of one page: the next begins behind it. Digests are made of what is left of a page.
_READ = """
SELECT sha256(text), sized.* FROM (
    SELECT *, coalesce(sum(size) OVER (ORDER BY at RANGE UNBOUNDED PRECEDING EXCLUDE GROUP), 0) AS before FROM (
        SELECT {id} AS at, {part}, {text} AS text, {key}, octet_length({text}) AS size, {bound_to}
        FROM {table} t {join}
        WHERE {rows} AND (%(last)s::{id_type} IS NULL OR {id} > %(last)s) AND {key} IS DISTINCT FROM %(first)s
              AND {text} IS NOT NULL ORDER BY 1 FETCH FIRST (%(step)s) ROWS WITH TIES) AS page
) AS sized WHERE before < %(bytes)s ORDER BY at
"""

# No join by the digest: it would be made of every row.
_WRITE = """
UPDATE {table} t SET {write}
FROM unnest(%(ids)s::{id_type}[], %(parts)s::text[], %(texts)s::bytea[], %(digests)s::bytea[])
     AS n (id, part, text, digest)
WHERE {rows} AND {id} = n.id AND {part} = n.part AND sha256({text}) IS NOT DISTINCT FROM n.digest
"""


@dataclass(slots=True)
class Rotated:
    """The outcome of a rotation: rows sealed anew, and those that could not be opened, by the key they need."""

    total: int = 0
    sealed: int = 0
    left: dict[str, int] = field(default_factory=dict)


def used(connection: psycopg.Connection) -> dict[str, Counter[str | None]]:
    """Count rows by kind and key id (None: in the clear), reading every row's key."""
    found: dict[str, Counter[str | None]] = {}
    for kind, rows in _parts(connection):
        counts: dict[str | None, int] = dict(connection.execute(_of(kind, rows, _USED)).fetchall())
        found.setdefault(kind.name, Counter()).update(counts)
    return found


def keys_in_use(connection: psycopg.Connection) -> set[str | None]:
    """Return the ids of the keys that rows need (None: some are in the clear)."""
    return {key for counts in used(connection).values() for key in counts}


def rotate(connection: psycopg.Connection, keyring: Keyring, who: str) -> Iterator[Rotated]:
    """Seal everything with the first key; yield how far it is after each step. Audited, at the start and the end.

    `connection` is in autocommit mode. Safe to stop and to run again. Raises `KeyMissing` where the first key is
    not here.
    """
    keyring.encrypt(b"", ("test",))
    done = Rotated(sum(counts.total() - counts[keyring.first] for counts in used(connection).values()))
    _audit(connection, keyring, who, {"begun": True, "rows": done.total})
    yield done
    for kind, rows in _parts(connection):
        yield from _reseal_table(connection, keyring, kind, rows, done)
    _audit(connection, keyring, who, {"begun": False, "sealed": done.sealed, "left": done.left})


def _reseal_table(
    connection: psycopg.Connection, keyring: Keyring, kind: Kind, rows: LiteralString, done: Rotated
) -> Iterator[Rotated]:
    page = {"last": None, "first": keyring.first, "step": ROTATION_BATCH, "bytes": ROTATION_BATCH_BYTES}
    while found := connection.execute(_of(kind, rows, _READ), page).fetchall():
        page["last"] = found[-1][1]
        anew = []
        for digest, row, part, text, key, _, *bound_to, _ in found:
            sealed = _sealed_anew(keyring, text, key, None if None in bound_to else kind.bond(*bound_to))
            if sealed is None:
                done.left[key or "none"] = done.left.get(key or "none", 0) + 1
            else:
                anew.append((row, part, sealed, digest))
        if anew:
            columns = [list(column) for column in zip(*anew, strict=True)]
            values: dict[str, Any] = dict(zip(("ids", "parts", "texts", "digests"), columns, strict=True))
            values["first"] = keyring.first
            done.sealed += connection.execute(_of(kind, rows, _WRITE), values).rowcount
        yield done


def _sealed_anew(keyring: Keyring, text: bytes, key: str | None, bond: AssociatedData | None) -> bytes | None:
    """Open and seal; None where that can't be: without the key, or for a body whose event is gone."""
    try:
        return None if bond is None else keyring.encrypt(keyring.open(text, key, bond), bond)[0]
    except CannotDecrypt:
        return None


def _parts(connection: psycopg.Connection) -> list[tuple[Kind, LiteralString]]:
    """Every table that holds sealed rows, and which of its rows; of bodies each day, the oldest first."""
    days = [row[0] for row in connection.execute(_DAYS)]
    return [(kind, rows) for kind in KINDS for rows in (days if kind.name == "bodies" else [_ALL])]


def _of(kind: Kind, rows: LiteralString, query: LiteralString) -> sql.Composed:
    """Return a query of these rows of one table."""
    text, write = kind.text or f"t.{kind.column}", f"{kind.column} = n.text, {kind.also}"
    if kind.clear:
        text, write = (
            f"coalesce({text}, convert_to(t.{kind.clear}::text, 'UTF8'))",
            f"{write}, {kind.clear} = NULL",
        )
    return sql.SQL(query).format(
        table=sql.SQL("hookonce.{}").format(sql.Identifier(kind.name)),
        rows=sql.SQL(rows),
        id=sql.SQL(kind.id),
        id_type=sql.SQL(kind.id_type),
        part=sql.SQL(kind.part),
        text=sql.SQL(text),
        key=sql.SQL(kind.key),
        bound_to=sql.SQL(kind.bound_to),
        join=sql.SQL(kind.join),
        write=sql.SQL(write),
    )


def _audit(connection: psycopg.Connection, keyring: Keyring, who: str, detail: dict[str, Any]) -> None:
    audit_log.note(connection, who, "rotate keys", f"key {keyring.first}", detail)
