"""Changes of the ledger: events behind an id, and those that were seen, as they are now."""

from collections.abc import Sequence
from dataclasses import replace

import psycopg

from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import COLUMNS, Event
from hookonce.receiver.ledger.rows import all_as

TAIL_PAGE_SIZE = 1000

_NEWEST = "SELECT coalesce(max(id), 0) FROM hookonce.events"
_BEHIND = f"""
SELECT {COLUMNS} FROM hookonce.event_states AS events WHERE {{matches}} AND id > %(after)s
  AND NOT id = ANY(%(seen)s) ORDER BY id LIMIT {TAIL_PAGE_SIZE}
"""  # noqa: S608  constants
_NOW = f"SELECT {COLUMNS} FROM hookonce.event_states AS events WHERE id = ANY(%s) ORDER BY id"  # noqa: S608  a constant


def newest(connection: psycopg.Connection) -> int:
    """Return the newest id; 0 of an empty ledger."""
    row = connection.execute(_NEWEST).fetchone()
    return row[0] if row else 0


def of_now(connection: psycopg.Connection, seen: Sequence[int]) -> list[Event]:
    """Return events as they are now, by id."""
    return all_as(Event, connection, _NOW, [seen], prepare=False)


def behind(connection: psycopg.Connection, wanted: Filter, after: int, seen: Sequence[int]) -> list[Event]:
    """Return the next events of any status that match behind an id and were not seen, by id."""
    of_any_status = replace(wanted, status=None)
    query = _BEHIND.format(matches=event_filter.matches(of_any_status))
    values = {**of_any_status.parameters, "after": after, "seen": seen}
    return all_as(Event, connection, query, values, prepare=False)
