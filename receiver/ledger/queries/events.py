"""Events as rows of a listing, the newest first. Reads only, and opens nothing that is sealed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter, Reach
from hookonce.receiver.ledger.queries.id_ranges import extent
from hookonce.receiver.ledger.reasons import PARKED
from hookonce.receiver.ledger.states import EventStatus

PAGE_SIZE = 10_000
"""Rows of one page; of events, ids."""
NEWEST = 20_000
STRETCHES = (100_000, 1_000_000)
"""Of ids, the newest ones first, that are walked down; among those below, all that match are found and sorted."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One row of the ledger; `parked` says why it is passed over: its source, or what is left to run, is paused."""

    id: int
    source: str
    provider: str
    event_id: str
    type: str
    account: str | None
    status: str
    due_at: datetime | None
    received_at: datetime
    occurred_at: datetime | None
    deliveries: int
    repeat_of: int | None
    parked: str | None = None
    is_test: bool = False


COLUMNS = f"""id, source, provider, event_id, type, account, status, CASE WHEN status = '{EventStatus.RUNNING}'
    THEN (SELECT min(coalesce(c.lease_until, q.due_at))
          FROM hookonce.queue q LEFT JOIN hookonce.claims c ON c.token = q.token WHERE q.event = events.id)
    ELSE due_at END AS due_at,
received_at, occurred_at, deliveries, repeat_of, {PARKED} AS parked, is_test"""  # noqa: S608  constants
"""Of `hookonce.event_states`, called `events`: those of an `EventRow`."""


def events(
    connection: psycopg.Connection, wanted: Filter, limit: int = 0, before: int | None = None
) -> Iterator[EventRow]:
    """Yield matching events, newest first, those with ids below `before`.

    `limit` 0 gives all, a range of ids at a time, so memory stays small.
    """
    low, top = extent(connection, wanted, before)
    near = event_filter.rows(COLUMNS, wanted)
    with connection.cursor(row_factory=class_row(EventRow)) as cursor:

        def matching(query: str, low: int, top: int, limit: int | None) -> list[EventRow]:
            page = wanted.parameters | {"low": low, "top": top, "limit": limit}
            return cursor.execute(query.encode(), page, prepare=False).fetchall()

        if not limit:
            while top > low:
                is_walked = event_filter.reach(wanted) in {Reach.ALL, Reach.LOST}
                bottom = max(top - PAGE_SIZE, low) if is_walked else low
                rows = matching(near, bottom, top, PAGE_SIZE)
                top = rows[-1].id if len(rows) == PAGE_SIZE else bottom
                yield from rows
            return
        for query, stretch in _looks(wanted, top):
            if top <= low or not limit:
                return
            end, top = top, max(top - stretch, low)
            rows = matching(query, top, end, limit)
            limit -= len(rows)
            yield from rows


def _looks(wanted: Filter, top: int) -> Iterator[tuple[str, int]]:
    """Yield the queries that find the newest, one after the other, each with the length of its stretch of ids."""
    reach = event_filter.reach(wanted)
    near = event_filter.rows(COLUMNS, wanted)
    if reach is Reach.LOST:
        yield from repeat((near, STRETCHES[0]))
    elif reach in {Reach.NEWEST, Reach.ALL}:
        yield from ((near, ids) for ids in (STRETCHES if reach is Reach.ALL else (NEWEST,)))
        yield event_filter.rows(COLUMNS, wanted, is_rare=True), top
    else:
        yield near, top
