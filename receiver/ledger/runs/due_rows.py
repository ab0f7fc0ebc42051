"""Reads and locks rows of the queue for a claim: those of named events, or the first that its cursor leads to."""

from collections.abc import Sequence

import psycopg
from psycopg.rows import args_row

from hookonce.receiver.ledger.columns import values
from hookonce.receiver.ledger.reasons import IS_DUE, IS_DUE_SINCE, IS_NOT_PAUSED, MAY_BE_CLAIMED
from hookonce.receiver.ledger.runs import unreadable
from hookonce.receiver.ledger.runs.claimed import LEASE_IS_OVER, ClaimedEvent, QueuedRun
from hookonce.receiver.ledger.runs.due_cursor import DueCursor, Kind, SweepMark
from hookonce.receiver.ledger.states import Waits

HEAVY = 256 * 1024
"""Bytes; bodies above this are loaded when their run starts, so that a claim of them does not fill the memory."""
HEAD = 1000
"""Due rows among which those of paused handlers are made to wait in one go."""
_LOOK = 1000
"""Due rows that are looked at to tell whether there is anything to do."""
_LATEST = 500
"""Due rows, the last, among which those are looked for that are not of the crowd at the head of the queue."""

OF_QUEUE = QueuedRun._fields[1:]
IN_EVENTS = values(ClaimedEvent, "events")
VALUES = {name: f"e.{name}" for name in IN_EVENTS} | values(ClaimedEvent, "bodies")
_WIDTH = len(ClaimedEvent._fields)


def reading(which: str, columns: dict[str, str] = VALUES, *, order: str = "due_at") -> str:
    """Return the statement that locks rows of the queue by a condition, and reads them with their events.

    An event that is gone has nothing but its id.
    """
    columns = columns | {"id": "d.event"}
    return f"""
WITH due AS MATERIALIZED (
    SELECT event, {", ".join(OF_QUEUE)} FROM hookonce.queue
    WHERE {which}
    ORDER BY {order} LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
SELECT {", ".join(columns[name] for name in ClaimedEvent._fields)}, {", ".join(f"d.{name}" for name in OF_QUEUE)}
FROM due d LEFT JOIN hookonce.events e ON e.id = d.event
LEFT JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at
ORDER BY d.{order}, d.event, d.n
"""  # noqa: S608  constants


_DUE_ANY = reading(f"{IS_DUE_SINCE} AND {IS_NOT_PAUSED}")
# Written so that no index but that of the key fits: in the order of due times all that is due would be read for them.
_NAMED = MAY_BE_CLAIMED.replace("waits IS NULL", "coalesce(waits, '') = ''") + " AND event = ANY(%(ids)s)"
_DUE_NAMED = reading(_NAMED)
_DUE_OF_HANDLER = reading(f"{_NAMED} AND handler = %(handler)s")

# Among what has become due last, the first of each kind that is not left out.
_BESIDE = f"""
SELECT event FROM (SELECT event, due_at, source, type FROM hookonce.queue WHERE {IS_DUE}
                   ORDER BY due_at DESC LIMIT {_LATEST}) AS latest
WHERE NOT EXISTS (SELECT FROM unnest(%(sources)s::text[], %(types)s::text[]) AS t (source, type)
                  WHERE (t.source, t.type) = (latest.source, latest.type))
ORDER BY due_at LIMIT %(limit)s
"""  # noqa: S608  constants

# Of handlers that are here, neither they nor their sources paused; or it is tried for a breaker.
_IS_SUSPECT_DUE = f"""waits = '{Waits.SUSPECT}' AND waiting_handler = ANY(%(handlers)s)
    AND token IS NULL AND due_at <= now() AND (handler NOT IN (SELECT name FROM hookonce.pauses WHERE kind = 'handler')
         OR (handler, event) IN (SELECT handler, trying FROM hookonce.breakers)) AND {IS_NOT_PAUSED}"""  # noqa: S608
_SUSPECT = reading(_IS_SUSPECT_DUE, order="event")
_HAS_SUSPECT = f"SELECT EXISTS (SELECT FROM hookonce.queue WHERE {_IS_SUSPECT_DUE})"  # noqa: S608  constants

# To be made to wait, they need no bodies.
_WITHOUT_BODIES = VALUES | {name: "NULL" for name in ClaimedEvent._fields if name not in IN_EVENTS}
_HEAD = reading(f"{IS_DUE_SINCE} AND {IS_NOT_PAUSED}", _WITHOUT_BODIES)


def locked(
    connection: psycopg.Connection, ids: Sequence[int] | None, limit: int, cursor: DueCursor
) -> tuple[list[QueuedRun], list[int]]:
    """Lock due rows, those of events `ids` or the first that are found; return them, and the events unreadable."""
    if ids is not None:
        return _locked(connection, _DUE_NAMED, limit, ids=list(ids))
    for look in cursor.looks():
        if look.beside:
            ids = _beside(connection, look.beside, limit)
            due, odd = _locked(connection, _DUE_NAMED, limit, ids=ids) if ids else ([], [])
        else:
            due, odd = _locked(connection, _DUE_ANY, limit, since=look.since)
        cursor.found(look, due, limit)
        if due or odd:
            break
    return due, odd


def _beside(connection: psycopg.Connection, crowd: Sequence[Kind], limit: int) -> list[int]:
    """Return the events that have become due lately, those of some kinds left out."""
    sources, types = zip(*crowd, strict=True)
    values = {"sources": list(sources), "types": list(types), "limit": limit}
    return [event for (event,) in connection.execute(_BESIDE, values, prepare=True)]


def suspect(connection: psycopg.Connection, handlers: Sequence[str]) -> tuple[list[QueuedRun], list[int]]:
    """Lock one suspect of these handlers that is due, the oldest; return it as `locked` does."""
    return _locked(connection, _SUSPECT, 1, handlers=list(handlers))


def is_suspect_due(connection: psycopg.Connection, handlers: Sequence[str]) -> bool:
    """Return whether there is a suspect of these handlers to be run."""
    with connection.transaction():
        row = connection.execute(_HAS_SUSPECT, {"handlers": list(handlers)}, prepare=True).fetchone()
    return bool(row and row[0])


def head(connection: psycopg.Connection, cursor: DueCursor) -> list[QueuedRun]:
    """Lock the first `HEAD` due rows, without the bodies of their events."""
    return _locked(connection, _HEAD, HEAD, since=cursor.since)[0]


def of_handler(connection: psycopg.Connection, handler: str, ids: Sequence[int]) -> list[QueuedRun]:
    """Lock a handler's rows of these events that are due; leave out what can't be read."""
    return _locked(connection, _DUE_OF_HANDLER, len(ids), ids=list(ids), handler=handler)[0]


def queued(*row: object) -> QueuedRun:
    """Return a row that was read by one of these statements."""
    return QueuedRun(ClaimedEvent._make(row[:_WIDTH]), *row[_WIDTH:])  # type: ignore[arg-type]


def _locked(
    connection: psycopg.Connection, query: str, limit: int, **wanted: object
) -> tuple[list[QueuedRun], list[int]]:
    cursor = connection.cursor(row_factory=args_row(queued))
    cursor.execute(query, wanted | {"limit": limit, "heavy": HEAVY}, prepare=True, binary=True)
    rows, odd = unreadable.sort_out(cursor)
    return [row for row in rows if row.event.source], odd + [
        row.event.id for row in rows if not row.event.source
    ]


# Of those that are paused, and yet to be parked, no more than these are passed over: a worker parks them.
_ANYTHING_DUE = f"""
WITH head AS MATERIALIZED (
    SELECT source, type, due_at FROM hookonce.queue
    WHERE {IS_DUE_SINCE} ORDER BY due_at LIMIT {_LOOK})
SELECT EXISTS (SELECT FROM head WHERE {IS_NOT_PAUSED}) OR (SELECT count(*) FROM head) = {_LOOK}
           OR EXISTS (SELECT FROM hookonce.claims WHERE {LEASE_IS_OVER}),
       coalesce((SELECT min(due_at) FROM head), now())
"""  # noqa: S608  constants


def is_anything_due(connection: psycopg.Connection, mark: SweepMark | None = None) -> bool:
    """Return whether there is something to do for a worker: to be claimed, to be taken over, or much to be parked.

    `mark` says from where on to look, and is told what was found.
    """
    mark = mark or SweepMark()
    row = connection.execute(_ANYTHING_DUE, {"since": mark.look()}).fetchone()
    is_due, first = row or (False, None)
    if first is not None:
        mark.found(first)
    return bool(is_due)
