"""Reads and locks due events for a claim: those that were named, or the first that its cursor leads to."""

from collections.abc import Sequence

import psycopg
from psycopg.rows import args_row

from hookonce.receiver.ledger.columns import values
from hookonce.receiver.ledger.due import IS_DUE, IS_DUE_SINCE, IS_NOT_PAUSED, MAY_BE_CLAIMED
from hookonce.receiver.ledger.runs import unreadable
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.states import EventStatus, Parked

HEAVY = 256 * 1024
"""Bodies above this are loaded when their run starts, so that a batch of them does not fill the memory."""
_HEAD = 1000
"""Due events among which those that only paused handlers take are parked in one go."""
_LATEST = 500
"""Due events, the last, among which those are looked for that are not of the crowd at the head of the queue."""

IN_EVENTS = values(ClaimedEvent, "events")
VALUES = {name: f"d.{name}" for name in IN_EVENTS} | values(ClaimedEvent, "bodies")


def _due(which: str) -> str:
    return f"""
WITH due AS MATERIALIZED (
    SELECT {", ".join(IN_EVENTS)} FROM hookonce.events
    WHERE {which}
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
SELECT {", ".join(VALUES[name] for name in ClaimedEvent._fields)}
FROM due d LEFT JOIN hookonce.bodies b ON b.event = d.id AND b.received_at = d.received_at
ORDER BY d.due_at, d.id
"""  # noqa: S608  constants


_DUE_ANY = _due(f"{IS_DUE_SINCE} AND {IS_NOT_PAUSED}")
_DUE_NAMED = _due(f"{MAY_BE_CLAIMED} AND id = ANY(%(ids)s)")

# Among what has become due last, the first of each kind that is not left out.
_DUE_BESIDE = _due(f"""{MAY_BE_CLAIMED} AND id = ANY(ARRAY(
        SELECT id FROM (SELECT id, due_at, source, type FROM hookonce.events WHERE {IS_DUE}
                        ORDER BY due_at DESC LIMIT {_LATEST}) AS latest
        WHERE NOT EXISTS (SELECT FROM unnest(%(sources)s::text[], %(types)s::text[]) AS t (source, type)
                          WHERE (t.source, t.type) = (latest.source, latest.type))
        ORDER BY due_at LIMIT %(limit)s))""")  # noqa: S608  constants

# One of a handler that is here and not paused; what is parked may be of an event that is parked for something else.
_SUSPECTS = f"""
SELECT event FROM hookonce.runs
WHERE parked = '{Parked.SUSPECT}' AND handler = ANY(%(handlers)s) AND due_at <= now()
      AND handler NOT IN (SELECT name FROM hookonce.pauses WHERE kind = '{Parked.HANDLER}')
ORDER BY event LIMIT 100
"""  # noqa: S608  constants
_DUE_SUSPECT = _due(f"id = ANY(ARRAY({_SUSPECTS})) AND {IS_NOT_PAUSED}")
_IS_SUSPECT_DUE = f"""
SELECT EXISTS (SELECT FROM hookonce.events WHERE id = ANY(ARRAY({_SUSPECTS})) AND {IS_NOT_PAUSED})
"""  # noqa: S608  constants
# Without their bodies: to be parked they need none.
DUE_HEAD = f"""
SELECT {", ".join(name if name in IN_EVENTS else "NULL" for name in ClaimedEvent._fields)} FROM hookonce.events
WHERE {IS_DUE_SINCE} AND {IS_NOT_PAUSED} AND status <> '{EventStatus.RUNNING}'
ORDER BY due_at LIMIT {_HEAD} FOR UPDATE SKIP LOCKED
"""  # noqa: S608  constants


def locked(
    connection: psycopg.Connection, ids: Sequence[int] | None, limit: int, cursor: DueCursor
) -> tuple[list[ClaimedEvent], list[int]]:
    """Lock due events, those of `ids` or the first that are found; return them, and the ids of unreadable ones."""
    if ids is not None:
        return _locked(connection, _DUE_NAMED, limit, ids=list(ids))
    for look in cursor.looks():
        if look.beside:
            sources, types = zip(*look.beside, strict=True)
            due, odd = _locked(connection, _DUE_BESIDE, limit, sources=list(sources), types=list(types))
        else:
            due, odd = _locked(connection, _DUE_ANY, limit, since=look.since)
        cursor.found(look, due, limit)
        if due or odd:
            break
    return due, odd


def suspect(connection: psycopg.Connection, handlers: Sequence[str]) -> tuple[list[ClaimedEvent], list[int]]:
    """Lock one event that has a suspect of these handlers which is due, and return it as `locked` does."""
    return _locked(connection, _DUE_SUSPECT, 1, handlers=list(handlers))


def is_suspect_due(connection: psycopg.Connection, handlers: Sequence[str]) -> bool:
    """Return whether there is a suspect of these handlers to be run."""
    with connection.transaction():
        row = connection.execute(_IS_SUSPECT_DUE, {"handlers": list(handlers)}, prepare=True).fetchone()
    return bool(row and row[0])


def locked_named(connection: psycopg.Connection, ids: Sequence[int]) -> list[ClaimedEvent]:
    """Lock those of these events that are due; leave out what can't be read."""
    return _locked(connection, _DUE_NAMED, len(ids), ids=list(ids))[0]


def _locked(
    connection: psycopg.Connection, query: str, limit: int, **wanted: object
) -> tuple[list[ClaimedEvent], list[int]]:
    values = wanted | {"limit": limit, "heavy": HEAVY}
    rows = connection.cursor(row_factory=args_row(ClaimedEvent))
    return unreadable.sort_out(rows.execute(query, values, prepare=True, binary=True))
