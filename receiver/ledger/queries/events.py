"""Events as rows of a listing, the newest first. Reads only, and opens nothing that is sealed.

Events are looked through a range of ids at a time, newest first, each range larger than the one before. With what a
table or an index holds (what is open, dead, held, ignored) that is over at once; what none holds (a rare type, events
that are lost) is found as far as a budget of time reaches, and who has one is told where it ended.
"""

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from pydantic import Field

from hookonce.receiver.ledger import reasons
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter, Order, Reach
from hookonce.receiver.ledger.queries.id_ranges import extent
from hookonce.receiver.ledger.reasons import PARKED
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel, all_as
from hookonce.receiver.ledger.states import EventStatus

PAGE_SIZE = 10_000
"""Rows of one page; of events, ids."""
NEWEST = 20_000
"""Ids of the first range."""
GROWTH = 4
"""Each other range has four times as many as the one before."""
WALKED = 1_000_000
"""Ids of a range that is walked down; in a larger one all that match are found, and sorted."""
LOST_RANGE = 100_000
"""Ids that are looked through for lost events by one statement."""


class Event(ResponseModel):
    """One row of the ledger."""

    id: Identifier
    source: Ours
    provider: Ours
    event_id: str
    type: str
    account: str | None
    status: EventStatus
    due_at: datetime | None
    received_at: datetime
    occurred_at: datetime | None
    deliveries: int
    repeat_of: Identifier | None
    parked: Ours | None = Field(
        default=None, description=f"why it waits although it may be due: {reasons.described()}"
    )
    is_test: bool = Field(
        default=False, description="whether an operator sent it, to see whether handlers work"
    )


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, newest first; `rest` is the id below which nothing was looked at, None where all was.

    `back_to` is when the oldest event came that was looked at, if there is a rest.
    """

    rows: list[Event]
    rest: int | None = None
    back_to: datetime | None = None


COLUMNS = f"""id, source, provider, event_id, type, account, status, CASE WHEN status = '{EventStatus.RUNNING}'
    THEN (SELECT min(coalesce(c.lease_until, q.due_at))
          FROM hookonce.queue q LEFT JOIN hookonce.claims c ON c.token = q.token WHERE q.event = events.id)
    ELSE due_at END AS due_at,
received_at, occurred_at, deliveries, repeat_of, {PARKED} AS parked, is_test"""  # noqa: S608  constants
"""Columns of `hookonce.event_states`, called `events`, that an `Event` has."""

_CAME = "SELECT received_at FROM hookonce.events WHERE id >= %s ORDER BY id LIMIT 1"


def events(
    connection: psycopg.Connection, wanted: Filter, limit: int = 0, before: int | None = None
) -> Iterator[Event]:
    """Yield matching events, newest first, those with ids below `before`.

    `limit` 0 gives all, a range of ids at a time, so memory stays small.
    """
    low, top = extent(connection, wanted, before)
    if limit:
        yield from _look(connection, wanted, range(low, top), limit)[0]
        return
    is_walked = event_filter.reach(wanted) in {Reach.ALL, Reach.LOST}
    while top > low:
        bottom = max(top - PAGE_SIZE, low) if is_walked else low
        query = event_filter.rows(COLUMNS, wanted)
        rows = _find(connection, query, wanted, range(bottom, top), PAGE_SIZE)
        top = rows[-1].id if len(rows) == PAGE_SIZE else bottom
        yield from rows


def newest(
    connection: psycopg.Connection, wanted: Filter, limit: int, before: int | None, budget: timedelta
) -> EventPage:
    """Return the newest matching events with ids below `before`, `limit` at most, found within about `budget`."""
    low, top = extent(connection, wanted, before)
    rows, left = _look(connection, wanted, range(low, top), limit, budget=budget)
    if not left or len(rows) >= limit:
        return EventPage(rows)
    return EventPage(rows, left.stop, came_at(connection, left.stop))


def oldest_after(
    connection: psycopg.Connection, wanted: Filter, limit: int, after: int, budget: timedelta
) -> list[Event]:
    """Return the matching events that follow the id `after`, the nearest `limit`, newest first; see `newest`."""
    low, top = extent(connection, wanted)
    rows, _ = _look(connection, wanted, range(max(low, after + 1), top), limit, "ASC", budget)
    return rows[::-1]


def came_at(connection: psycopg.Connection, event: int) -> datetime | None:
    """Return when the event of this id came in, or the next one that is there."""
    row = connection.execute(_CAME, [event]).fetchone()
    return row[0] if row else None


def _look(  # noqa: PLR0913, PLR0917  the order and the budget by those who have them
    connection: psycopg.Connection,
    wanted: Filter,
    ids: range,
    limit: int,
    order: Order = "DESC",
    budget: timedelta | None = None,
) -> tuple[list[Event], range]:
    """Return the first `limit` matching events in an order, and the ids that were not looked at for want of time."""
    rows: list[Event] = []
    reach = event_filter.reach(wanted)
    size = len(ids) if reach is Reach.AT_HAND else NEWEST
    until = time.monotonic() + budget.total_seconds() if budget is not None else math.inf
    while ids and len(rows) < limit:
        began = time.monotonic()
        part, ids = (ids[-size:], ids[:-size]) if order == "DESC" else (ids[:size], ids[size:])
        is_rare = size > {Reach.NEWEST: NEWEST, Reach.ALL: WALKED}.get(reach, sys.maxsize)
        query = event_filter.rows(COLUMNS, wanted, order, is_rare=is_rare)
        rows += _find(connection, query, wanted, part, limit - len(rows))
        most = LOST_RANGE if reach is Reach.LOST else sys.maxsize
        size = sys.maxsize if reach is Reach.NEWEST else min(size * GROWTH, most)
        now = time.monotonic()
        if now + GROWTH * (now - began) > until:  # the next range takes longer than this one
            break
    return rows, ids


def _find(connection: psycopg.Connection, query: str, wanted: Filter, ids: range, limit: int) -> list[Event]:
    page = wanted.parameters | {"low": ids.start, "top": ids.stop, "limit": limit}
    return all_as(Event, connection, query, page, prepare=False)
