"""Which events an operator means, and the SQL of it.

An event's status is stored nowhere: the view `hookonce.event_states` tells that of an event that is given. So a list by
status begins where events of that status are to be found at all (`_PLACES`), and asks the view about those only.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Annotated, Final, Literal, NamedTuple, get_args, get_type_hints

import psycopg

from hookonce.receiver.ledger.states import EventStatus, RunStatus, Waits

SOURCES = """
WITH RECURSIVE named AS (
    (SELECT source FROM hookonce.events ORDER BY source LIMIT 1)
    UNION ALL
    SELECT (SELECT e.source FROM hookonce.events e WHERE e.source > named.source ORDER BY e.source LIMIT 1)
    FROM named WHERE named.source IS NOT NULL)
SELECT source FROM named WHERE source IS NOT NULL
"""
"""Jumps from one source to the next in the unique index."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events; None takes all. In the order in which options, the API and pages tell it."""

    source: Annotated[str | None, "only of this source"] = None
    provider: Annotated[str | None, "only of this provider"] = None
    type: Annotated[str | None, "only of this type; `*` stands for any text: `invoice.*`"] = None
    account: Annotated[str | None, "only of this account of the sender's"] = None
    event_id: Annotated[str | None, "only with a sender's id that begins so"] = None
    status: Annotated[str | None, "only in this status"] = None
    handler: Annotated[str | None, "only with a dead run of this handler"] = None
    error: Annotated[
        str | None,
        "only with a dead run whose latest error is this; `*` stands for any text: `TimeoutError*`",
    ] = None
    issue: Annotated[str | None, "only with a dead run of this issue; `hookonce issues list` has them"] = None
    run_by: Annotated[str | None, "only with a run of this handler, whatever became of it"] = None
    since: Annotated[
        datetime | None, "only received then or later: 90s, 15m, 2h, 7d, today, 2026-01-31, or a time"
    ] = None
    until: Annotated[datetime | None, "only received before that; written like `since`"] = None

    @property
    def parameters(self) -> dict[str, object]:
        """The filter as the statements want it; what is None is not asked for."""
        is_pattern = self.type is not None and "*" in self.type
        return {name: getattr(self, name) for name in FIELDS} | {
            "type": None if is_pattern else self.type,
            "type_like": like(self.type) if self.type is not None and is_pattern else None,
            "event_id_end": None if self.event_id is None else self.event_id + _LAST,
            "error_like": None if self.error is None else like(self.error),
        }


FIELDS: Final[Mapping[str, str]] = {
    name: get_args(kind)[1] for name, kind in get_type_hints(Filter, include_extras=True).items()
}
"""The meaning of each field of a `Filter`."""

_LAST = chr(sys.maxunicode)
"""Sorts behind whatever may follow in an id, since ids are compared by bytes."""

_DIED = f"""(SELECT EXISTS (
    SELECT FROM hookonce.runs r WHERE r.event = events.id AND r.status = '{RunStatus.DEAD}' AND r.is_last
           AND (%(handler)s::text IS NULL OR r.handler = %(handler)s)
           AND (%(error_like)s::text IS NULL OR (
               SELECT f.error FROM hookonce.failures f WHERE f.event = r.event AND f.handler = r.handler
               ORDER BY f.id DESC LIMIT 1) LIKE %(error_like)s)))"""  # noqa: S608  constants
"""Keeps events with a dead run of this handler, whose latest error is like that."""

# Subqueries are asked for the event that is looked at, and never joined: a SELECT in brackets is not taken apart, and
# one that gives a truth value is thought to be true of every other event, so that a list is walked down in its order.
_CONDITIONS: Final[Mapping[str, str]] = {
    "source": "source = %(source)s",
    "provider": "provider = %(provider)s",
    "type": "type = %(type)s",
    "type_like": "type LIKE %(type_like)s",
    "since": "received_at >= %(since)s",
    "until": "received_at < %(until)s",
    "account": "account = %(account)s",
    "event_id": f"event_id >= %(event_id)s AND event_id < %(event_id_end)s AND source = ANY(ARRAY({SOURCES}))",
    "status": "(SELECT s.status = %(status)s FROM hookonce.event_states s WHERE s.id = events.id)",
    "run_by": """(SELECT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = events.id AND q.handler = %(run_by)s)
OR EXISTS (SELECT FROM hookonce.runs r WHERE r.event = events.id AND r.handler = %(run_by)s))""",
    "handler": _DIED,
    "error_like": _DIED,
    "issue": """(SELECT EXISTS (SELECT FROM hookonce.runs r
WHERE r.event = events.id AND r.is_last AND r.issue = %(issue)s))""",
}
"""Keep the rows of `events` that a `Filter` means, by the name of a parameter that is given."""

Order = Literal["DESC", "ASC"]


class _Place(NamedTuple):
    """Places of events of a status: more of them than there are, but all; and what they are sorted by."""

    rows: str
    sorted_by: tuple[str, ...] = ("event",)


def _in_queue(condition: str) -> _Place:
    return _Place(f"""SELECT event FROM hookonce.queue
WHERE {condition} AND token IS NULL AND waits IS DISTINCT FROM '{Waits.HELD}'""")  # noqa: S608  constants


def _in_runs(status: EventStatus) -> _Place:
    return _Place(f"SELECT event FROM hookonce.runs WHERE is_last AND status = '{status}'")  # noqa: S608  constants


_PLACES: Final[Mapping[str, _Place]] = {
    EventStatus.RECEIVED: _in_queue("handler IS NULL"),
    EventStatus.WAITING: _in_queue("handler IS NOT NULL"),
    EventStatus.RUNNING: _Place("SELECT unnest(events) AS event FROM hookonce.claims"),
    # Sorted as the index over what waits is; what is held waits for no handler.
    EventStatus.HELD: _Place(
        f"SELECT event, waiting_handler FROM hookonce.queue WHERE waits = '{Waits.HELD}'",  # noqa: S608  a constant
        ("waiting_handler", "event"),
    ),
    EventStatus.DONE: _in_runs(EventStatus.DONE),
    EventStatus.DEAD: _in_runs(EventStatus.DEAD),
    EventStatus.DISCARDED: _in_runs(EventStatus.DISCARDED),
    EventStatus.IGNORED: _in_runs(EventStatus.IGNORED),
    EventStatus.LOST: _Place("""SELECT e.id AS event FROM hookonce.events e
        WHERE NOT EXISTS (SELECT FROM hookonce.queue q
                          WHERE q.event = e.id AND q.event >= %(low)s AND q.event < %(top)s)
              AND NOT EXISTS (SELECT FROM hookonce.runs r
                              WHERE r.event = e.id AND r.is_last AND r.event >= %(low)s AND r.event < %(top)s)"""),
}


_DEAD_OF_ISSUE = _Place("SELECT event FROM hookonce.runs WHERE is_last AND issue = %(issue)s")


def matches(wanted: Filter) -> str:
    """Return the condition that keeps the rows of `events` that are wanted; to be had by it, and never prepared."""
    given = wanted.parameters
    conditions = dict.fromkeys(each for name, each in _CONDITIONS.items() if given[name] is not None)
    return "\nAND ".join(conditions) or "true"


def ids(wanted: Filter, order: Order = "DESC", *, is_rare: bool = False) -> str:
    """Return the SELECT of the ids of matching events from `low` up to `top`, left out, in order, `limit` at most.

    It takes these three parameters besides the filter's own, and is never prepared. What `is_rare` is looked for among
    all, and sorted then: asked for an index's order, PostgreSQL would walk down it however long nothing matches.
    """
    place = _place(wanted)
    if place is None:
        return f"""SELECT id FROM hookonce.events WHERE {matches(wanted)} AND id >= %(low)s AND id < %(top)s
ORDER BY id{" + 0" if is_rare else ""} {order} LIMIT %(limit)s"""  # noqa: S608  constants
    rows, sorted_by = place.rows, place.sorted_by
    if is_rare:
        rows = f"""SELECT event + 0 AS event FROM ({rows}) AS place WHERE event >= %(low)s AND event < %(top)s
ORDER BY 1 {order} OFFSET 0"""  # noqa: S608  constants
        sorted_by = ("event",)
    columns = ", ".join(f"place.{name}" for name in sorted_by)
    in_order = ", ".join(f"place.{name} {order}" for name in sorted_by)
    # OFFSET 0: one event after the other, as far as the limit reaches, however many the planner takes there to be.
    return f"""SELECT DISTINCT ON ({columns}) place.event AS id FROM ({rows}) AS place
CROSS JOIN LATERAL (SELECT * FROM hookonce.events e WHERE e.id = place.event OFFSET 0) AS events
WHERE place.event >= %(low)s AND place.event < %(top)s AND {matches(wanted)}
ORDER BY {in_order} LIMIT %(limit)s"""  # noqa: S608  constants


def rows(columns: str, wanted: Filter, order: Order = "DESC", *, is_rare: bool = False) -> str:
    """Return the SELECT of columns of `event_states`, called `events`, of the matching events; see `ids`."""
    return f"""SELECT {columns} FROM ({ids(wanted, order, is_rare=is_rare)}) AS chosen (number)
CROSS JOIN LATERAL (SELECT * FROM hookonce.event_states s WHERE s.id = chosen.number OFFSET 0) AS events
ORDER BY chosen.number {order}"""  # noqa: S608  constants


class Reach(Enum):
    """How far `ids` has to look for what is wanted, the newest first."""

    AT_HAND = auto()
    """Nearly all that it looks at is wanted."""
    NEWEST = auto()
    """The newest in the queue are wanted, or few of it are."""
    PICKED = auto()
    """Some of what it looks at is wanted, maybe none."""
    ALL = auto()
    """Every event is looked at, but for what an index over ids or types leaves out."""
    LOST = auto()
    """Every event is looked at, and compared with all that is known of others."""


def reach(wanted: Filter) -> Reach:
    """Return how far `ids` has to look."""
    place = _place(wanted)
    if place is None:
        return Reach.ALL
    if wanted.status == EventStatus.LOST:
        return Reach.LOST
    if wanted != Filter(status=wanted.status, since=wanted.since, until=wanted.until):
        return Reach.PICKED
    return Reach.NEWEST if wanted.status == EventStatus.RECEIVED else Reach.AT_HAND


def _place(wanted: Filter) -> _Place | None:
    """Return where to begin; None for the events themselves, of which indexes find those of an id or of a rare type."""
    if wanted.event_id is not None:
        return None
    if wanted.issue is not None:
        return _DEAD_OF_ISSUE
    if wanted.status is None:
        return _PLACES[EventStatus.DEAD] if wanted.handler or wanted.error else None
    is_narrow = any((wanted.provider, wanted.type, wanted.account, wanted.run_by))
    return None if is_narrow and wanted.status == EventStatus.DONE else _PLACES.get(wanted.status)


def like(pattern: str) -> str:
    """Return a text for LIKE, in which `*` stands for any text."""
    for special in ("\\", "%", "_"):
        pattern = pattern.replace(special, "\\" + special)
    return pattern.replace("*", "%")


def sources(connection: psycopg.Connection) -> list[str]:
    """Return the names of the sources that have events, in order."""
    return [row[0] for row in connection.execute(SOURCES)]
