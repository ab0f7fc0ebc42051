"""From a time to a place in the ledger: ids are given out in the order of time, but for the seconds an insert takes.

So the primary key serves where an index by time would cost every delivery.
"""

from datetime import datetime

import psycopg

# Halves the range of ids until nothing is left of it: those below `low` came earlier, those from `high` on did not.
_FIRST_SINCE = """
WITH RECURSIVE search (low, high) AS (
    SELECT coalesce(min(id), 1), coalesce(max(id), 0) + 1 FROM hookonce.events
    UNION ALL
    SELECT CASE WHEN probe.received_at < %(at)s THEN probe.id + 1 ELSE low END,
           CASE WHEN probe.received_at < %(at)s THEN high ELSE (low + high) / 2 END
    FROM search LEFT JOIN LATERAL (
        SELECT id, received_at FROM hookonce.events WHERE id >= (low + high) / 2 AND id < high
        ORDER BY id LIMIT 1) AS probe ON true
    WHERE low < high
)
SELECT max(low) FROM search
"""


def first_since(connection: psycopg.Connection, at: datetime) -> int:
    """Return the id of the first event received at `at` or later; of the next one to come where there is none.

    Give or take the few events that were stored at the same moment: who must be exact compares `received_at` too.
    """
    row = connection.execute(_FIRST_SINCE, {"at": at}).fetchone()
    return int(row[0]) if row else 1
