"""Which events an operator means, and the SQL of it.

An event's status is stored nowhere: the view `hookonce.event_states` tells that of an event that is given. So a list by
status begins where events of that status are to be found at all (`_FOUND_IN`), and asks the view about those only.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import psycopg

from hookonce.receiver.ledger.queries.dead_letters import DIED
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
    """Which events; None takes all.

    `type` may hold `*` for any text, `event_id` is the beginning of the sender's id, `until` itself is left out.
    `handler` and `error` (which may hold `*`) are those of a dead run; `run_by` is a handler that has any run.
    """

    source: str | None = None
    provider: str | None = None
    type: str | None = None
    status: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    account: str | None = None
    event_id: str | None = None
    handler: str | None = None
    error: str | None = None
    run_by: str | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """The filter as `MATCHES` wants it."""
        is_pattern = self.type is not None and "*" in self.type
        return {
            "source": self.source,
            "provider": self.provider,
            "type": None if is_pattern else self.type,
            "type_like": _like(self.type) if self.type is not None and is_pattern else None,
            "status": self.status,
            "since": self.since,
            "until": self.until,
            "account": self.account,
            "event_id": self.event_id,
            "event_id_end": None if self.event_id is None else self.event_id + _LAST,
            "handler": self.handler,
            "error_like": None if self.error is None else _like(self.error),
            "run_by": self.run_by,
        }


_LAST = chr(sys.maxunicode)
"""Sorts behind whatever may follow in an id, since ids are compared by bytes."""

MATCHES = f"""(%(source)s::text IS NULL OR source = %(source)s)
AND (%(provider)s::text IS NULL OR provider = %(provider)s)
AND (%(type)s::text IS NULL OR type = %(type)s)
AND (%(type_like)s::text IS NULL OR type LIKE %(type_like)s)
AND (%(since)s::timestamptz IS NULL OR received_at >= %(since)s)
AND (%(until)s::timestamptz IS NULL OR received_at < %(until)s)
AND (%(account)s::text IS NULL OR account = %(account)s)
AND (%(event_id)s::text IS NULL OR event_id >= %(event_id)s AND event_id < %(event_id_end)s
     AND source = ANY(ARRAY({SOURCES})))
AND (%(status)s::text IS NULL
     OR (SELECT s.status FROM hookonce.event_states s WHERE s.id = events.id) = %(status)s)
AND (%(run_by)s::text IS NULL
     OR %(run_by)s = ANY(ARRAY(SELECT r.handler FROM hookonce.run_states r WHERE r.event = events.id)))
AND {DIED}
"""  # noqa: S608  constants
"""Keeps the rows of `events` that a `Filter` means; what is NULL costs nothing, the planner folds it away.

Never `prepare` it. Each subquery is asked for the event that is looked at, and never joined.
"""

_QUEUED = "SELECT event FROM hookonce.queue WHERE token IS NULL AND"
_ENDED = "SELECT event FROM hookonce.runs WHERE is_last AND"
_FOUND_IN: Final[Mapping[str, str]] = {
    EventStatus.RECEIVED: f"{_QUEUED} handler IS NULL AND waits IS DISTINCT FROM '{Waits.HELD}'",
    EventStatus.WAITING: f"{_QUEUED} handler IS NOT NULL AND waits IS DISTINCT FROM '{Waits.HELD}'",
    EventStatus.HELD: f"{_QUEUED} waits = '{Waits.HELD}'",
    EventStatus.RUNNING: "SELECT unnest(events) AS event FROM hookonce.claims",
    EventStatus.DONE: f"{_ENDED} status = '{RunStatus.DONE}'",
    EventStatus.DEAD: f"{_ENDED} status = '{RunStatus.DEAD}'",
    EventStatus.IGNORED: f"{_ENDED} status = '{EventStatus.IGNORED}'",
    EventStatus.LOST: """SELECT e.id AS event FROM hookonce.events e
        WHERE NOT EXISTS (SELECT FROM hookonce.queue q
                          WHERE q.event = e.id AND q.event >= %(low)s AND q.event < %(top)s)
              AND NOT EXISTS (SELECT FROM hookonce.runs r
                              WHERE r.event = e.id AND r.is_last AND r.event >= %(low)s AND r.event < %(top)s)""",
}
"""Where events of a status are: more of them than there are, but all."""


def ids(wanted: Filter, order: Literal["DESC", "ASC"] = "DESC") -> str:
    """Return the SELECT of the ids of matching events from `low` up to `top`, left out, in order, `limit` at most.

    It takes these three parameters besides the filter's own, and is never prepared.
    """
    found_in = _found_in(wanted)
    if found_in is None:
        return f"""SELECT id FROM hookonce.events WHERE {MATCHES} AND id >= %(low)s AND id < %(top)s
ORDER BY id {order} LIMIT %(limit)s"""  # noqa: S608  constants
    # OFFSET 0: one event after the other, as far as the limit reaches, however many the planner takes there to be.
    return f"""SELECT DISTINCT found_in.event AS id FROM ({found_in}) AS found_in
CROSS JOIN LATERAL (SELECT * FROM hookonce.events e WHERE e.id = found_in.event OFFSET 0) AS events
WHERE found_in.event >= %(low)s AND found_in.event < %(top)s AND {MATCHES}
ORDER BY found_in.event {order} LIMIT %(limit)s"""  # noqa: S608  constants


def rows(columns: str, wanted: Filter, order: Literal["DESC", "ASC"] = "DESC") -> str:
    """Return the SELECT of columns of `event_states`, called `events`, of the matching events; see `ids`."""
    return with_states(columns, ids(wanted, order), order)


def with_states(columns: str, chosen: str, order: Literal["DESC", "ASC"] = "DESC") -> str:
    """Return the SELECT of columns of `event_states`, called `events`, of the events whose ids a SELECT gives."""
    return f"""SELECT {columns} FROM ({chosen}) AS chosen (number)
CROSS JOIN LATERAL (SELECT * FROM hookonce.event_states s WHERE s.id = chosen.number OFFSET 0) AS events
ORDER BY chosen.number {order}"""  # noqa: S608  constants


def is_found_elsewhere(wanted: Filter) -> bool:
    """Return whether `ids` begins elsewhere than at the events, so that a walk through them meets few others."""
    return _found_in(wanted) is not None


def _found_in(wanted: Filter) -> str | None:
    if wanted.event_id is not None:
        return None  # the unique key finds them
    if wanted.status is None:
        return _FOUND_IN[EventStatus.DEAD] if wanted.handler or wanted.error else None
    is_narrow = any((wanted.provider, wanted.type, wanted.account, wanted.run_by))
    return None if is_narrow and wanted.status == EventStatus.DONE else _FOUND_IN.get(wanted.status)


def _like(pattern: str) -> str:
    for special in ("\\", "%", "_"):
        pattern = pattern.replace(special, "\\" + special)
    return pattern.replace("*", "%")


def sources(connection: psycopg.Connection) -> list[str]:
    """Return the names of the sources that have events, in order."""
    return [row[0] for row in connection.execute(SOURCES)]
