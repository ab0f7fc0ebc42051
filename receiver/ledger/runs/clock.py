"""The clock of the database: the sweep puts right what was due by it while it was ahead.

All times are the database's. What was received, tried or leased while its clock was ahead would be due when the clock
comes there again, hours later: it is due within a minute. Each such row also says when that was: an event when it was
received, a retry when it failed (`failures`), what was put off without a failure in `queue.schedule` (`PUT_OFF_NOW`).
That is a time in the future, which nothing else leaves. So a pause is begun anew from now on, as long as it was, and
so is a lease. What rates have put off is given new times by `receiver.ledger.runs.rate_changes`.
"""

import logging
import time
from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.ledger.reasons import PUT_OFF
from hookonce.receiver.ledger.runs import queue_pages
from hookonce.receiver.ledger.runs.claimed import LEASE

log = logging.getLogger(__name__)

SET_BACK = timedelta(minutes=1)
"""By how much the clock must have been set back at once; less passes by itself."""
TURN = timedelta(milliseconds=50)
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
_BEGIN_ANEW = queue_pages.change_page(
    f"{_SINCE} > {_AHEAD}",
    f"""due_at = now() + (q.due_at - {_SINCE}),
        schedule = CASE WHEN starts_with(q.schedule, '{PUT_OFF}@') THEN {PUT_OFF_NOW} ELSE q.schedule END""",
    """failed AS (
    UPDATE hookonce.failures f SET failed_at = now() FROM mine
    WHERE (f.event, f.handler, f.cycle) = (mine.event, mine.handler, mine.cycle) AND f.failed_at > now()
),""",
)
_BEGIN_SUSPECTS_ANEW = queue_pages.change_suspects(
    f"q.slot_at IS NULL AND q.due_at > {_AHEAD}", "due_at = now()"
)
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
        self._after: datetime | str = queue_pages.NOW

    def put_right(self, connection: psycopg.Connection) -> int:
        """Look at all leases and some of the queue, all of it where anything is of the future; count the runs.

        Committed page by page. Safe in many processes at once: what was begun anew once is of the future no more.
        """
        values = {"set_back": SET_BACK, "lease": LEASE}
        until = time.monotonic() + TURN.total_seconds()
        with connection.transaction():
            row = connection.execute(_BEGIN_CLAIMS_ANEW, values).fetchone()
        count = int(row[0]) if row else 0
        count += queue_pages.change(connection, _BEGIN_SUSPECTS_ANEW, values)[1]
        while True:
            end, changed = queue_pages.change(connection, _BEGIN_ANEW, values, self._after)
            self._after = end or queue_pages.NOW
            count += changed
            if end is None or (time.monotonic() > until and not count):
                break
        if count:
            log.warning(
                "the database's clock was set back; what waited for it to come there again (%d runs) does not",
                count,
            )
        return count
