"""The numbers an operator watches."""

from datetime import datetime
from typing import NamedTuple

import psycopg

from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.ledger.states import EventStatus, one_of
from hookonce.receiver.ledger.stats import event_counts
from hookonce.receiver.ledger.stats.event_accounts import MAX_UNCOUNTED
from hookonce.receiver.ledger.stats.event_counts import CHANGED, ENDED

_ALL_SLICES = f"SELECT DISTINCT event / {event_counts.SLICE} AS slice FROM hookonce.runs WHERE %s AND is_last"  # noqa: S608
_NEVER_SEEN = " UNION ".join(
    _ALL_SLICES % f"status = '{status}'"
    for status in (EventStatus.DEAD, EventStatus.DISCARDED, EventStatus.IGNORED)
)


def _events(changed: str, opened: str) -> str:
    """Return the query: sums as they are kept, but for slices that have `changed`; what is over is the rest."""
    return f"""
WITH slices AS MATERIALIZED ({changed}
), sums AS MATERIALIZED (
    SELECT source, what, sum(count)::bigint AS n FROM hookonce.event_counts
    WHERE what IN ('events', 'until') GROUP BY source, what
), rows AS (
    SELECT source, n FROM sums WHERE what = 'events'
    UNION ALL
    SELECT source, count(*) FROM (
        SELECT source FROM hookonce.events WHERE id > coalesce((SELECT n FROM sums WHERE what = 'until'), 0)
        ORDER BY id LIMIT %(fresh)s) AS fresh
    GROUP BY source
), present AS (
    SELECT source, status, sum(n) AS n, min(first) AS first FROM (
        {opened}
        UNION ALL
        SELECT source, what, count, first_at FROM hookonce.slice_counts
        WHERE {event_counts.HAS_ENDED} AND slice NOT IN (SELECT slice FROM slices)
        UNION ALL
        SELECT source, status, number, first FROM ({ENDED}) AS ended
        UNION ALL
        SELECT source, what, count, first_at FROM hookonce.slice_counts WHERE what = '{EventStatus.LOST}'
    ) AS parts (source, status, n, first) GROUP BY source, status
), over AS (
    SELECT source, '{EventStatus.DONE}', sum(n), NULL::timestamptz
    FROM (SELECT source, n FROM rows UNION ALL SELECT source, -n FROM present) AS parts GROUP BY source
)
SELECT source, status, n::bigint,
       CASE WHEN NOT {one_of("status", (EventStatus.DISCARDED, EventStatus.IGNORED))}
            THEN extract(epoch FROM now() - first)::float END
FROM (SELECT * FROM present UNION ALL SELECT * FROM over) AS counted (source, status, n, first)
WHERE n > 0 ORDER BY source, status
"""  # noqa: S608  constants


_OPEN = f"SELECT source, status, number, first FROM ({event_counts.open_events('true')}) AS open"  # noqa: S608  constants
_OPEN_KEPT = f"""
SELECT source, what, count, first_at FROM hookonce.slice_counts WHERE {event_counts.IS_OPEN} AND slice < %(newest)s
UNION ALL
SELECT source, status, number, first
FROM ({event_counts.open_events(f"event >= %(newest)s::bigint * {event_counts.SLICE}")}) AS open
"""  # noqa: S608  constants
_REJECTIONS = "SELECT source, reason, count FROM hookonce.rejections ORDER BY source, reason"
_SECRETS = "SELECT source, slot, count, last_at FROM hookonce.secret_use ORDER BY source, slot"
_CONFLICTS = f"""
SELECT count(*) FILTER (WHERE provider <> '{COMMAND}'), count(*) FILTER (WHERE provider = '{COMMAND}')
FROM (SELECT event FROM hookonce.conflicts ORDER BY id LIMIT %s) AS c JOIN hookonce.events e ON e.id = c.event
"""  # noqa: S608  a constant
MAX_CONFLICTS = 10_000


class EventSum(NamedTuple):
    """How many events of a source have a status, and the age of the oldest in seconds; None for what is over."""

    source: str
    status: str
    number: int
    oldest: float | None


def events_by_status(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count the ledger's events by source and status, as `event_sums` does."""
    return [(each.source, each.status, each.number) for each in event_sums(connection)]


def event_sums(connection: psycopg.Connection) -> list[EventSum]:
    """Count the ledger's events by source and status, from sums that are kept and what has changed since.

    Exact while a sweep runs: `done` is what is left of all rows. Without a sweep no more than `MAX_UNCOUNTED` new ones
    are seen. Of a queue of more than `event_counts.MAX_QUEUE` rows the sweep counts the open ones, a few slices at each
    of its turns, so that those are some minutes old. Rows that were changed by hand are counted as done, or not at all,
    until `event_counts.recount`.
    """
    seen = event_counts.seen_until(connection)
    newest = event_counts.newest_open(connection)
    query = _events(CHANGED if seen else _NEVER_SEEN, _OPEN if newest is None else _OPEN_KEPT)
    wanted = {"fresh": MAX_UNCOUNTED, "seen": seen, "newest": newest}
    rows = connection.execute(query.encode(), wanted, prepare=False)
    return [EventSum(*row) for row in rows]


def rejections(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    """Count refused deliveries by source ('' where no source has the name) and reason, since ever."""
    return connection.execute(_REJECTIONS).fetchall()


def secrets(connection: psycopg.Connection) -> dict[str, dict[int, tuple[int, datetime]]]:
    """Count deliveries by source and by the slot (from 1) of the secret that verified them, and say when last."""
    used: dict[str, dict[int, tuple[int, datetime]]] = {}
    for source, slot, count, last in connection.execute(_SECRETS):
        used.setdefault(source, {})[slot] = (count, last)
    return used


def conflicts(connection: psycopg.Connection) -> tuple[int, int]:
    """Count the (event, other body) pairs of senders, and those of clients' keys; of `MAX_CONFLICTS` at most."""
    return connection.execute(_CONFLICTS, [MAX_CONFLICTS]).fetchone() or (0, 0)
