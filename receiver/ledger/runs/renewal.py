"""Keeps the leases of long runs, and lets nobody write for a run that is another's.

The handler of such a run has no transaction while it waits, so its lease says alone that somebody is at it: short, and
renewed by a heartbeat (docs/decisions/0020). Each transaction that it opens locks the run first, under its token: from
then on nobody can take the run over before that transaction has ended.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta

import psycopg

from hookonce.receiver.ledger.runs.claimed import LONG_LEASE, Attempt, ClaimedRun
from hookonce.receiver.ledger.runs.run_end import lost
from hookonce.receiver.ledger.states import RunStatus

RENEW_INTERVAL = timedelta(seconds=5)
TRANSACTION_LIMIT = timedelta(seconds=20)
"""How long a transaction of a long run may be open: its lease can't be renewed meanwhile, and must outlast it."""

_LOCK = f"""
SELECT FROM hookonce.runs WHERE event = %s AND handler = %s AND token = %s AND status = '{RunStatus.RUNNING}'
FOR NO KEY UPDATE
"""

# What is locked is in a transaction of its handler's, or ends just now: its turn comes again.
_RENEW = f"""
WITH ours AS MATERIALIZED (
    SELECT r.event, r.handler FROM hookonce.runs r
    JOIN unnest(%s::bigint[], %s::text[], %s::uuid[]) AS t (event, handler, token) USING (event, handler, token)
    WHERE r.status = '{RunStatus.RUNNING}' FOR NO KEY UPDATE OF r SKIP LOCKED
)
UPDATE hookonce.runs r SET lease_until = now() + %s, due_at = now() + %s
FROM ours WHERE (r.event, r.handler) = (ours.event, ours.handler)
"""  # noqa: S608  a constant


def lock(connection: psycopg.Connection, run: ClaimedRun) -> None:
    """Lock a started run for the length of a transaction. Raises: `LeaseLost` if it is no longer ours."""
    if connection.execute(_LOCK, [run.event.id, run.handler, run.token], prepare=True).fetchone() is None:
        raise lost(run, "this transaction has written nothing")


def renew(connection: psycopg.Connection, attempts: Collection[Attempt]) -> int:
    """Renew the leases of those that are still ours and not locked; return how many. Committed."""
    columns: Sequence[list[object]] = [list(column) for column in zip(*attempts, strict=True)]
    with connection.transaction():
        return connection.execute(_RENEW, [*columns, LONG_LEASE, LONG_LEASE]).rowcount
