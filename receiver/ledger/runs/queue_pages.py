"""Runs that wait for their time, gone through page by page where they are to come at another time.

A page is read by due time, so that a queue of millions is read once; its end is where the next one begins. What of it
is to be changed is locked, in the order of its rows, and left alone if somebody has changed it meanwhile.

The clock of the database may have been ahead. What was received, tried or leased then would be due when the clock comes
there again, hours later: the sweep has it due within a minute. Each such row also says when that was: an event when it
was received, a retry when it failed (`failures`), what was put off without a failure in `queue.schedule`
(`PUT_OFF_NOW`). That is a time in the future, which nothing else leaves. So a pause is begun anew from now on, as long
as it was, and so is a lease.

A rate may have been changed. A row of `limits` says by which rate its times are given, and since when; so does each run
that was given one (`run_limits.rate_of`). All workers give times by that, whatever rate they have themselves. A worker
that finds another rate than its own there writes its own and sets the row's head back to now: no time of before is one
of the row's any more, so none of the new ones comes besides. Each worker that meets what was written then goes through
what is open, so it matters to none whether another dies. Only a worker that began after the row was written does so, so
that the old ones of a rolling deploy leave it alone; any other after `AGREED`, for the one that wrote it may be gone.
Two services with different rates take turns by that. A row whose times were given in the future (`limits.given_at`) is
from before the clock was set back: it is begun anew, as with another rate.
"""

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg

from hookonce.receiver.ledger.reasons import PUT_OFF
from hookonce.receiver.ledger.runs.claimed import LEASE
from hookonce.receiver.ledger.states import Waits

log = logging.getLogger(__name__)

PAGE = 2000
BEGINNING = "-infinity"
"""The place before the first page."""
NOW = "now"
"""The place before what is not due yet."""

# Rows that are due at the same time are of one page: the next begins after them.
_AFTER = f"waits IS NULL AND due_at > %(after)s ORDER BY due_at FETCH FIRST {PAGE} ROWS WITH TIES"
_SUSPECTS = f"waits = '{Waits.SUSPECT}'"


def _change(which: str, condition: str, changes: str, *others: str) -> str:
    return f"""
WITH page AS MATERIALIZED (
    SELECT * FROM hookonce.queue WHERE {which}
), found AS MATERIALIZED (
    SELECT event, n, due_at, waits FROM page q WHERE token IS NULL AND {condition}
), mine AS MATERIALIZED (
    SELECT q.event, q.n, q.handler, q.cycle FROM found JOIN hookonce.queue q USING (event, n)
    WHERE q.token IS NULL AND q.due_at = found.due_at AND q.waits IS NOT DISTINCT FROM found.waits
    ORDER BY q.event, q.n FOR UPDATE OF q
), {"".join(others)} changed AS (
    UPDATE hookonce.queue q SET {changes} FROM mine WHERE (q.event, q.n) = (mine.event, mine.n)
)
SELECT max(due_at), (SELECT count(*) FROM mine) FROM page
"""  # noqa: S608  conditions of ours


def change_page(condition: str, changes: str, *others: str) -> str:
    """Return a statement that changes those rows of a page that nobody is at and a condition holds for.

    `condition` and `changes` are SQL on a row `q` of the queue; `others` do besides what belongs to it, from `mine`,
    each as `name AS (…),`. The statement takes `after`, the end of the page before, and returns the end of this one,
    None if there is none, and how many rows were changed.
    """
    return _change(_AFTER, condition, changes, *others)


def change_suspects(condition: str, changes: str) -> str:
    """Return a statement that does the same with suspects, which are few: all of them are one page."""
    return _change(_SUSPECTS, condition, changes)


def change(
    connection: psycopg.Connection,
    statement: str,
    values: Mapping[str, Any],
    after: datetime | str = BEGINNING,
) -> tuple[datetime | None, int]:
    """Change one page after a place; return where it ends, None if there is nothing after, and how many were changed.

    Committed.
    """
    with connection.transaction():
        row = connection.execute(statement, {**values, "after": after}).fetchone()
    return (row[0], row[1]) if row else (None, 0)


def change_later(connection: psycopg.Connection, statement: str, values: Mapping[str, Any]) -> int:
    """Change what is not due yet, page after page; return how many rows were changed. Committed page by page."""
    place: datetime | str | None = NOW
    changed = 0
    while place is not None:
        place, count = change(connection, statement, values, place)
        changed += count
    return changed


SET_BACK = timedelta(minutes=1)
"""By how much the clock must have been set back at once; less passes by itself."""
LOOK = timedelta(milliseconds=50)
"""How long a turn goes through a queue in which it finds nothing of the future; it looks at one page at least."""
PUT_OFF_NOW = f"'{PUT_OFF}@' || extract(epoch FROM now())"
"""SQL: the `schedule` of what is put off for a while by no rate, and leaves no failure: it tells when that was."""

_AHEAD = "now() + %(set_back)s::interval"
# When what is due later was put off, but not by a rate. What does not say, but was to run at once, does.
_SINCE = f"""CASE
    WHEN q.handler IS NULL THEN CASE WHEN q.due_at >= q.received_at THEN q.received_at END
    WHEN q.slot_at IS NOT NULL THEN NULL
    WHEN starts_with(q.schedule, '{PUT_OFF}@') THEN to_timestamp(split_part(q.schedule, '@', 2)::float)
    ELSE coalesce((SELECT max(f.failed_at) FROM hookonce.failures f
                   WHERE (f.event, f.handler, f.cycle) = (q.event, q.handler, q.cycle)), q.due_at) END"""  # noqa: S608  a constant
_BEGIN_ANEW = change_page(
    f"{_SINCE} > {_AHEAD}",
    f"""due_at = now() + (q.due_at - {_SINCE}),
        schedule = CASE WHEN starts_with(q.schedule, '{PUT_OFF}@') THEN {PUT_OFF_NOW} ELSE q.schedule END""",
    """failed AS (
    UPDATE hookonce.failures f SET failed_at = now() FROM mine
    WHERE (f.event, f.handler, f.cycle) = (mine.event, mine.handler, mine.cycle) AND f.failed_at > now()
),""",
)
_BEGIN_SUSPECTS_ANEW = change_suspects(f"q.slot_at IS NULL AND q.due_at > {_AHEAD}", "due_at = now()")
_BEGIN_CLAIMS_ANEW = f"""
WITH stranded AS MATERIALIZED (
    SELECT token FROM hookonce.claims
    WHERE made_at > {_AHEAD} OR lease_until > {_AHEAD} + %(lease)s::interval ORDER BY token FOR UPDATE
), begun AS (
    UPDATE hookonce.claims c SET lease_until = now() + %(lease)s::interval, made_at = least(made_at, now())
    FROM stranded WHERE c.token = stranded.token
    RETURNING cardinality(events) AS runs
)
SELECT coalesce(sum(runs), 0) FROM begun
"""  # noqa: S608  constants


class SetBack:
    """Begins anew, for one sweep, pauses and leases that began in the future; goes through what is due later."""

    def __init__(self) -> None:
        self._after: datetime | str = NOW

    def put_right(self, connection: psycopg.Connection) -> int:
        """Look at all leases and some of the queue, all of it where anything is of the future; count the runs.

        Committed page by page. Safe in many processes at once: what was begun anew once is of the future no more.
        """
        values = {"set_back": SET_BACK, "lease": LEASE}
        until = time.monotonic() + LOOK.total_seconds()
        with connection.transaction():
            row = connection.execute(_BEGIN_CLAIMS_ANEW, values).fetchone()
        count = int(row[0]) if row else 0
        count += change(connection, _BEGIN_SUSPECTS_ANEW, values)[1]
        while True:
            end, changed = change(connection, _BEGIN_ANEW, values, self._after)
            self._after = end or NOW
            count += changed
            if end is None or (time.monotonic() > until and not count):
                break
        if count:
            log.warning(
                "the database's clock was set back; what waited for it to come there again (%d runs) does not",
                count,
            )
        return count


TURN = timedelta(milliseconds=200)
"""How long a worker goes on with it, at a time."""
AGREED = timedelta(minutes=15)
"""How long what a worker wrote is left alone by those that began before."""
CLOCK_SET_BACK = (
    "the database's clock was set back by %s; what rates have put off since is given new times: %s"
)

KNOWN = timedelta(hours=1)
"""How long a worker that starts goes through what is open for a rate that another has written."""

# A third part of the schedule tells rows that were changed from those of a new account or source.
_WRITE = """
WITH other AS MATERIALIZED (
    SELECT l.handler, l.key, t.schedule, l.given_at - now() AS ahead FROM hookonce.limits l
    JOIN unnest(%(handlers)s::text[], %(schedules)s::text[]) AS t (handler, schedule) USING (handler)
    WHERE l.given_at > now() + %(set_back)s::interval
       OR (split_part(l.schedule, '@', 1) <> t.schedule
           AND split_part(l.schedule, '@', 2)::numeric
               < greatest(%(began)s, extract(epoch FROM now() - %(agreed)s::interval)))
    ORDER BY l.handler, l.key FOR UPDATE OF l
), written AS (
    UPDATE hookonce.limits l SET head = least(l.head, now()), given_at = now(),
                                 schedule = other.schedule || '@' || extract(epoch FROM now()) || '@changed'
    FROM other WHERE (l.handler, l.key) = (other.handler, other.key)
)
SELECT handler, max(ahead) FROM other WHERE ahead > %(set_back)s GROUP BY handler ORDER BY handler
"""
_CHANGED = """
SELECT DISTINCT schedule FROM hookonce.limits WHERE handler = ANY(%(handlers)s) AND split_part(schedule, '@', 3) <> ''
    AND split_part(schedule, '@', 2)::numeric > extract(epoch FROM now() - %(known)s::interval)
"""
_WAS_PUT_OFF = """q.slot_at IS NOT NULL AND q.handler = ANY(%(handlers)s)
    AND q.schedule NOT IN (SELECT schedule FROM hookonce.limits)"""
_MAKE_DUE = "due_at = now(), slot_at = NULL, schedule = NULL"
_CHANGE_PAGE = change_page(_WAS_PUT_OFF, _MAKE_DUE)
_CHANGE_SUSPECTS = change_suspects(_WAS_PUT_OFF, _MAKE_DUE)


class RateChanges:
    """The progress of one worker; `tend` is called now and then, by one thread."""

    def __init__(self) -> None:
        self._began: Decimal | None = None
        self._changed: set[str] = set()
        self._place: datetime | str | None = None

    def tend(self, connection: psycopg.Connection, schedules: Mapping[str, str]) -> bool:
        """Make due what other rates than these have put off, for `TURN` at most; return whether nothing is left.

        `schedules`: `RunLimit.schedule` by handler, empty for those that have no rate. Committed page by page.
        """
        until = time.monotonic() + TURN.total_seconds()
        handlers = {"handlers": list(schedules)}
        if self._place is None:
            changed = self._write(connection, schedules)
            if changed <= self._changed:
                return True
            change(connection, _CHANGE_SUSPECTS, handlers)
            self._changed = changed
            self._place = BEGINNING
        while self._place is not None:
            self._place, _ = change(connection, _CHANGE_PAGE, handlers, self._place)
            if self._place is not None and time.monotonic() > until:
                return False
        return True

    def _write(self, connection: psycopg.Connection, schedules: Mapping[str, str]) -> set[str]:
        """Write these rates where others are to give way to them; return those that were written lately."""
        values = {"handlers": list(schedules), "schedules": list(schedules.values()), "known": KNOWN}
        with connection.transaction():
            if self._began is None:
                row = connection.execute("SELECT extract(epoch FROM now())").fetchone()
                self._began = row[0] if row else None
            limits = {"began": self._began, "agreed": AGREED, "set_back": SET_BACK}
            ahead: dict[str, timedelta] = dict(connection.execute(_WRITE, values | limits).fetchall())
            if ahead:
                log.warning(CLOCK_SET_BACK, max(ahead.values()), ", ".join(ahead))
            return {schedule for (schedule,) in connection.execute(_CHANGED, values)}
