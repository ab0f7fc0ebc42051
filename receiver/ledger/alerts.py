"""The alerts: what is wrong now (open) and what was. One row per trouble, from when it was raised to when it ended."""

from datetime import datetime, timedelta

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel, all_as

TURN_INTERVAL = timedelta(seconds=30)
"""How often the sweeps, together, look for trouble."""
OUTAGE = timedelta(minutes=5)
"""After nobody looked for longer than this, silence is counted from the first look on: it was ours."""
AHEAD = timedelta(minutes=2)
"""How far in the future a time may lie before it is taken for one of a clock that was ahead and came back."""
ENDED_ALERTS_TTL = timedelta(days=90)


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
    connection: psycopg.Connection, limit: int = 100, before: int | None = None, *, only_open: bool = False
) -> list[Alert]:
    """Return the newest alerts, whether or not they have ended, those with ids below `before`."""
    wanted = {"limit": limit, "before": before, "only_open": only_open}
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
