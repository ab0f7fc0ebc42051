"""Counts how often an event came: redeliveries, in batches and best effort."""

from collections import Counter
from collections.abc import Mapping

import psycopg

from hookonce.receiver.ledger.stats import activity

_REDELIVERED = """
WITH seen AS (
    SELECT e.id, t.n
    FROM unnest(%s::text[], %s::text[], %s::int[]) AS t (source, event_id, n)
         JOIN hookonce.events e USING (source, event_id)
    ORDER BY e.id FOR UPDATE OF e
)
UPDATE hookonce.events SET deliveries = deliveries + seen.n FROM seen WHERE events.id = seen.id
"""


def add_redeliveries(connection: psycopg.Connection, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to `deliveries` of events the ledger holds; keys it does not hold are ignored."""
    keys = list(counts)
    connection.execute(_REDELIVERED, [[k[0] for k in keys], [k[1] for k in keys], [counts[k] for k in keys]])
    by_source: Counter[tuple[str, str]] = Counter()
    for source, event_id in keys:
        by_source[source, "duplicate"] += counts[source, event_id]
    activity.add(connection, by_source)
