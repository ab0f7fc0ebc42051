"""Rows that the ledger holds and Python can't: isolated, so that one of them does not fail a whole claim.

A moment of the year 1 is one, where the session's time zone is west of UTC: it lies before Python's first year there.
The rows are at the client already when that is found, so the transaction goes on.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import psycopg
from psycopg.rows import args_row, tuple_row

from hookonce.receiver.ledger.runs.claimed import ClaimedEvent
from hookonce.receiver.ledger.runs.decisions import Decide
from hookonce.receiver.ledger.states import RunStatus

log = logging.getLogger(__name__)

Row = TypeVar("Row")
_ERRORS = (psycopg.DataError, ValueError, RecursionError)
_ID = ClaimedEvent._fields.index("id")
_OPEN = """
SELECT e.id, e.source, e.provider, e.type, q.n, q.handler, q.cycle, q.attempts
FROM hookonce.queue q JOIN hookonce.events e ON e.id = q.event
WHERE e.id = ANY(%s) AND q.token IS NULL ORDER BY e.id, q.n FOR UPDATE OF q
"""
_FORGET = """
DELETE FROM hookonce.queue q WHERE event = ANY(%s) AND token IS NULL
       AND NOT EXISTS (SELECT FROM hookonce.events e WHERE e.id = q.event)
"""
_FROM = """
FROM hookonce.events e LEFT JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at
WHERE e.id = %(id)s
"""

# Dead under each handler that takes them, with the reason.
_BURY = f"""
WITH gone AS (
    DELETE FROM hookonce.queue WHERE event = %(event)s AND token IS NULL
), dead AS (
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
    SELECT %(event)s, handler, cycle, '{RunStatus.DEAD}', attempts + 1, now()
    FROM unnest(%(handlers)s::text[], %(cycles)s::int[], %(attempts)s::int[]) AS t (handler, cycle, attempts)
    RETURNING handler, cycle, attempts
)
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)
SELECT %(event)s, handler, cycle, attempts, %(error)s FROM dead
"""  # noqa: S608  constants


class _Run(NamedTuple):
    """A row of the queue whose event can't be read, but for what says who takes it."""

    event: int
    source: str
    provider: str
    type: str
    n: int
    handler: str | None
    cycle: int
    attempts: int


def sort_out(cursor: psycopg.Cursor[Row]) -> tuple[list[Row], list[int]]:
    """Return the rows that a cursor has fetched, in binary, and the events of those that can't be read."""
    try:
        return cursor.fetchall(), []
    except _ERRORS:
        if cursor.pgresult is None or not cursor.pgresult.ntuples:  # an error of the server's
            raise
    readable, odd = [], []
    for number in range(cursor.pgresult.ntuples):
        cursor.scroll(number, mode="absolute")
        try:
            readable.extend(cursor.fetchmany(1))
        except _ERRORS:
            odd.append(int.from_bytes(cursor.pgresult.get_value(number, _ID) or b""))
    return readable, odd


def bury(
    connection: psycopg.Connection,
    decide: Decide,
    events: Sequence[int],
    columns: Mapping[str, str],
    heavy: int,
) -> list[int]:
    """End the runs of events that can't be read as dead, each with one attempt: the others must go on.

    `columns`: what was read of an event. Return the events that nobody takes, which are left as they are.
    """
    by_event: defaultdict[int, list[_Run]] = defaultdict(list)
    for run in _open_runs(connection, events):
        by_event[run.event].append(run)
    if gone := [event for event in events if event not in by_event]:
        _forget(connection, gone)
    untaken = []
    for event, runs in by_event.items():
        dead = [
            (name, run.cycle, run.attempts)
            for run in runs
            for name in (
                decide.takers(run.source, run.provider, run.type) if run.handler is None else [run.handler]
            )
        ]
        if not dead:
            untaken.append(event)
            continue
        error = _reason(connection, event, columns, heavy)
        first = runs[0]
        log.error("%s", error, extra={"event": event, "source": first.source, "type": first.type})
        handlers, cycles, attempts = map(list, zip(*dead, strict=True))
        values = {
            "event": event,
            "handlers": handlers,
            "cycles": cycles,
            "attempts": attempts,
            "error": error,
        }
        connection.execute(_BURY, values)
    return untaken


def _open_runs(connection: psycopg.Connection, events: Sequence[int]) -> list[_Run]:
    """Lock what nobody is at of these events, and return it."""
    cursor = connection.cursor(row_factory=args_row(_Run))
    return cursor.execute(_OPEN, [list(events)]).fetchall()


def _forget(connection: psycopg.Connection, events: Sequence[int]) -> None:
    """Take out of the queue runs of events that are gone, as only somebody who deletes rows by hand leaves them."""
    connection.execute(_FORGET, [list(events)])
    log.error("taken out of the queue: runs of events that are not in the ledger any more: %s", events)


def _reason(connection: psycopg.Connection, event: int, columns: Mapping[str, str], heavy: int) -> str:
    """Return which columns of an event can't be read, and why."""
    found = []
    for name, column in columns.items():
        cursor = connection.cursor(row_factory=tuple_row)
        try:
            cursor.execute(f"SELECT {column} {_FROM}", {"id": event, "heavy": heavy}, binary=True).fetchall()
        except _ERRORS as error:
            found.append(f"{name} ({error})")
    return (
        f"this event can't be read from the ledger: {', '.join(found)}; correct its row, or the time zone of the "
        "session (`hookonce doctor` shows it), and replay it"
    )
