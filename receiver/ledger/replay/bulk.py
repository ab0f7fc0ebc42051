"""Bulk replays: all events that match a filter, run again. One is a row; here it begins, is looked up, and stops.

The row holds the filter, the highest id when it began, and how far it has come. `receiver.ledger.replay.bulk_steps`
takes it further, `receiver.ledger.replay.bulk_progress` says how what was replayed has ended.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter


@dataclass(frozen=True, slots=True)
class Bulk:
    """One bulk replay; `rate` is events per second, `left_alone` what could not be replayed, or not wholly.

    `matched` is the count when it began: what has changed its status meanwhile is in neither of the others.
    """

    id: int
    who: str
    started_at: datetime
    ended_at: datetime | None
    filter: dict[str, Any]
    rate: float | None
    matched: int
    replayed: int
    left_alone: int
    last_event: int
    until_event: int

    @property
    def is_complete(self) -> bool:
        """Whether every match was looked at; an ended one that is not was stopped."""
        return self.last_event >= self.until_event

    @property
    def wanted(self) -> Filter:
        """The filter as a `Filter`."""
        times = {name: datetime.fromisoformat(self.filter[name]) for name in _TIMES if self.filter.get(name)}
        return Filter(**{**self.filter, **times})


_TIMES = ("since", "until")

COLUMNS = (
    """id, who, started_at, ended_at, filter, rate, matched, replayed, left_alone, last_event, until_event"""
)

_EVERY_ID: dict[str, object] = {"low": 0, "top": 2**63 - 1}

_COUNTS = "SELECT type, status, count(*) FROM ({matching}) AS matching GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"

_EXTENT = "SELECT count(*), coalesce(max(id), 0), coalesce(min(id) - 1, 0) FROM ({matching}) AS matching"

_START = f"""
INSERT INTO hookonce.bulk_replays (who, filter, rate, driver, matched, until_event, last_event, ended_at)
VALUES (%s, %s::json, %s, %s, %s, %s, %s, CASE WHEN %s THEN now() END) RETURNING {COLUMNS}
"""  # noqa: S608  a constant

GET = f"SELECT {COLUMNS} FROM hookonce.bulk_replays WHERE id = %s"  # noqa: S608  a constant

_LISTING = f"""
SELECT {COLUMNS} FROM hookonce.bulk_replays WHERE %(before)s::bigint IS NULL OR id < %(before)s
ORDER BY id DESC LIMIT %(limit)s
"""  # noqa: S608  a constant

_STOP = "UPDATE hookonce.bulk_replays SET ended_at = now() WHERE id = %s AND ended_at IS NULL"

_GO_ON = """
UPDATE hookonce.bulk_replays SET ended_at = NULL, driver = NULL, driven_at = now()
WHERE id = %s AND last_event < until_event AND ended_at IS NOT NULL
"""


def counts(connection: psycopg.Connection, wanted: Filter) -> list[tuple[str, str, int]]:
    """Count what matches by type and status, most first."""
    query = _COUNTS.format(matching=event_filter.rows("type, status", wanted))
    parameters = wanted.parameters | _EVERY_ID | {"limit": None}
    return connection.execute(query.encode(), parameters, prepare=False).fetchall()


def start(  # noqa: PLR0913  all but four by keyword
    connection: psycopg.Connection,
    wanted: Filter,
    who: str,
    rate: float | None = None,
    *,
    limit: int = 0,
    driver: str | None = None,
) -> Bulk:
    """Begin to replay what matches now, the oldest `limit` of it (0: all), at most `rate` events per second.

    Nothing is replayed yet. Without a `driver` the sweep takes the steps. One that matches nothing has ended.
    Audited here and at its end, by a line each, however many events it replays.
    """
    with connection.transaction():
        query = _EXTENT.format(matching=event_filter.ids(wanted, "ASC"))
        parameters = wanted.parameters | _EVERY_ID | {"limit": limit or None}
        extent = connection.execute(query.encode(), parameters, prepare=False).fetchone()
        matched, until, after = extent or (0, 0, 0)
        document = _document(wanted)
        values = (who, json.dumps(document), rate, driver, matched, until, after, not matched)
        bulk = one(connection, _START, values)
        detail = {"filter": document, "matched": matched, "rate": rate}
        audit_log.note(connection, who, "bulk replay", f"bulk replay {bulk.id}", detail)
        return bulk


def get(connection: psycopg.Connection, number: int) -> Bulk | None:
    """Return a bulk replay, or None."""
    with connection.cursor(row_factory=class_row(Bulk)) as cursor:
        return cursor.execute(GET.encode(), [number]).fetchone()


def listing(connection: psycopg.Connection, limit: int = 50, before: int | None = None) -> list[Bulk]:
    """Return bulk replays, newest first, those with ids below `before`."""
    with connection.cursor(row_factory=class_row(Bulk)) as cursor:
        return cursor.execute(_LISTING.encode(), {"limit": limit, "before": before}).fetchall()


def stop(connection: psycopg.Connection, number: int, who: str) -> bool:
    """End one where it is; return whether there is such a one. Audited, unless it had ended."""
    with connection.transaction():
        if connection.execute(_STOP, [number]).rowcount:
            audit_log.note(connection, who, "stop", f"bulk replay {number}")
    return get(connection, number) is not None


def go_on(connection: psycopg.Connection, number: int, who: str) -> bool:
    """Take up one that was stopped; return whether that was to be done. Audited."""
    with connection.transaction():
        was_stopped = connection.execute(_GO_ON, [number]).rowcount == 1
        if was_stopped:
            audit_log.note(connection, who, "go on", f"bulk replay {number}")
    return was_stopped


def one(connection: psycopg.Connection, query: str, values: Sequence[object] | Mapping[str, object]) -> Bulk:
    """Return the one row of a query over `COLUMNS`. Raises: LookupError where there is none."""
    with connection.cursor(row_factory=class_row(Bulk)) as cursor:
        bulk = cursor.execute(query.encode(), values).fetchone()
    if bulk is None:
        raise LookupError("there is no such bulk replay")
    return bulk


def _document(wanted: Filter) -> Mapping[str, Any]:
    said = {name: value for name, value in asdict(wanted).items() if value is not None}
    return said | {name: said[name].isoformat() for name in _TIMES if name in said}
