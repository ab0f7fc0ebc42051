"""What the sweep puts right when the database's clock was ahead for a while, and was set back.

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
PUT_OFF_NOW = f"'{PUT_OFF}@' || extract(epoch FROM now())"
"""SQL: the `schedule` of what is put off for a while by no rate, and leaves no failure: it tells when that was."""

# The latest moment that was written lately, by sweeps, workers that announce their handlers, claims or the last event.
_LATEST = """
SELECT latest FROM (SELECT greatest(
    (SELECT looked_at FROM hookonce.clock), (SELECT max(announced_at) FROM hookonce.handler_attempts),
    (SELECT max(made_at) FROM hookonce.claims), (SELECT max(made_at) FROM hookonce.batches),
    (SELECT received_at FROM hookonce.events ORDER BY id DESC LIMIT 1)) AS latest) AS written
WHERE latest > now() + %s::interval
"""
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
    """Notices for one sweep that the clock was set back; to be asked before the sweep stores its own look at it."""

    def __init__(self) -> None:
        self._latest: datetime | None = None
        self._until = 0.0

    def put_right(self, connection: psycopg.Connection) -> None:
        """Begin anew what began in the future; for a minute, since transactions that began then may yet commit."""
        row = connection.execute(_LATEST, [SET_BACK]).fetchone()
        if row is not None and row[0] != self._latest:
            self._latest, self._until = row[0], time.monotonic() + SET_BACK.total_seconds()
        if time.monotonic() < self._until:
            begin_anew(connection)


def begin_anew(connection: psycopg.Connection) -> int:
    """Begin pauses and leases anew that began in the future; return of how many runs. Committed page by page.

    Safe in many processes at once: what was begun anew once is of the future no more.
    """
    values = {"set_back": SET_BACK, "lease": LEASE}
    with connection.transaction():
        row = connection.execute(_BEGIN_CLAIMS_ANEW, values).fetchone()
    count = int(row[0]) if row else 0
    count += queue_pages.change(connection, _BEGIN_SUSPECTS_ANEW, values)[1]
    count += queue_pages.change_later(connection, _BEGIN_ANEW, values)
    if count:
        log.warning(
            "the database's clock was set back; what waited for it to come there again (%d runs) does not",
            count,
        )
    return count
