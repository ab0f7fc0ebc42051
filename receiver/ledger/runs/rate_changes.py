"""Makes due what was put off by a rate that its handler has no more, so that it gets its time by the one it has now.

A row of `limits` says by which rate its times are given, and since when; so does each run that was given one
(`run_limits.rate_of`). All workers give times by that, whatever rate they have themselves. A worker that finds another
rate than its own there writes its own and sets the row's head back to now: no time of before is one of the row's any
more, so none of the new ones comes besides. Then it goes through what is open, a page at a time. The row is marked as
long as that lasts, so that another worker goes on where one has died.

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
from hookonce.receiver.ledger.runs.run_limits import CHANGING

log = logging.getLogger(__name__)

TURN = timedelta(milliseconds=200)
"""How long a worker goes on with it, at a time."""
AGREED = timedelta(minutes=15)
"""How long what a worker wrote is left alone by those that began before."""
CLOCK_SET_BACK = (
    "the database's clock was set back by %s; what rates have put off since is given new times: %s"
)

_BEGIN = f"""
WITH other AS MATERIALIZED (
    SELECT l.handler, l.key, t.schedule, l.given_at - now() AS ahead,
           split_part(l.schedule, '@', 1) = '{CHANGING}' || t.schedule
               AND l.given_at <= now() + %(set_back)s::interval AS is_begun
    FROM hookonce.limits l
    JOIN unnest(%(handlers)s::text[], %(schedules)s::text[]) AS t (handler, schedule) USING (handler)
    WHERE split_part(l.schedule, '@', 1) = '{CHANGING}' || t.schedule
       OR l.given_at > now() + %(set_back)s::interval
       OR (split_part(ltrim(l.schedule, '{CHANGING}'), '@', 1) <> t.schedule
           AND split_part(l.schedule, '@', 2)::numeric
               < greatest(%(began)s, extract(epoch FROM now() - %(agreed)s::interval)))
    ORDER BY l.handler, l.key FOR UPDATE OF l
), begun AS (
    UPDATE hookonce.limits l SET head = least(l.head, now()), given_at = now(),
                                 schedule = '{CHANGING}' || other.schedule || '@' || extract(epoch FROM now())
    FROM other WHERE (l.handler, l.key) = (other.handler, other.key) AND NOT is_begun
)
SELECT handler, bool_and(is_begun), max(ahead) FILTER (WHERE ahead > %(set_back)s) FROM other
GROUP BY handler ORDER BY handler
"""  # noqa: S608  constants
_END = f"""
UPDATE hookonce.limits SET schedule = ltrim(schedule, '{CHANGING}') WHERE (handler, key) IN (
    SELECT l.handler, l.key FROM hookonce.limits l
    JOIN unnest(%(handlers)s::text[], %(schedules)s::text[]) AS t (handler, schedule) USING (handler)
    WHERE split_part(l.schedule, '@', 1) = '{CHANGING}' || t.schedule
    ORDER BY l.handler, l.key FOR UPDATE OF l)
"""  # noqa: S608  constants
# By another rate, or by the same one before it was begun anew.
_WAS_PUT_OFF = f"""q.slot_at IS NOT NULL AND EXISTS (
    SELECT FROM unnest(%(handlers)s::text[], %(schedules)s::text[]) AS t (handler, schedule)
    WHERE t.handler = q.handler AND (split_part(q.schedule, '@', 1) <> t.schedule
        OR q.schedule NOT IN (SELECT ltrim(schedule, '{CHANGING}') FROM hookonce.limits)))"""  # noqa: S608  a constant
_MAKE_DUE = "due_at = now(), slot_at = NULL, schedule = NULL"
_CHANGE = queue_pages.change_page(_WAS_PUT_OFF, _MAKE_DUE)
_CHANGE_SUSPECTS = queue_pages.change_suspects(_WAS_PUT_OFF, _MAKE_DUE)


class RateChanges:
    """What one worker is at; `tend` is called now and then, by one thread."""

    def __init__(self) -> None:
        self._schedules: dict[str, str] = {}
        self._place: datetime | str | None = None
        self._by_others: set[str] = set()
        self._began: Decimal | None = None

    def tend(self, connection: psycopg.Connection, schedules: Mapping[str, str]) -> bool:
        """Make due what other rates than these have put off, for `TURN` at most; return whether nothing is left.

        `schedules`: `RunLimit.schedule` by handler, empty for those that have no rate. Committed page by page.
        """
        until = time.monotonic() + TURN.total_seconds()
        if self._place is None:
            self._schedules = self._changed(connection, schedules)
            if not self._schedules:
                return True
            queue_pages.change(connection, _CHANGE_SUSPECTS, self._wanted)
            self._place = queue_pages.BEGINNING
        while True:
            end, _ = queue_pages.change(connection, _CHANGE, self._wanted, self._place)
            if end is None:
                break
            self._place = end
            if time.monotonic() > until:
                return False
        with connection.transaction():
            connection.execute(_END, self._wanted)
        self._place = None
        return True

    def _changed(self, connection: psycopg.Connection, schedules: Mapping[str, str]) -> dict[str, str]:
        """Return the handlers that had another rate; those that another worker is at only if it takes long."""
        with connection.transaction():
            if self._began is None:
                row = connection.execute("SELECT extract(epoch FROM now())").fetchone()
                self._began = row[0] if row else None
            wanted = {"handlers": list(schedules), "schedules": list(schedules.values())}
            values = {**wanted, "began": self._began, "agreed": AGREED, "set_back": SET_BACK}
            rows = connection.execute(_BEGIN, values).fetchall()
            if ahead := {handler: by for handler, _, by in rows if by is not None}:
                log.warning(CLOCK_SET_BACK, max(ahead.values()), ", ".join(ahead))
        before, self._by_others = self._by_others, {handler for handler, is_begun, _ in rows if is_begun}
        ours = [handler for handler, is_begun, _ in rows if not is_begun or handler in before]
        self._by_others -= set(ours)
        return {handler: schedules[handler] for handler in ours}

    @property
    def _wanted(self) -> dict[str, list[str]]:
        return {"handlers": list(self._schedules), "schedules": list(self._schedules.values())}
