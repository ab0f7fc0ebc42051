"""Reads and locks due rows of the queue for a batch: what one handler may take, and the bodies of as many as it will.

How much memory a batch may take is decided in the query. To read the bodies first would take the memory all the same,
and a process that is killed for it has leased nothing: whoever comes next would do the same again.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import tuple_row

from hookonce.receiver.ledger.reasons import IS_DUE_SINCE, MAY_BE_CLAIMED
from hookonce.receiver.ledger.runs import due_rows, unreadable
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, QueuedRun
from hookonce.receiver.ledger.runs.due_rows import HEAVY, OF_QUEUE, VALUES

REACH = 1000
"""Due rows at least, those due first, among which a look begins."""
HEAVY_COUNTS_AS = 4 * 1024 * 1024
"""Bytes that a body is reckoned with that is loaded when its turn comes."""

# Of those due first, the ones that a handler of batches may take: its own runs that have not failed alone, and events
# of its places and types that no worker has met, each alone in the queue. OFFSET 0: row by row, whatever the planner
# thinks of the tables.
_IS_OWN = "(handler = %(handler)s AND attempts = 0 OR handler IS NULL)"
_IS_TAKEN = """EXISTS (
    SELECT FROM unnest(%(places)s::text[], %(types)s::text[]) AS t (place, type)
    WHERE head.type LIKE t.type
          AND (head.source = t.place
               OR EXISTS (SELECT FROM hookonce.events e WHERE e.id = head.event
                              AND replace(e.provider, '-', '_') = replace(t.place, '-', '_') OFFSET 0)) OFFSET 0)"""
_OF_BATCH = f"""{MAY_BE_CLAIMED} AND {_IS_OWN} AND event = ANY(ARRAY(
        SELECT event FROM (SELECT event, source, type, handler, attempts FROM hookonce.queue
                           WHERE {IS_DUE_SINCE}
                           ORDER BY due_at LIMIT %(reach)s) AS head
        WHERE {_IS_OWN} AND (handler IS NOT NULL OR {_IS_TAKEN})
        UNION SELECT unnest(%(ids)s::bigint[])
        EXCEPT SELECT unnest(events) FROM hookonce.batches WHERE handler = %(handler)s))"""  # noqa: S608  constants

# With the bodies of what will be taken, and no others: of those due first as many as the memory is for, and none where
# all of them wait for more.
_SIZE = f"""CASE WHEN octet_length(b.body) > %(heavy)s THEN {HEAVY_COUNTS_AS}
                 ELSE coalesce(octet_length(b.body), 0) END"""
_JOINED = """due d JOIN hookonce.events e ON e.id = d.event
    LEFT JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at"""
_TAKEN_BODY = f"""CASE WHEN sum({_SIZE}) OVER so_far <= %(most_bytes)s
            AND NOT ((SELECT count(*) < %(limit)s AND min(due_at) > now() - %(wait)s::interval FROM due)
                     AND (SELECT sum({_SIZE}) <= %(most_bytes)s FROM {_JOINED}))
       THEN {VALUES["body"]} END"""  # noqa: S608  constants
_DUE_BATCH = f"""
WITH due AS MATERIALIZED (
    SELECT event, {", ".join(OF_QUEUE)} FROM hookonce.queue
    WHERE {_OF_BATCH}
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
SELECT {", ".join((VALUES | {"body": _TAKEN_BODY})[name] for name in ClaimedEvent._fields)},
       {", ".join(f"d.{name}" for name in OF_QUEUE)}, sum({_SIZE}) OVER so_far
FROM {_JOINED}
WINDOW so_far AS (ORDER BY d.due_at, d.event ROWS UNBOUNDED PRECEDING)
ORDER BY d.due_at, d.event
"""  # noqa: S608  constants

# How far a look of so many reaches, unless it sees all there is.
_END_OF_REACH = f"""
SELECT CASE WHEN count(*) = %(reach)s THEN max(due_at) END
FROM (SELECT due_at FROM hookonce.queue WHERE {IS_DUE_SINCE} ORDER BY due_at LIMIT %(reach)s) AS head
"""  # noqa: S608  constants


class DueForBatch(NamedTuple):
    """Due rows that a batch may take, in their order; `totals`: the bytes of each one's body and of all before it."""

    rows: list[QueuedRun]
    totals: list[int]


class Wanted(NamedTuple):
    """What a handler of batches may take, and as much as it takes at most.

    `patterns`: places and types, with `*` for any characters. `most_bytes` of bodies; what is beyond is not
    read, and nothing is where all wait for others, which each does for `wait`.
    """

    handler: str
    patterns: Sequence[tuple[str, str]]
    most: int
    most_bytes: int
    wait: timedelta


def locked(
    connection: psycopg.Connection, wanted: Wanted, ids: Sequence[int], since: datetime | None, reach: int
) -> DueForBatch:
    """Lock due rows that a handler may take, among the `reach` due first since a time; in their order.

    And those of events `ids`. Left out is what is to be tried by itself.
    """
    values = {
        "handler": wanted.handler,
        "places": [place for place, _ in wanted.patterns],
        "types": [_like(pattern) for _, pattern in wanted.patterns],
        "ids": list(ids),
        "since": since,
        "reach": reach,
        "limit": wanted.most,
        "most_bytes": wanted.most_bytes,
        "wait": wanted.wait,
        "heavy": HEAVY,
    }
    cursor = connection.cursor(row_factory=tuple_row)
    rows, _ = unreadable.sort_out(cursor.execute(_DUE_BATCH, values, prepare=True, binary=True))
    return DueForBatch([due_rows.queued(*row[:-1]) for row in rows], [row[-1] for row in rows])


def end_of_reach(connection: psycopg.Connection, since: datetime | None, reach: int) -> datetime | None:
    """Return when the last was due of the `reach` rows due first since a time; None if there are fewer."""
    row = connection.execute(_END_OF_REACH, {"since": since, "reach": reach}, prepare=True).fetchone()
    return row[0] if row else None


def _like(pattern: str) -> str:
    """Return a pattern as LIKE has it."""
    for special in ("\\", "%", "_"):
        pattern = pattern.replace(special, "\\" + special)
    return pattern.replace("*", "%")
