"""Which events an operator means, and the SQL of it."""

import sys
from dataclasses import dataclass
from datetime import datetime

import psycopg

from hookonce.receiver.ledger.due import IS_OPEN
from hookonce.receiver.ledger.queries.dead_letters import DIED
from hookonce.receiver.ledger.states import OPEN

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
            "is_open": self.status in OPEN,  # for these there are indexes
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
AND (%(status)s::text IS NULL OR status = %(status)s)
AND (NOT %(is_open)s OR {IS_OPEN})
AND (%(since)s::timestamptz IS NULL OR received_at >= %(since)s)
AND (%(until)s::timestamptz IS NULL OR received_at < %(until)s)
AND (%(account)s::text IS NULL OR account = %(account)s)
AND (%(event_id)s::text IS NULL OR event_id >= %(event_id)s AND event_id < %(event_id_end)s
     AND source = ANY(ARRAY({SOURCES})))
AND (%(run_by)s::text IS NULL
     OR %(run_by)s = ANY(ARRAY(SELECT r.handler FROM hookonce.runs r WHERE r.event = events.id)))
AND {DIED}
"""  # noqa: S608  constants
"""Keeps the events of a `Filter`; what is NULL costs nothing, the planner folds it away. Never `prepare` it."""


def _like(pattern: str) -> str:
    for special in ("\\", "%", "_"):
        pattern = pattern.replace(special, "\\" + special)
    return pattern.replace("*", "%")


def sources(connection: psycopg.Connection) -> list[str]:
    """Return the names of the sources that have events, in order."""
    return [row[0] for row in connection.execute(SOURCES)]
