"""A page of events that is there in time at any size of the ledger: where it has to stop looking, it says so.

Events are looked through a range of ids at a time, newest first, each range larger than the one before. With what a
table or an index holds (what is open, dead, held, ignored) that is over at once; what none holds (a rare type, events
that are lost) is found as far as `budget` reaches.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter, Order, Reach
from hookonce.receiver.ledger.queries.events import COLUMNS, NEWEST, EventRow
from hookonce.receiver.ledger.queries.id_ranges import extent

GROWTH = 4
"""The first range has `NEWEST` ids, each other four times as many as the one before."""

_CAME = "SELECT received_at FROM hookonce.events WHERE id >= %s ORDER BY id LIMIT 1"


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, newest first; `rest` is the id below which nothing was looked at, None where all was.

    `back_to` is when the oldest event came that was looked at, if there is a rest.
    """

    rows: list[EventRow]
    rest: int | None = None
    back_to: datetime | None = None


def newest(
    connection: psycopg.Connection, wanted: Filter, limit: int, before: int | None, budget: timedelta
) -> EventPage:
    """Return the newest matching events with ids below `before`, `limit` at most, found within about `budget`."""
    low, top = extent(connection, wanted, before)
    rows: list[EventRow] = []
    size, until = _first_range(wanted, range(low, top)), time.monotonic() + budget.total_seconds()
    while top > low and len(rows) < limit:
        began = time.monotonic()
        end, top = top, max(top - size, low)
        rows += _find(connection, _query(wanted, size), wanted, range(top, end), limit - len(rows))
        size = _next_range(wanted, size)
        if _is_over(began, until):
            break
    if top <= low or len(rows) >= limit:
        return EventPage(rows)
    return EventPage(rows, top, came_at(connection, top))


def oldest_after(
    connection: psycopg.Connection, wanted: Filter, limit: int, after: int, budget: timedelta
) -> list[EventRow]:
    """Return the matching events that follow the id `after`, the nearest `limit`, newest first; see `newest`."""
    low, top = extent(connection, wanted)
    low = max(low, after + 1)
    rows: list[EventRow] = []
    size, until = _first_range(wanted, range(low, top)), time.monotonic() + budget.total_seconds()
    while low < top and len(rows) < limit:
        began = time.monotonic()
        begin, low = low, min(low + size, top)
        query = _query(wanted, size, "ASC")
        rows += _find(connection, query, wanted, range(begin, low), limit - len(rows))
        size = _next_range(wanted, size)
        if _is_over(began, until):
            break
    return rows[::-1]


def came_at(connection: psycopg.Connection, event: int) -> datetime | None:
    """Return when the event of this id came in, or the next one that is there."""
    row = connection.execute(_CAME, [event]).fetchone()
    return row[0] if row else None


def _first_range(wanted: Filter, ids: range) -> int:
    return len(ids) if event_filter.reach(wanted) is Reach.AT_HAND else NEWEST


def _next_range(wanted: Filter, size: int) -> int:
    return sys.maxsize if event_filter.reach(wanted) is Reach.NEWEST else size * GROWTH


def _query(wanted: Filter, size: int, order: Order = "DESC") -> str:
    is_rare = event_filter.reach(wanted) is Reach.NEWEST and size > NEWEST
    return event_filter.rows(COLUMNS, wanted, order, is_rare=is_rare)


def _is_over(began: float, until: float) -> bool:
    """Whether the next range, which will take longer than the one since `began`, would end too late."""
    now = time.monotonic()
    return now + GROWTH * (now - began) > until


def _find(
    connection: psycopg.Connection, query: str, wanted: Filter, ids: range, limit: int
) -> Sequence[EventRow]:
    page = wanted.parameters | {"low": ids.start, "top": ids.stop, "limit": limit}
    with connection.cursor(row_factory=class_row(EventRow)) as cursor:
        return cursor.execute(query.encode(), page, prepare=False).fetchall()
