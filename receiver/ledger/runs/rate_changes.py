"""Makes due what was put off by a rate that its handler has no more, so that it gets its time by the one it has now.

A row of `limits` says by which rate its times are given, and since when; so does each run that was given one
(`run_limits.rate_of`). All workers give times by that, whatever rate they have themselves. A worker that finds another
rate than its own there writes its own and sets the row's head back to now: no time of before is one of the row's any
more, so none of the new ones comes besides. Each worker that meets what was written then goes through what is open, a
page at a time, so it matters to none whether another dies.

Only a worker that began after the row was written does so, so that the old ones of a rolling deploy leave it alone;
any other after `AGREED`, for the one that wrote it may be gone. Two services with different rates take turns by that.
A row whose times were given in the future (`limits.given_at`) is from before the database's clock was set back: its
head is as far off as the clock was ahead, and so are the times of its runs. It is begun anew, as with another rate.
"""

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

import psycopg

from hookonce.receiver.ledger.runs import queue_pages
from hookonce.receiver.ledger.runs.clock import SET_BACK

log = logging.getLogger(__name__)

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
_CHANGE = queue_pages.change_page(_WAS_PUT_OFF, _MAKE_DUE)
_CHANGE_SUSPECTS = queue_pages.change_suspects(_WAS_PUT_OFF, _MAKE_DUE)


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
            queue_pages.change(connection, _CHANGE_SUSPECTS, handlers)
            self._changed = changed
            self._place = queue_pages.BEGINNING
        while self._place is not None:
            self._place, _ = queue_pages.change(connection, _CHANGE, handlers, self._place)
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
