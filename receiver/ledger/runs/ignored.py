"""Events that nobody took, taken up again by a worker whose handlers take them.

In a rolling deploy the old workers ignore what only the new ones know.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

import psycopg

from hookonce.receiver.ledger.id_at_time import first_since
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import activity

# An event that its source does not accept says so, and stays ignored.
_IS_UNTAKEN = f"""r.status = '{EventStatus.IGNORED}' AND r.is_last
      AND NOT EXISTS (SELECT FROM hookonce.failures f WHERE f.event = r.event AND f.handler = '')"""
_KINDS = f"""
SELECT DISTINCT e.source, e.provider, e.type FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event
WHERE {_IS_UNTAKEN} AND r.event >= %s
"""  # noqa: S608  constants
_LOCK = f"""
SELECT e.id FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event
JOIN unnest(%s::text[], %s::text[], %s::text[]) AS t (source, provider, type) USING (source, provider, type)
WHERE {_IS_UNTAKEN} AND r.event >= %s
ORDER BY e.id FOR UPDATE OF e
"""  # noqa: S608  constants
_REQUEUE = f"""
WITH woken AS (
    DELETE FROM hookonce.runs r USING hookonce.events e
    WHERE e.id = ANY(%s) AND r.event = e.id AND r.handler = '' AND r.status = '{EventStatus.IGNORED}' AND r.is_last
    RETURNING r.event, e.source, e.type, e.received_at, r.cycle
), queued AS (
    INSERT INTO hookonce.queue (event, received_at, source, type, cycle, due_at)
    SELECT event, received_at, source, type, cycle, now() FROM woken
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
        asked = [event for (event,) in connection.execute(_LOCK, [*columns, first])]
        activity.keep_ends(connection, asked, are_replayed=False)
        return [event for (event,) in connection.execute(_REQUEUE, [asked])]
