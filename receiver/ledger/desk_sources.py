"""Names the sources that have events, without reading the events."""

import psycopg

SOURCES = """
WITH RECURSIVE named AS (
    (SELECT source FROM events ORDER BY source LIMIT 1)
    UNION ALL
    SELECT (SELECT e.source FROM events e WHERE e.source > named.source ORDER BY e.source LIMIT 1)
    FROM named WHERE named.source IS NOT NULL)
SELECT source FROM named WHERE source IS NOT NULL
"""
"""Jumps from one source to the next in the unique index."""


def sources(connection: psycopg.Connection) -> list[str]:
    """Name the sources that have events, in order."""
    return [row[0] for row in connection.execute(SOURCES)]
