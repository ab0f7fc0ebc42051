"""Events that nobody took, taken up again by a worker whose handlers take them.

In a rolling deploy the old workers ignore what only the new ones know.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

import psycopg

from hookonce.receiver.ledger.id_at_time import first_since
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import event_counts

# An event that its source does not accept says so, and stays ignored.
_IS_UNTAKEN = f"""r.status = '{EventStatus.IGNORED}' AND r.is_last
      AND NOT EXISTS (SELECT FROM hookonce.failures f WHERE f.event = r.event AND f.handler = '')"""
_KINDS = f"""
SELECT DISTINCT e.source, e.provider, e.type FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event
WHERE {_IS_UNTAKEN} AND r.event >= %s
"""  # noqa: S608  constants
_REQUEUE = f"""
WITH asked AS MATERIALIZED (
    SELECT e.id, e.source, e.type, e.received_at FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event
    JOIN unnest(%s::text[], %s::text[], %s::text[]) AS t (source, provider, type) USING (source, provider, type)
    WHERE {_IS_UNTAKEN} AND r.event >= %s
    ORDER BY e.id FOR UPDATE OF e
), woken AS (
    DELETE FROM hookonce.runs r USING asked
    WHERE r.event = asked.id AND r.handler = '' AND r.status = '{EventStatus.IGNORED}' AND r.is_last
    RETURNING r.event, asked.source, asked.type, asked.received_at, r.cycle
), queued AS (
    INSERT INTO hookonce.queue (event, received_at, source, type, cycle, due_at)
    SELECT event, received_at, source, type, cycle, now() FROM woken
), counted AS ({event_counts.no_longer_ignored("woken")}
)
SELECT event FROM woken ORDER BY event
"""  # noqa: S608  constants


def requeue(
    connection: psycopg.Connection, takes: Callable[[str, str, str], Sequence[object]], span: timedelta
) -> list[int]:
    """Make events that nobody took, received within `span`, due again if this worker takes them; return their ids."""
    with connection.transaction():
        now = connection.execute("SELECT now() - %s::interval", [span]).fetchone()
        first = first_since(connection, now[0]) if now else 0
        kinds = [kind for kind in connection.execute(_KINDS, [first]) if takes(*kind)]
        if not kinds:
            return []
        columns = [list(column) for column in zip(*kinds, strict=True)]
        return [event for (event,) in connection.execute(_REQUEUE, [*columns, first])]
