"""The numbers an operator watches."""

from datetime import datetime

import psycopg
from pydantic import Field

from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as
from hookonce.receiver.ledger.states import EventStatus, RunStatus, Waits, one_of
from hookonce.receiver.ledger.stats.event_counts import PRESENT

MAX_COUNTED = 20_000
"""Rows that are counted one by one: of the queue, and of each outcome but `done`."""
SLICES = 250
"""Equal ranges of ids that a sample is taken of, where there are more rows."""
SAMPLE = 20
"""Events of each slice that stand for all of its events."""

_QUEUE = "queue"
_ROWS = {_QUEUE: "hookonce.queue WHERE true"} | {
    f"runs_{status}": f"hookonce.runs WHERE status = '{status}' AND is_last"
    for status in (RunStatus.DEAD, RunStatus.DISCARDED, EventStatus.IGNORED)
}
_SIZES = ", ".join(
    f"('{relation}', EXISTS (SELECT FROM {rows} ORDER BY event OFFSET {MAX_COUNTED} LIMIT 1), "  # noqa: S608
    f"(SELECT min(event) FROM {rows}), (SELECT max(event) FROM {rows}))"
    for relation, rows in _ROWS.items()
)


def _looked_at(relation: str, columns: str, group: str) -> str:
    """Return a query of the events that are looked at, each with the number of events that it stands for.

    From the first that is found to the end of its slice, events are taken to be as dense as those of the sample.
    """
    return f"""
    SELECT r.*, s.is_long,
           CASE WHEN s.is_long AND count(*) OVER slice = {SAMPLE}
                THEN (1 + (past - 1 - min(event) OVER slice) * {SAMPLE - 2}.0
                          / (max(event) OVER slice - min(event) OVER slice - 1)) / {SAMPLE}
                ELSE 1 END AS weight
    FROM slices s CROSS JOIN LATERAL (
        SELECT {columns} FROM {_ROWS[relation]} AND event >= s.first AND event < s.past
        GROUP BY {group} ORDER BY event LIMIT CASE WHEN s.is_long THEN {SAMPLE} ELSE {MAX_COUNTED} END) AS r
    WHERE s.relation = '{relation}' WINDOW slice AS (PARTITION BY s.first)"""  # noqa: S608  constants


# OFFSET 0: an index is asked about each, whatever the planner takes the sizes of the tables to be.
def _ended(status: str, unless: str = "") -> str:
    return f"""
    SELECT event, '{status}' AS status, is_long, weight
    FROM ({_looked_at(f"runs_{status}", "event", "event")}) AS r
    WHERE NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = r.event OFFSET 0){unless}"""  # noqa: S608  constants


_UNLESS_OTHERS = f"""
          AND NOT EXISTS (SELECT FROM hookonce.runs o WHERE o.event = r.event AND o.is_last
                              AND {one_of("o.status", (RunStatus.DEAD, RunStatus.DONE))} OFFSET 0)"""
_OPEN = f"""event, source, min(received_at) AS received_at,
               CASE WHEN bool_or(token IS NOT NULL) THEN '{EventStatus.RUNNING}'
                    WHEN bool_or(waits IS NOT DISTINCT FROM '{Waits.HELD}') THEN '{EventStatus.HELD}'
                    WHEN bool_and(handler IS NULL) THEN '{EventStatus.RECEIVED}'
                    ELSE '{EventStatus.WAITING}' END AS status"""
_SUMS = f"""
WITH sizes AS MATERIALIZED (
    SELECT *, CASE WHEN is_long THEN {SLICES} ELSE 1 END AS number
    FROM (VALUES {_SIZES}) AS t (relation, is_long, oldest, newest)
), slices AS MATERIALIZED (
    SELECT relation, is_long, oldest + i * width AS first, oldest + (i + 1) * width AS past
    FROM (SELECT *, (newest - oldest) / number + 1 AS width FROM sizes) AS s, generate_series(0, number - 1) AS i
), found AS (
    SELECT source, received_at, is_long, weight, status
    FROM ({_looked_at(_QUEUE, _OPEN, "event, source")}) AS open
    UNION ALL
    SELECT e.source, e.received_at, r.is_long, r.weight, r.status
    FROM ({_ended(RunStatus.DEAD)} UNION ALL {_ended(RunStatus.DISCARDED, _UNLESS_OTHERS)}
          UNION ALL {_ended(EventStatus.IGNORED)}) AS r
         CROSS JOIN LATERAL (SELECT source, received_at FROM hookonce.events WHERE id = r.event OFFSET 0) AS e
), present AS MATERIALIZED (
    SELECT source, status, round(sum(weight))::bigint AS n, min(received_at) AS first,
           NOT bool_or(is_long) AS is_exact
    FROM found GROUP BY source, status
    UNION ALL
    SELECT source, '{EventStatus.LOST}', sum(count)::bigint, min(first_at), true FROM hookonce.lost_slices
    WHERE what = '{EventStatus.LOST}' GROUP BY source
), done AS (
    SELECT source, '{EventStatus.DONE}', sum(n)::bigint, NULL::timestamptz, (SELECT NOT bool_or(is_long) FROM sizes)
    FROM (SELECT source, n FROM ({PRESENT}) AS every UNION ALL SELECT source, -n FROM present) AS parts GROUP BY source
)
SELECT source, status, n AS count,
       CASE WHEN NOT {one_of("status", (EventStatus.DISCARDED, EventStatus.IGNORED))}
            THEN extract(epoch FROM now() - first)::float END AS oldest_seconds, is_exact
FROM (TABLE present UNION ALL TABLE done) AS counted (source, status, n, first, is_exact)
WHERE n > 0 ORDER BY source, status
"""  # noqa: S608  constants
_REJECTIONS = "SELECT source, reason, count FROM hookonce.rejections ORDER BY source, reason"
_SECRETS = "SELECT source, slot, count, last_at AS last_used FROM hookonce.secret_use ORDER BY source, slot"
_CONFLICTS = f"""
SELECT count(*) FILTER (WHERE provider <> '{COMMAND}'), count(*) FILTER (WHERE provider = '{COMMAND}')
FROM (SELECT event FROM hookonce.conflicts ORDER BY id LIMIT %s) AS c JOIN hookonce.events e ON e.id = c.event
"""  # noqa: S608  a constant
MAX_CONFLICTS = 10_000


class StatusCount(ResponseModel):
    """Events of a source in a status."""

    source: Ours
    status: Ours
    count: int
    oldest_seconds: float | None = Field(description="age of the oldest; null for what is over")
    is_exact: bool = Field(description="false: estimated, since there are too many to count at each look")


class RejectionCount(ResponseModel):
    """Deliveries rejected, all time; `source` is empty where none has the name."""

    source: Ours
    reason: Ours
    count: int


class SecretUse(ResponseModel):
    """How often a secret verified a delivery, by its place in the configuration, from 1."""

    source: Ours
    slot: int
    count: int
    last_used: datetime | None


def event_sums(connection: psycopg.Connection) -> list[StatusCount]:
    """Count the ledger's events by source and status: open and failed ones by their rows, `done` is what is left.

    Numbers are estimated where there are more than `MAX_COUNTED` rows; `done` is exact where all others are. Rows that
    were changed by hand are counted as done, or not at all, until `event_counts.recount`.
    """
    return all_as(StatusCount, connection, _SUMS, prepare=False)


def rejections(connection: psycopg.Connection) -> list[RejectionCount]:
    """Count refused deliveries by source and reason, since ever."""
    return all_as(RejectionCount, connection, _REJECTIONS)


def secrets(connection: psycopg.Connection) -> list[SecretUse]:
    """Count deliveries by source and by the secret that verified them, and say when last."""
    return all_as(SecretUse, connection, _SECRETS)


def conflicts(connection: psycopg.Connection) -> tuple[int, int]:
    """Count the (event, other body) pairs of senders, and those of clients' keys; of `MAX_CONFLICTS` at most."""
    return connection.execute(_CONFLICTS, [MAX_CONFLICTS]).fetchone() or (0, 0)
