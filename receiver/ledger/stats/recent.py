"""Whether much has come of a source lately, counted in the ledger itself and no further than is asked for."""

from datetime import timedelta

import psycopg

_HAS_RECEIVED = """
SELECT count(*) >= %(number)s FROM (
    SELECT FROM hookonce.events WHERE source = %(source)s AND received_at > now() - %(within)s LIMIT %(number)s
) AS counted
"""


def has_received(connection: psycopg.Connection, source: str, within: timedelta, number: int) -> bool:
    """Return whether so many events of a source, or more, have come within this time."""
    values = {"source": source, "within": within, "number": number}
    row = connection.execute(_HAS_RECEIVED, values).fetchone()
    return bool(row and row[0])
