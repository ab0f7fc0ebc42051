"""Looks for events that are lost: which came, and of which there is neither anything to do nor anything that was done.

There must never be one: what takes an event in gives it its row in the queue by the same statement, and what takes
that row away leaves an outcome. So one is a mistake of ours, or of whoever wrote into the tables by hand, and is said
loudly. A replay puts it back into the queue.

The sweeps look through the whole ledger, newest first, together: a few slices at each of their turns. On that way they
also find runs that are under a claim's token while there is no such claim, so that no lease of theirs ever ends. There
must never be one of these either: a claim is written with its rows of the queue, and forgotten after the last of them.
Such a run is given a claim again: the worker that is at it renews that, and if there is none it is taken over as any
other (`receiver.ledger.runs.takeover`).
"""

import logging
import time
from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.states import EventStatus

log = logging.getLogger(__name__)

RENEWED_WITHIN = timedelta(seconds=30)
"""Time for the worker that is at such a run, if there is one, to renew its claim: as long as any lease."""

# One statement sees a row and its claim, or neither. Where a row has ended since, its claim is of nothing, and goes.
_UNCLAIMED = """
FROM hookonce.queue q WHERE q.token IS NOT NULL AND NOT EXISTS (SELECT FROM hookonce.claims c WHERE c.token = q.token)
"""
_CLAIM = f"""
INSERT INTO hookonce.claims (token, lease_until, events, places, slots)
SELECT q.token, now() + %(lease)s, array_agg(q.event ORDER BY q.event, q.n), array_agg(q.n ORDER BY q.event, q.n),
       count(*)
{_UNCLAIMED} AND q.event >= %(first)s AND q.event < %(end)s
GROUP BY q.token ON CONFLICT (token) DO NOTHING RETURNING events
"""
_ALL_UNCLAIMED = f"SELECT q.event {_UNCLAIMED} ORDER BY q.event DESC"


def claim_again(connection: psycopg.Connection, first: int, end: int) -> list[int]:
    """Give runs of events from `first` to before `end` their claim again; return the events of those that had none."""
    values = {"first": first, "end": end, "lease": RENEWED_WITHIN}
    return [event for (events,) in connection.execute(_CLAIM, values, prepare=True) for event in events]


def unclaimed(connection: psycopg.Connection, longest: timedelta) -> list[int]:
    """Return the events of runs without their claim, newest first. Raises `QueryCanceled` if that takes too long."""
    with connection.transaction():
        connection.execute(f"SET LOCAL statement_timeout = {longest // timedelta(milliseconds=1)}")
        return [event for (event,) in connection.execute(_ALL_UNCLAIMED)]


SLICE = 5_000
"""Ids that are looked through together."""
TURN_INTERVAL = timedelta(seconds=2)
"""How often the sweeps, together, go on."""
TURN_LENGTH = timedelta(milliseconds=25)
"""How long they are at it, but for a slice that takes longer."""
_REST = 100
"""Times as long as a turn took, the next one waits: the database is kept busy for a hundredth of the time."""
_LOOKED_AT_AGAIN = 4
"""Slices that had lost events: by now these may have been replayed."""
NAMED = 20
"""Of a slice, the events that are named."""


UNCLAIMED = "%s runs were under a claim that there is not, and were given one again; please report it"


class LostEvent(NamedTuple):
    """An event of which nothing is left but that it came."""

    id: int
    source: str


# One statement sees an event and its row in the queue, or its outcome, all at one moment; however young they are.
_LOST = """
SELECT id, source FROM hookonce.events e
WHERE id >= %(first)s AND id < %(end)s
      AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = e.id AND q.event >= %(first)s AND q.event < %(end)s)
      AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = e.id AND r.is_last
                      AND r.event >= %(first)s AND r.event < %(end)s)
ORDER BY id DESC
"""
_TOP = f"SELECT coalesce(max(id), 0) / {SLICE} FROM hookonce.events"  # noqa: S608  constants
_NEXT = (
    f"SELECT id / {SLICE} FROM hookonce.events WHERE id < (%s::bigint + 1) * {SLICE} ORDER BY id DESC LIMIT 1"  # noqa: S608
)

# The row is the lock, says where to go on, and in `count` for how many ms the sweeps rest after a turn: a sweep that
# finds it held, or moved lately, has no turn.
_BEGIN = """
INSERT INTO hookonce.lost_slices (slice, source, what, count, first_at)
SELECT -1, '', 'looked_for_lost', 0, '-infinity'
WHERE NOT EXISTS (SELECT FROM hookonce.lost_slices WHERE what = 'looked_for_lost')
"""
_TURN = """
SELECT slice FROM hookonce.lost_slices
WHERE what = 'looked_for_lost' AND (first_at < now() - greatest(%s, count * interval '1 ms') OR first_at > now())
LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_MOVE = """
UPDATE hookonce.lost_slices SET slice = %s, first_at = clock_timestamp(), count = %s WHERE what = 'looked_for_lost'
"""
_FORGET = "DELETE FROM hookonce.lost_slices WHERE slice = %s AND what = %s"
_KEEP = """
INSERT INTO hookonce.lost_slices (slice, source, what, count, first_at)
SELECT %(slice)s, source, %(what)s, count(*), min(received_at) FROM hookonce.events WHERE id = ANY(%(ids)s)
GROUP BY source
"""
_KNOWN = "SELECT DISTINCT slice FROM hookonce.lost_slices WHERE what = %s ORDER BY slice DESC"


def look(connection: psycopg.Connection) -> int:
    """Look through a few slices of the ledger, if it is this process's turn; return how many lost events they hold."""
    found = 0
    with connection.transaction():
        connection.execute(_BEGIN)
        turn = connection.execute(_TURN, [TURN_INTERVAL]).fetchone()
        if turn is None:
            return 0
        following, began = int(turn[0]), time.monotonic()
        for (known,) in connection.execute(_KNOWN, [EventStatus.LOST]).fetchmany(_LOOKED_AT_AGAIN):
            _keep(connection, known, of_slice(connection, known))
        if following < 0:
            following = _number(connection, _TOP)
        while following >= 0:
            lost = of_slice(connection, following)
            _keep(connection, following, lost)
            again = claim_again(connection, following * SLICE, (following + 1) * SLICE)
            if again:
                log.error(UNCLAIMED, len(again), extra={"events": again[:NAMED]})
            if lost:
                log.error("%s", words(lost), extra={"events": [event.id for event in lost[:NAMED]]})
            found += len(lost)
            following = _number(connection, _NEXT, following - 1)
            if time.monotonic() > began + TURN_LENGTH.total_seconds():
                break
        connection.execute(_MOVE, [following, round((time.monotonic() - began) * 1000 * _REST)])
    return found


def found_so_far(connection: psycopg.Connection, longest: timedelta) -> list[LostEvent]:
    """Return lost events, newest first: of slices where a sweep has found some, and of as many as there is time for."""
    deadline = time.monotonic() + longest.total_seconds()
    slices = {row[0] for row in connection.execute(_KNOWN, [EventStatus.LOST])}
    found = {event for number in slices for event in of_slice(connection, number)}
    following = _number(connection, _TOP)
    while following >= 0 and time.monotonic() < deadline:
        found.update(of_slice(connection, following))
        following = _number(connection, _NEXT, following - 1)
    return sorted(found, reverse=True)


def of_slice(connection: psycopg.Connection, number: int) -> list[LostEvent]:
    """Return the lost events of a slice, newest first."""
    ids = {"first": number * SLICE, "end": (number + 1) * SLICE}
    return [LostEvent(*row) for row in connection.execute(_LOST, ids)]


def words(lost: list[LostEvent]) -> str:
    """Say that events are lost, and what to do."""
    named = " ".join(str(event.id) for event in lost[:NAMED])
    more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
    return (
        f"of {len(lost)} {'event' if len(lost) == 1 else 'events'} there is neither an open run nor an outcome, so "
        f"nobody will run them: {named}{more}; put them back with `hookonce replay {named}`, and please report it"
    )


def _keep(connection: psycopg.Connection, number: int, lost: list[LostEvent]) -> None:
    connection.execute(_FORGET, [number, EventStatus.LOST])
    if lost:
        kept = {"slice": number, "what": EventStatus.LOST, "ids": [event.id for event in lost]}
        connection.execute(_KEEP, kept)


def _number(connection: psycopg.Connection, query: str, *values: int) -> int:
    row = connection.execute(query.encode(), values).fetchone()
    return int(row[0]) if row else -1
