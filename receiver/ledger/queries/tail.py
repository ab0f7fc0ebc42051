"""Follows the ledger: events as they come, and again whenever their status changes."""

import time
from collections.abc import Callable
from dataclasses import replace

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import COLUMNS, Event
from hookonce.receiver.ledger.states import OPEN

TAIL_PAGE_SIZE = 1000
MAX_OPEN = 2000
"""Events whose status is followed, the newest; older ones are let go of."""
SETTLED_AFTER = 5.0
"""Seconds after which no event with a smaller id turns up any more: ids are given out before they are committed."""

_NEWEST = "SELECT coalesce(max(id), 0) FROM hookonce.events"
_NEW = f"""
SELECT {COLUMNS} FROM hookonce.event_states AS events WHERE {{matches}} AND id > %(after)s
  AND NOT id = ANY(%(seen)s) ORDER BY id LIMIT %(limit)s
"""  # noqa: S608  constants
_NOW = f"SELECT {COLUMNS} FROM hookonce.event_states AS events WHERE id = ANY(%s) ORDER BY id"  # noqa: S608  a constant


class Tail:
    """Changes from now on of events that match; the filter's status is that of the change."""

    def __init__(
        self, connection: psycopg.Connection, wanted: Filter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        of_any_status = replace(wanted, status=None)
        self._parameters = of_any_status.parameters
        self._query = _NEW.format(matches=event_filter.matches(of_any_status)).encode()
        self._status = wanted.status
        self._clock = clock
        row = connection.execute(_NEWEST).fetchone()
        self._after = row[0] if row else 0
        self._seen: dict[int, float] = {}
        self._open: dict[int, str] = {}

    def follow(self, rows: list[Event]) -> None:
        """Follow events that were shown already."""
        self._open.update((row.id, row.status) for row in rows if row.status in OPEN)

    def look(self, connection: psycopg.Connection) -> list[Event]:
        """Return what is new and what has changed since the last look, by id."""
        changed = self._changed(connection)
        new = self._new(connection)
        self.follow(new)
        for old in list(self._open)[: -MAX_OPEN or None]:
            del self._open[old]
        return [row for row in changed + new if self._status in {None, row.status}]

    def _changed(self, connection: psycopg.Connection) -> list[Event]:
        if not self._open:
            return []
        with connection.cursor(row_factory=class_row(Event)) as cursor:
            rows = cursor.execute(_NOW, [list(self._open)], prepare=False).fetchall()
        changed = [row for row in rows if self._open[row.id] != row.status]
        self._open = {row.id: row.status for row in rows if row.status in OPEN}
        return changed

    def _new(self, connection: psycopg.Connection) -> list[Event]:
        page = {**self._parameters, "after": self._after, "seen": list(self._seen), "limit": TAIL_PAGE_SIZE}
        with connection.cursor(row_factory=class_row(Event)) as cursor:
            rows = cursor.execute(self._query, page, prepare=False).fetchall()
        now = self._clock()
        self._seen.update((row.id, now) for row in rows)
        settled = [number for number, at in self._seen.items() if now - at > SETTLED_AFTER]
        self._after = max([self._after, *settled])
        self._seen = {number: at for number, at in self._seen.items() if number > self._after}
        return rows
