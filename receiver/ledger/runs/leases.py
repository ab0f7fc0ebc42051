"""Keeps what is claimed, and lets go of it: a lease is the claim's, renewed for all of its rows or for none.

A heartbeat renews it as long as the worker lives, however long its handlers take. A handler without an open transaction
opens short ones; each locks its row of the queue first, under the token: from then on nobody can take the run over
before that transaction has ended. All other attempts are fenced at their ends (`receiver.ledger.runs.ends`).
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from uuid import UUID

import psycopg

from hookonce.receiver.ledger.runs.claimed import LEASE, ClaimedEvent, ClaimedRun
from hookonce.receiver.ledger.runs.ends import lost

RENEW_INTERVAL = timedelta(seconds=5)
TRANSACTION_LIMIT = timedelta(seconds=20)
"""How long a transaction of a run with tx="none" may be open."""

_LOCK = (
    "SELECT FROM hookonce.queue WHERE event = %(event)s AND n = %(n)s AND token = %(token)s FOR NO KEY UPDATE"
)
_COUNT_OURS = """
SELECT count(*) FROM unnest(%s::bigint[], %s::smallint[]) AS t (event, n)
JOIN hookonce.queue q ON q.event = t.event AND q.n = t.n WHERE q.token = %s
"""
_RENEW = "UPDATE hookonce.claims SET lease_until = now() + %s WHERE token = ANY(%s) RETURNING token"
_RELEASE = """
WITH mine AS MATERIALIZED (
    SELECT q.event, q.n FROM hookonce.queue q JOIN unnest(%(events)s::bigint[], %(places)s::smallint[]) AS t (event, n)
        ON q.event = t.event AND q.n = t.n
    WHERE q.token = %(token)s ORDER BY q.event, q.n FOR UPDATE OF q
)
UPDATE hookonce.queue q SET token = NULL FROM mine WHERE q.event = mine.event AND q.n = mine.n RETURNING q.event
"""
# Whatever this process believes: a crash, or a failover, may have brought rows back whose ends it had seen.
_FORGET = """
DELETE FROM hookonce.claims c WHERE token = ANY(%s) AND NOT EXISTS (
    SELECT FROM unnest(c.events, c.places) AS t (event, n)
    JOIN hookonce.queue q ON q.event = t.event AND q.n = t.n WHERE q.token = c.token OFFSET 0)
"""
_START = "UPDATE hookonce.claims SET started_at = now() WHERE token = %s"
_BODY = "SELECT body, key_id FROM hookonce.bodies WHERE event = %s AND received_at = %s"


def lock(connection: psycopg.Connection, run: ClaimedRun) -> None:
    """Lock a run for the length of a transaction. Raises: `LeaseLost` if it is no longer ours."""
    if connection.execute(_LOCK, run.key._asdict(), prepare=True).fetchone() is None:
        raise lost([run], "this transaction has written nothing")


def are_ours(connection: psycopg.Connection, runs: Sequence[ClaimedRun]) -> bool:
    """Return whether runs of one claim are all still under our token."""
    places = [run.event.id for run in runs], [run.n for run in runs]
    row = connection.execute(_COUNT_OURS, [*places, runs[0].token]).fetchone()
    return row is not None and row[0] == len(runs)


def renew(connection: psycopg.Connection, tokens: Collection[UUID]) -> set[UUID]:
    """Renew the leases of claims; return those that are still ours. Committed."""
    with connection.transaction():
        return {token for (token,) in connection.execute(_RENEW, [LEASE, list(tokens)])}


def release(connection: psycopg.Connection, runs: Iterable[ClaimedRun]) -> list[int]:
    """Let go of runs that were not started: they are due as they were. Return their events. Committed."""
    by_claim: dict[UUID, list[ClaimedRun]] = {}
    for run in runs:
        by_claim.setdefault(run.token, []).append(run)
    events: set[int] = set()
    for token, rest in by_claim.items():
        values = {"events": [run.event.id for run in rest], "places": [run.n for run in rest], "token": token}
        with connection.transaction():
            events |= {event for (event,) in connection.execute(_RELEASE, values)}
    return sorted(events)


def forget(connection: psycopg.Connection, tokens: Collection[UUID]) -> None:
    """Delete claims of which no row is left, in the caller's transaction; others are left to a takeover."""
    connection.execute(_FORGET, [list(tokens)], prepare=True)


def note_start(connection: psycopg.Connection, run: ClaimedRun) -> None:
    """Write down that the handler of a suspect is about to be called: from now on its death is charged. Committed."""
    with connection.transaction():
        connection.execute(_START, [run.token])


def load_body(connection: psycopg.Connection, event: ClaimedEvent) -> tuple[bytes, str | None] | None:
    """Fetch the body of an event and the id of the key it is sealed with; None if retention has dropped it."""
    row = connection.execute(_BODY, [event.id, event.received_at]).fetchone()
    return (row[0], row[1]) if row else None
