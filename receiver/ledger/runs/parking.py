"""Parks what is paused, so that no claim has to look at it, and makes it due again when the pause is over.

A pause is one row, written at once; claims and sweeps then park what they meet, a batch at a time, while they hold
that row `FOR SHARE`. The command that ends the pause deletes the row first, which waits for them, and un-parks by
index after that: whatever was parked for that pause is then committed and found. If it is stopped halfway, a sweep
goes on: what is parked under a pause that is gone is un-parked, whoever left it.

What may be paused, and how that is told, is in `receiver.ledger.reasons`. Runs of paused handlers are parked by claims
only (hookonce.receiver.ledger.runs.claims): which handlers take an event, workers alone know. A suspect stays one,
whatever is paused: claims pass it over.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.ledger import reasons
from hookonce.receiver.ledger.reasons import BATCH, IS_DUE_SINCE, IS_OF_ROWS, MATCHES, PAUSES
from hookonce.receiver.ledger.runs import queue_pages
from hookonce.receiver.ledger.states import Waits

PARK_BATCH = 2500
"""Due runs among which those that are paused are parked in one go; it takes some 100 ms."""
_MET = 100
"""Runs at the head of the queue: if none of these is to be parked, claims have little to pass over."""
UNPARK_BATCH = 1000
SWEEP_TURN = timedelta(milliseconds=500)
"""How long a sweep goes on with what was left parked."""


# The row of a pause is locked only where there is something to park: otherwise claims would write to it all the time.
def _park(due: str) -> str:
    """Return the statement that parks what is paused by its row, among the first rows of the queue by a condition."""
    return f"""
WITH met AS MATERIALIZED (
    SELECT source, type FROM hookonce.queue
    WHERE EXISTS (SELECT FROM hookonce.pauses WHERE {IS_OF_ROWS}) AND {due} LIMIT {_MET}
), paused AS MATERIALIZED (
    SELECT kind, name FROM hookonce.pauses WHERE {IS_OF_ROWS} AND EXISTS (SELECT FROM met WHERE {MATCHES}) FOR SHARE
), head AS MATERIALIZED (
    SELECT event, n, waits, source, type FROM hookonce.queue
    WHERE EXISTS (SELECT FROM paused) AND {due} LIMIT {PARK_BATCH}
), found AS MATERIALIZED (
    SELECT event, n, waits AS before,
           (SELECT kind || ':' || name FROM paused WHERE {MATCHES} ORDER BY kind, name LIMIT 1) AS waits
    FROM head
), mine AS MATERIALIZED (
    SELECT q.event, q.n, found.waits FROM found JOIN hookonce.queue q USING (event, n)
    WHERE found.waits IS NOT NULL AND due_at <= now() AND q.waits IS NOT DISTINCT FROM found.before AND token IS NULL
    FOR UPDATE OF q SKIP LOCKED
)
UPDATE hookonce.queue q SET waits = mine.waits FROM mine WHERE (q.event, q.n) = (mine.event, mine.n)
"""  # noqa: S608  constants


_PARK_ROWS = _park(f"{IS_DUE_SINCE} ORDER BY due_at")
_PARK_BATCH = _park(
    f"waits = '{Waits.BATCH}' AND waiting_handler = %(handler)s AND token IS NULL ORDER BY event"
)
_UNBATCH = f"""
UPDATE hookonce.queue SET waits = NULL WHERE (event, n) IN (
    SELECT event, n FROM hookonce.queue WHERE {BATCH.found_by("waits")} AND waiting_handler = ANY(%s) AND token IS NULL
    ORDER BY event, n LIMIT {UNPARK_BATCH} FOR UPDATE SKIP LOCKED)
"""  # noqa: S608  constants
_LOCK_PAUSES = "SELECT name FROM hookonce.pauses WHERE kind = %s AND name = ANY(%s) ORDER BY name FOR SHARE"


def _unpark(whose: str) -> str:
    # By events and not by the index of what waits, which may hold a million: whatever the planner thinks of the table.
    is_parked = f"waits IS NOT DISTINCT FROM %(waits)s AND {whose}"
    return f"""
WITH page AS MATERIALIZED (
    SELECT event FROM hookonce.queue WHERE waits = %(waits)s AND {whose} AND event > %(after)s
    ORDER BY event LIMIT {UNPARK_BATCH}
), mine AS MATERIALIZED (
    SELECT event FROM hookonce.queue WHERE event = ANY(ARRAY(SELECT event FROM page)) AND {is_parked}
    ORDER BY event FOR UPDATE
), unparked AS (
    UPDATE hookonce.queue SET waits = NULL, due_at = least(due_at, now())
    WHERE event = ANY(ARRAY(SELECT event FROM mine)) AND {is_parked}
)
SELECT max(event) FROM page
"""  # noqa: S608  constants


_UNPARK_HANDLER = _unpark("waiting_handler = %(handler)s")
_UNPARK_UNTRIAGED = _unpark("waiting_handler IS NULL")

# Jump from one name to the next in the index.
_HANDLERS_PARKED = """
WITH RECURSIVE named AS (
    (SELECT waiting_handler AS handler FROM hookonce.queue WHERE waits = %(waits)s ORDER BY waiting_handler LIMIT 1)
    UNION ALL
    SELECT (SELECT q.waiting_handler FROM hookonce.queue q
            WHERE q.waits = %(waits)s AND q.waiting_handler > named.handler ORDER BY q.waiting_handler LIMIT 1)
    FROM named WHERE named.handler IS NOT NULL)
SELECT handler FROM named WHERE handler IS NOT NULL
"""
_NAMES_PARKED = """
WITH RECURSIVE named AS (
    (SELECT waits FROM hookonce.queue WHERE waits > %(prefix)s ORDER BY waits LIMIT 1)
    UNION ALL
    SELECT (SELECT q.waits FROM hookonce.queue q WHERE q.waits > named.waits ORDER BY q.waits LIMIT 1)
    FROM named WHERE starts_with(named.waits, %(prefix)s))
SELECT substr(waits, length(%(prefix)s) + 1) FROM named WHERE starts_with(waits, %(prefix)s)
"""
_PAUSED = "SELECT name FROM hookonce.pauses WHERE kind = %s"

# What waits, for its next attempt or for a worker that knows its handler, is due at once.
_HASTEN = {
    kind: queue_pages.change_page(pause.of("%(name)s"), "due_at = now()") for kind, pause in PAUSES.items()
}


def park_rows(connection: psycopg.Connection, since: datetime | None = None) -> int:
    """Park what is due and told by its row to be paused, `PARK_BATCH` runs at most; return how many were. Committed.

    What was due before `since` is passed over.
    """
    with connection.transaction():
        return connection.execute(_PARK_ROWS, {"since": since}).rowcount


def park_batch(connection: psycopg.Connection, handler: str) -> int:
    """Park what waits for a batch of a handler, as `park_rows` does with what is due. Committed."""
    with connection.transaction():
        return connection.execute(_PARK_BATCH, {"handler": handler}).rowcount


def unbatch(connection: psycopg.Connection, handlers: Sequence[str]) -> None:
    """Make due what waits for batches of handlers that take none any more. Committed page by page."""
    count = UNPARK_BATCH
    while count == UNPARK_BATCH:
        with connection.transaction():
            count = connection.execute(_UNBATCH, [list(handlers)]).rowcount


def lock_pauses(connection: psycopg.Connection, kind: str, names: set[str]) -> set[str]:
    """Keep pauses from being ended before this transaction is; return those of `names` that there still are."""
    return {row[0] for row in connection.execute(_LOCK_PAUSES, [kind, sorted(names)])}


def unpark(connection: psycopg.Connection, kind: str, name: str, until: float | None = None) -> bool:
    """Make due what is parked for a pause, retries included; return whether nothing is left.

    The pause must be over: a claim would park it again. Committed batch by batch; ends `until` a time of our
    monotonic clock.
    """
    waits = reasons.word_of(kind, name)
    if PAUSES[kind].by_plan:
        return _unpark_runs(connection, waits, name, until)
    handlers = [row[0] for row in connection.execute(_HANDLERS_PARKED, {"waits": waits})]
    return all(_unpark_runs(connection, waits, handler, until) for handler in [*handlers, None])


def _unpark_runs(
    connection: psycopg.Connection, waits: str, handler: str | None, until: float | None
) -> bool:
    statement = _UNPARK_UNTRIAGED if handler is None else _UNPARK_HANDLER
    values = {"waits": waits, "handler": handler, "after": 0}
    while True:
        with connection.transaction():
            row = connection.execute(statement, values).fetchone()
        if row is None or row[0] is None:
            return True
        values["after"] = row[0]
        if until is not None and time.monotonic() > until:
            return False


def hasten(connection: psycopg.Connection, kind: str, name: str) -> None:
    """Make due at once what waits for its time and is not parked, of what was paused. Committed in pages."""
    queue_pages.change_later(connection, _HASTEN[kind], {"name": name})


def unpark_left(connection: psycopg.Connection) -> None:
    """Un-park what is parked under a pause that is gone, for `SWEEP_TURN` at most. Safe in many processes at once."""
    until = time.monotonic() + SWEEP_TURN.total_seconds()
    for kind, pause in PAUSES.items():
        word = reasons.word_of(kind, "")
        query, values = (
            (_HANDLERS_PARKED, {"waits": word}) if pause.by_plan else (_NAMES_PARKED, {"prefix": word})
        )
        names = [row[0] for row in connection.execute(query, values)]
        paused = {row[0] for row in connection.execute(_PAUSED, [kind])}
        for name in names:
            if name not in paused and not unpark(connection, kind, name, until):
                return
