"""The alerts: what is wrong now (open) and what was. One row per trouble, from when it was raised to when it ended."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel, all_as

TURN_INTERVAL = timedelta(seconds=30)
"""How often the sweeps, together, look for trouble."""
OUTAGE = timedelta(minutes=5)
"""After nobody looked for longer than this, silence is counted from the first look on: it was ours."""
AHEAD = timedelta(minutes=2)
"""How far in the future a time may lie before it is taken for one of a clock that was ahead and came back."""
ENDED_ALERTS_TTL = timedelta(days=90)


OF_ISSUES = ("new_issue", "reopened_issue")
"""Kinds of alerts whose subject is an issue."""


class Alert(ResponseModel):
    """One trouble; `subject` is a source, a handler, an issue or a server, empty for the inbox as a whole."""

    id: Identifier
    kind: Ours
    subject: Ours
    detail: str
    since: datetime
    ended_at: datetime | None


# The row is the lock: whoever finds it held, or evaluated lately, has no turn.
_TURN = """
UPDATE hookonce.watching SET evaluated_at = now(),
                    since = CASE WHEN evaluated_at < now() - %(outage)s::interval
                                      OR since > now() + %(ahead)s::interval THEN now() ELSE since END
WHERE ctid IN (SELECT ctid FROM hookonce.watching
               WHERE evaluated_at < now() - %(turn)s::interval OR evaluated_at > now() + %(ahead)s::interval
               FOR UPDATE SKIP LOCKED)
RETURNING since, now()
"""

_SET_RIGHT = (
    "UPDATE hookonce.alerts SET since = now() WHERE ended_at IS NULL AND since > now() + %s::interval"
)

_COLUMNS = "id, kind, subject, detail, since, ended_at"
_OPEN = f"SELECT {_COLUMNS} FROM hookonce.alerts WHERE ended_at IS NULL ORDER BY since, id"  # noqa: S608  a constant
_ALL = f"""
SELECT {_COLUMNS} FROM hookonce.alerts
WHERE (%(before)s::bigint IS NULL OR id < %(before)s) AND (ended_at IS NULL OR NOT %(only_open)s)
      AND kind <> ALL(%(left_out)s)
ORDER BY id DESC LIMIT %(limit)s
"""  # noqa: S608  the same

_RAISE = f"""
INSERT INTO hookonce.alerts (kind, subject, detail) VALUES (%s, %s, %s)
ON CONFLICT (kind, subject) WHERE ended_at IS NULL DO NOTHING RETURNING {_COLUMNS}
"""  # noqa: S608  the same
_RETELL = "UPDATE hookonce.alerts SET detail = %s WHERE id = %s"
_RESOLVE = (
    f"UPDATE hookonce.alerts SET ended_at = now() WHERE id = %s AND ended_at IS NULL RETURNING {_COLUMNS}"  # noqa: S608
)
_FORGET = "DELETE FROM hookonce.alerts WHERE ended_at < now() - %s::interval"


# An alert's events are found by their ids: those of a busy inbox are many, and alerts are few.
_TOLD = """
WITH counted AS (
    SELECT max(received_at) AS at FROM hookonce.events WHERE source = %(source)s AND event_id = ANY(%(rest)s)
), changes AS (
    SELECT 'alert_' || id || '_raised' AS event_id, since AS at FROM hookonce.alerts
    WHERE since > now() - interval '2 h'
    UNION ALL SELECT 'alert_' || id || '_resolved', ended_at FROM hookonce.alerts
              WHERE ended_at > now() - interval '2 h'
)
SELECT now(), count(*) FILTER (WHERE e.received_at > now() - interval '1 h'), count(e.id),
       count(*) FILTER (WHERE e.id IS NULL AND (counted.at IS NULL OR changes.at > counted.at)),
       coalesce(bool_or(counted.at > now() - interval '1 h'), false)
FROM changes CROSS JOIN counted LEFT JOIN hookonce.events e ON (e.source, e.event_id) = (%(source)s, changes.event_id)
"""


# Failures of alerts are of few issues, by which the newest are found.
_UNREACHED = """
SELECT DISTINCT ON (f.handler) f.handler, f.error, f.failed_at
FROM hookonce.issues i CROSS JOIN LATERAL (
         SELECT event, handler, cycle, error, failed_at FROM hookonce.failures
         WHERE issue = i.id ORDER BY id DESC LIMIT 1) AS f
WHERE starts_with(i.handler, %(source)s || '.') AND f.failed_at > now() - interval '1 day'
      AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = f.event AND r.handler = f.handler
                                                        AND r.is_last AND r.status = 'done')
ORDER BY f.handler, f.failed_at DESC
"""


class Told(NamedTuple):
    """Counts of the events about alerts that changed within two hours."""

    now: datetime
    within_hour: int
    lately: int
    """of those changes"""
    untold: int
    """changes of which there is no event, since such were counted last"""
    is_counted: bool
    """whether such were counted within the hour"""


def rest_id(now: datetime) -> str:
    """Return the id of the event that counts alerts beside which there are no others: one in an hour of the clock."""
    return f"alert_rest_{int(now.timestamp() // 3600)}"


def told(connection: psycopg.Connection) -> Told:
    """Return how much was told lately."""
    (now,) = connection.execute("SELECT now()").fetchone() or ()
    rest = [rest_id(now - timedelta(hours=hours)) for hours in range(2)]
    row = connection.execute(_TOLD, {"source": ALERTS_SOURCE, "rest": rest}).fetchone()
    return Told(*row or ())


def unreached(connection: psycopg.Connection) -> list[tuple[str, str, datetime]]:
    """Return the handlers whose newest failure of the last day has not been made good: name, error, when."""
    return connection.execute(_UNREACHED, {"source": ALERTS_SOURCE}).fetchall()


def take_turn(connection: psycopg.Connection) -> tuple[datetime, datetime] | None:
    """Take this turn of looking for trouble: since when there has been looking without a pause, and the time.

    None if it is not due or somebody else's. To be called, and followed up, in one transaction of the caller's.
    """
    row = connection.execute(_TURN, {"turn": TURN_INTERVAL, "outage": OUTAGE, "ahead": AHEAD}).fetchone()
    if row is None:
        return None
    connection.execute(_SET_RIGHT, [AHEAD])
    return row[0], row[1]


def open_alerts(connection: psycopg.Connection) -> list[Alert]:
    """Return what is wrong now, the longest first."""
    return all_as(Alert, connection, _OPEN)


def all_alerts(
    connection: psycopg.Connection,
    limit: int,
    before: int | None,
    *,
    only_open: bool = False,
    left_out: Sequence[str] = (),
) -> list[Alert]:
    """Return the newest alerts with ids below `before`, whether or not they have ended, but for kinds left out."""
    wanted = {"limit": limit, "before": before, "only_open": only_open, "left_out": list(left_out)}
    return all_as(Alert, connection, _ALL, wanted)


def raise_alert(connection: psycopg.Connection, kind: str, subject: str, detail: str) -> Alert | None:
    """Open an alert; None if that one is open already."""
    with connection.cursor(row_factory=class_row(Alert)) as cursor:
        return cursor.execute(_RAISE, [kind, subject, detail]).fetchone()


def update_detail(connection: psycopg.Connection, alert: Alert, detail: str) -> None:
    """Write down how things stand now with an open alert."""
    connection.execute(_RETELL, [detail, alert.id])


def resolve(connection: psycopg.Connection, alert: Alert) -> Alert | None:
    """End an alert; None if it has ended before."""
    with connection.cursor(row_factory=class_row(Alert)) as cursor:
        return cursor.execute(_RESOLVE, [alert.id]).fetchone()


def forget(connection: psycopg.Connection) -> None:
    """Delete what ended longer ago than `ENDED_ALERTS_TTL`."""
    connection.execute(_FORGET, [ENDED_ALERTS_TTL])
