"""Counts how often an event came again: redeliveries, in batches and best effort."""

from collections import Counter
from collections.abc import Mapping

import psycopg

from hookonce.receiver.ledger.stats import activity, counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

# Locked in order, and looked at again: retention may have deleted an event meanwhile.
_REDELIVERED = """
WITH seen AS MATERIALIZED (
    SELECT e.id, e.source, e.type, t.n
    FROM unnest(%s::text[], %s::text[], %s::int[]) AS t (source, event_id, n)
         JOIN hookonce.events e USING (source, event_id)
    ORDER BY e.id FOR KEY SHARE OF e
), counted AS (
    INSERT INTO hookonce.redeliveries AS r (event, count) SELECT id, n FROM seen ORDER BY id
    ON CONFLICT (event) DO UPDATE SET count = r.count + excluded.count
)
SELECT seen.source, seen.type, e.status, seen.n FROM seen JOIN hookonce.event_states e ON e.id = seen.id
"""


def add_redeliveries(connection: psycopg.Connection, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to the redeliveries of events the ledger holds; keys it does not hold are ignored.

    Which status of their events they met is what it is by now: half a second later, where a receiver is busy.
    """
    keys = list(counts)
    columns = [[k[0] for k in keys], [k[1] for k in keys], [counts[k] for k in keys]]
    met: Counter[Tally] = Counter()
    types: Counter[tuple[str, str]] = Counter()
    for source, kind, status, number in connection.execute(_REDELIVERED, columns):
        met[Tally(Kind.MET, source, status)] += number
        types[source, kind] += number
    by_source: Counter[tuple[str, str]] = Counter()
    for source, event_id in keys:
        by_source[source, "duplicate"] += counts[source, event_id]
    activity.add(connection, by_source)
    if met:
        counters.add(connection, met)
        counters.add_types(connection, types)
