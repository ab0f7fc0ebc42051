"""Finds runs that are under a claim's token while there is no such claim: no lease of theirs ever ends.

There must never be one: a claim is written with its rows of the queue, and forgotten after the last of them. So one is
a mistake of ours, or of whoever wrote into the tables by hand. Such a run is given a claim again: the worker that is
at it renews that, and if there is none it is taken over as any other (`receiver.ledger.runs.takeover`).
"""

from datetime import timedelta

import psycopg

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
_FOUND = f"SELECT q.event {_UNCLAIMED} ORDER BY q.event DESC"


def claim_again(connection: psycopg.Connection, first: int, end: int) -> list[int]:
    """Give runs of events from `first` to before `end` their claim again; return the events of those that had none."""
    values = {"first": first, "end": end, "lease": RENEWED_WITHIN}
    return [event for (events,) in connection.execute(_CLAIM, values, prepare=True) for event in events]


def found(connection: psycopg.Connection, longest: timedelta) -> list[int]:
    """Return the events of runs without their claim, newest first. Raises `QueryCanceled` if that takes too long."""
    with connection.transaction():
        connection.execute(f"SET LOCAL statement_timeout = {longest // timedelta(milliseconds=1)}")
        return [event for (event,) in connection.execute(_FOUND)]
