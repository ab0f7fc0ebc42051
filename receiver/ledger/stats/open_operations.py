"""Keys of requests that are in progress: how many, and since when."""

from typing import NamedTuple

import psycopg

MAX_COUNTED = 10_000
"""The oldest of them; there are as many as requests under way, and those whose process died."""

_OPEN = """
SELECT scope, count(*), extract(epoch FROM now() - min(started_at))::float
FROM (SELECT scope, started_at FROM hookonce.idempotency WHERE state = 'in_progress' AND expires_at > now()
      ORDER BY started_at LIMIT %s) AS oldest
GROUP BY scope
"""


class OpenOperation(NamedTuple):
    """How many keys of a scope are in progress, and for how many seconds the oldest has been."""

    scope: str
    number: int
    oldest: float


def find(connection: psycopg.Connection) -> list[OpenOperation]:
    """Return the scopes that have keys in progress."""
    return [OpenOperation(*row) for row in connection.execute(_OPEN, [MAX_COUNTED])]
