"""Reads and locks rows of the queue for a claim: in the order of their due times, of named events, or by their word.

Three statements do so. Suspects and runs of batches are read by their word, from the index of what waits. How much
memory a batch may take is decided there: to read the bodies first would take the memory all the same, and a process
that is killed for it has leased nothing: the next worker would do the same again.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import args_row

from hookonce.receiver.ledger.reasons import BATCH, IS_DUE, IS_DUE_SINCE, IS_NOT_PAUSED, MAY_BE_CLAIMED
from hookonce.receiver.ledger.rows import values
from hookonce.receiver.ledger.runs.claimed import LEASE_IS_OVER, ClaimedEvent, QueuedRun
from hookonce.receiver.ledger.runs.due_cursor import DueCursor, Kind, SweepMark
from hookonce.receiver.ledger.states import Waits

log = logging.getLogger(__name__)

HEAVY = 256 * 1024
"""Bytes; bodies above this are loaded when their run starts, so that a claim of them does not fill the memory."""
HEAVY_COUNTS_AS = 4 * 1024 * 1024
"""Bytes of a batch that such a body is reckoned with."""
MAX_BYTES = 32 * 1024 * 1024
"""Of the bodies of one batch."""
HEAD = 1000
"""Due rows among which those that are to wait are given their word in one go."""
_LOOK = 1000
"""Due rows that are looked at to tell whether there is anything to do."""
_LATEST = 500
"""Due rows, the last, among which those are looked for that are not of the crowd at the head of the queue."""

OF_QUEUE = QueuedRun._fields[1:]
IN_EVENTS = values(ClaimedEvent, "events")
VALUES = {name: f"e.{name}" for name in IN_EVENTS} | values(ClaimedEvent, "bodies")
_WIDTH = len(ClaimedEvent._fields)
_QUEUED = ", ".join(OF_QUEUE)
_EVENT = "LEFT JOIN hookonce.events e ON e.id = d.event"
_BODY = "LEFT JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at"
# To be made to wait, rows need no bodies, and of their events no more than what a handler is found by.
_FOR_PLAN = dict.fromkeys(VALUES, "NULL") | {name: VALUES[name] for name in ("source", "provider", "type")}


def _columns(columns: dict[str, str]) -> str:
    """Return what is read of rows; an event that is gone has nothing but its id."""
    of_event = [f"{(columns | {'id': 'd.event'})[name]} AS {name}" for name in ClaimedEvent._fields]
    return ", ".join([*of_event, *(f"d.{name}" for name in OF_QUEUE)])


def reading(which: str, columns: dict[str, str] = VALUES, joined: str = f"{_EVENT} {_BODY}") -> str:
    """Return the statement that locks rows of the queue by a condition, those due first, and reads their events."""
    return f"""
WITH due AS MATERIALIZED (
    SELECT event, {_QUEUED} FROM hookonce.queue WHERE {which} ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
SELECT {_columns(columns)} FROM due d {joined} ORDER BY d.due_at, d.event, d.n
"""  # noqa: S608  constants


_IS_DUE_HERE = f"{IS_DUE_SINCE} AND {IS_NOT_PAUSED}"
_DUE = reading(_IS_DUE_HERE)
_DUE_FOR_PLAN = reading(_IS_DUE_HERE, _FOR_PLAN, _EVENT)
# Of named events; or among what has become due last, the first of each kind that is not left out. Written so that no
# index but that of the key fits: in the order of due times all that is due would be read for them.
_IS_DUE_BY_KEY = MAY_BE_CLAIMED.replace("waits IS NULL", "coalesce(waits, '') = ''")
_NAMED = reading(
    f"""{_IS_DUE_BY_KEY} AND event = ANY(coalesce(%(ids)s::bigint[], ARRAY(
        SELECT event FROM (SELECT event, due_at, source, type FROM hookonce.queue WHERE {IS_DUE}
                           ORDER BY due_at DESC LIMIT {_LATEST}) AS latest
        WHERE NOT EXISTS (SELECT FROM unnest(%(sources)s::text[], %(types)s::text[]) AS t (source, type)
                          WHERE (t.source, t.type) = (latest.source, latest.type))
        ORDER BY due_at LIMIT %(limit)s)))"""  # noqa: S608  constants
)

# A suspect that was due for long enough, where its handler is not paused or it is tried for a breaker. A run of a batch
# is due already.
_MAY_BE_TAKEN = f"""token IS NULL AND {IS_NOT_PAUSED} AND (waits <> '{Waits.SUSPECT}' OR due_at <= now() - %(wait)s
    AND (handler NOT IN (SELECT name FROM hookonce.pauses WHERE kind = 'handler')
         OR (handler, event) IN (SELECT handler, trying FROM hookonce.breakers)))"""  # noqa: S608  constants
# The smallest part of a batch first; in the index words of parts are in the order of their sizes.
_WORD = f"""coalesce((SELECT waits FROM hookonce.queue
        WHERE waits > %(word)s || ':' AND waits < %(word)s || ';' AND waiting_handler = h.name AND {_MAY_BE_TAKEN}
        ORDER BY waits LIMIT 1 FOR UPDATE SKIP LOCKED), %(word)s)"""  # noqa: S608  constants
_SIZE = f"""CASE WHEN octet_length(b.body) > %(heavy)s THEN {HEAVY_COUNTS_AS}
                 ELSE coalesce(octet_length(b.body), 0) END"""
# Few wait for more: until the first was due for long enough, or has a time of its rate, which it would miss. None waits
# for a time that is still to come: the clock was ahead when it was given.
_IS_UNRIPE = f"""coalesce(waits, '{Waits.BATCH}') = '{Waits.BATCH}'
    AND count(*) OVER () < %(limit)s AND sum({_SIZE}) OVER () <= %(most_bytes)s
    AND min(due_at) OVER () > now() - %(wait)s AND min(due_at) OVER () <= now()
    AND NOT bool_or(slot_at IS NOT NULL) OVER ()"""
_READ = [
    "CASE WHEN unripe IS NULL THEN body END" if name == "body" else name for name in ClaimedEvent._fields
]
_READ += OF_QUEUE
# Bodies are read beside the CTEs, never in one: PostgreSQL 18 initializes all CTEs anew to look again at a row that
# changed before it was locked, and frees with that what was to choose the partitions of those: it crashes.
_WAITING = f"""
WITH marked AS MATERIALIZED (
    SELECT q.* FROM unnest(%(handlers)s::text[]) AS h (name), LATERAL (
        SELECT event, {_QUEUED} FROM hookonce.queue
        WHERE waits = {_WORD} AND waiting_handler = h.name AND {_MAY_BE_TAKEN}
        ORDER BY event LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS q
    ORDER BY event LIMIT %(limit)s
), unmarked AS MATERIALIZED (
    SELECT event, {_QUEUED} FROM hookonce.queue
    WHERE {_IS_DUE_BY_KEY} AND event = ANY(ARRAY(
        SELECT event FROM (SELECT event, source, type, handler, attempts FROM hookonce.queue
                           WHERE {IS_DUE_SINCE} ORDER BY due_at
                           LIMIT CASE WHEN cardinality(%(types)s::text[]) = 0 THEN 0 ELSE 2 * %(limit)s END) AS head
        WHERE (handler IS NULL OR handler = ANY(%(handlers)s) AND attempts = 0)
              AND (source, type) IN (SELECT * FROM unnest(%(sources)s::text[], %(types)s::text[]))))
    ORDER BY due_at
    LIMIT (SELECT CASE WHEN bool_or(waits <> %(word)s) THEN 0 ELSE %(limit)s - count(*) END FROM marked)
    FOR UPDATE SKIP LOCKED
)
SELECT {", ".join(_READ)}, unripe, is_full FROM (
    SELECT {_columns(VALUES)}, row_number() OVER so_far AS number, sum({_SIZE}) OVER so_far AS bytes,
           CASE WHEN {_IS_UNRIPE} THEN least(%(wait)s - (now() - min(due_at) OVER ()), %(wait)s) END AS unripe,
           count(*) OVER () = %(limit)s OR sum({_SIZE}) OVER () > %(most_bytes)s AS is_full
    FROM (SELECT * FROM marked UNION ALL SELECT * FROM unmarked) AS d {_EVENT} {_BODY}
    WINDOW so_far AS (ORDER BY d.event ROWS UNBOUNDED PRECEDING)
) AS sized WHERE number = 1 OR bytes <= %(most_bytes)s ORDER BY id
"""  # noqa: S608  constants
_HAS_SUSPECT = f"""
SELECT EXISTS (SELECT FROM hookonce.queue WHERE waits = '{Waits.SUSPECT}' AND {_MAY_BE_TAKEN})
"""  # noqa: S608  constants


class Waiting(NamedTuple):
    """The rows that are read by their word, of these handlers: as many at most.

    A few runs of a batch may `wait` so long for others; a suspect is read once it was due for so long. Where due events
    of these `kinds` are many, `since` a time, they need no word: a batch is filled up with them.
    """

    word: Waits
    handlers: Sequence[str]
    most: int = 1
    wait: timedelta = timedelta(0)
    kinds: Sequence[Kind] = ()
    since: datetime | None = None


class Found(NamedTuple):
    """Rows that are locked, and the events of those that are gone.

    `unripe`: they are the few of a batch, and how long they wait for others; `is_full`: there may be more.
    """

    rows: Sequence[QueuedRun]
    gone: Sequence[int] = ()
    unripe: timedelta | None = None
    is_full: bool = False


def locked(connection: psycopg.Connection, ids: Sequence[int] | None, limit: int, cursor: DueCursor) -> Found:
    """Lock due rows, those of events `ids` or the first that are found."""
    if ids is not None:
        return _locked(connection, _NAMED, limit, ids=list(ids), sources=[], types=[])
    for look in cursor.looks():
        found = (
            _beside(connection, look.beside, limit)
            if look.beside
            else _locked(connection, _DUE, limit, since=look.since)
        )
        cursor.found(look, found.rows, limit)
        if found.rows or found.gone:
            break
    return found


def head(connection: psycopg.Connection, limit: int, since: datetime | None) -> Found:
    """Lock the first due rows, to plan them: of their events no more is read than what a handler is found by."""
    return _locked(connection, _DUE_FOR_PLAN, limit, since=since)


def _beside(connection: psycopg.Connection, crowd: Sequence[Kind], limit: int) -> Found:
    """Lock what has become due lately, of other kinds than these."""
    sources, types = zip(*crowd, strict=True)
    return _locked(connection, _NAMED, limit, ids=None, sources=list(sources), types=list(types))


def waiting(connection: psycopg.Connection, wanted: Waiting) -> Found:
    """Lock what waits by a word: the oldest suspect, or the smallest part of a batch, or what waits for one.

    Of a batch, as many as fit into the memory that it may take; one, whatever it takes.
    """
    given = {
        "handlers": list(wanted.handlers),
        "word": wanted.word,
        "wait": wanted.wait,
        "most_bytes": MAX_BYTES,
        "since": wanted.since,
        "sources": [source for source, _ in wanted.kinds],
        "types": [type_ for _, type_ in wanted.kinds],
    }
    return _locked(connection, _WAITING, wanted.most, **given)


def is_suspect_due(connection: psycopg.Connection, wait: timedelta) -> bool:
    """Return whether a suspect was due for so long, and may be run."""
    row = connection.execute(_HAS_SUSPECT, {"wait": wait}).fetchone()
    return bool(row and row[0])


class _Row(NamedTuple):
    run: QueuedRun
    unripe: timedelta | None
    is_full: bool


def _row(*row: object) -> _Row:
    unripe, is_full = row[_WIDTH + len(OF_QUEUE) :] or (None, False)
    queued = row[_WIDTH : _WIDTH + len(OF_QUEUE)]
    return _Row(QueuedRun(ClaimedEvent._make(row[:_WIDTH]), *queued), unripe, is_full)  # type: ignore[arg-type]


def _locked(connection: psycopg.Connection, query: str, limit: int, **wanted: object) -> Found:
    cursor = connection.cursor(row_factory=args_row(_row))
    cursor.execute(query, {"heavy": HEAVY, "limit": limit, **wanted}, prepare=True, binary=True)
    rows = cursor.fetchall()
    first = rows[0] if rows else None
    return Found(
        [row.run for row in rows if row.run.event.source],
        [row.run.event.id for row in rows if not row.run.event.source],
        first.unripe if first else None,
        first is not None and first.is_full,
    )


def forget(connection: psycopg.Connection, gone: Sequence[int]) -> None:
    """Take out of the queue runs of events that are gone, as only somebody who deletes rows by hand leaves them."""
    connection.execute(_FORGET, [list(gone)])
    log.error("taken out of the queue: runs of events that are not in the ledger any more: %s", gone)


_FORGET = """
DELETE FROM hookonce.queue q WHERE event = ANY(%s) AND token IS NULL
       AND NOT EXISTS (SELECT FROM hookonce.events e WHERE e.id = q.event)
"""
# Of those that are paused, and yet to be parked, no more than these are passed over: a worker parks them.
_ANYTHING_DUE = f"""
WITH head AS MATERIALIZED (
    SELECT source, type, due_at FROM hookonce.queue
    WHERE {IS_DUE_SINCE} ORDER BY due_at LIMIT {_LOOK})
SELECT EXISTS (SELECT FROM head WHERE {IS_NOT_PAUSED}) OR (SELECT count(*) FROM head) = {_LOOK}
           OR EXISTS (SELECT FROM hookonce.claims WHERE {LEASE_IS_OVER})
           OR EXISTS (SELECT FROM (SELECT token FROM hookonce.queue WHERE {BATCH.found_by("waits")}
                                   LIMIT {_LOOK}) AS batched WHERE token IS NULL),
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
