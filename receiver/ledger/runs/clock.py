"""What is put right when the database's clock was ahead for a while, and was set back.

All times are the database's. What was received, tried or leased while its clock was ahead is due when the clock comes
there again, hours later. Each such row also says when that was: a time in the future, which nothing else leaves. So a
pause is begun anew from now on, as long as it was, and so is a lease. What rates have put off is given new times by
`receiver.ledger.runs.rate_changes`.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.ledger.runs import event_status
from hookonce.receiver.ledger.runs.claimed import LEASE_MARGIN
from hookonce.receiver.ledger.states import EventStatus, Parked, RunStatus

log = logging.getLogger(__name__)

SET_BACK = timedelta(minutes=1)
"""By how much the clock must have been set back at once; less passes by itself."""
_PAGE = 1000

# Numbers of attempts are announced by all workers, again and again; those of the future tell of a clock set back before
# this worker began.
_LOOK = """
SELECT clock_timestamp(), (SELECT max(announced_at) FROM hookonce.handler_attempts) > now() + %s::interval
"""
_LIMIT = "(SELECT max(timeout) FROM hookonce.handlers h WHERE h.handler = r.handler) + %(margin)s::interval"
_FAILED_AHEAD = """EXISTS (SELECT FROM hookonce.failures f WHERE (f.event, f.handler) = (r.event, r.handler)
    AND f.failed_at > now() + %(set_back)s::interval)"""
_IS_OF_NO_LIMIT = f"(r.parked IS NULL OR r.parked = '{Parked.SUSPECT}') AND r.slot_at IS NULL"
_IS_RUN_STRANDED = f"""r.due_at > now() AND (
    r.status = '{RunStatus.RUNNING}' AND (r.started_at > now() + %(set_back)s::interval
        OR r.lease_until > now() + %(set_back)s::interval + {_LIMIT})
    OR r.status = '{RunStatus.WAITING}' AND {_IS_OF_NO_LIMIT} AND (r.started_at > now() + %(set_back)s::interval
        OR r.started_at IS NULL AND r.due_at > now() + %(set_back)s::interval OR {_FAILED_AHEAD}))"""
_IS_NEW_STRANDED = f"""status = '{EventStatus.RECEIVED}' AND due_at >= received_at
    AND received_at > now() + %(set_back)s::interval"""
_STRANDED = f"""
SELECT e.id FROM hookonce.events e WHERE e.due_at > now() AND e.parked IS NULL AND e.id > %(after)s
    AND ({_IS_NEW_STRANDED}
         OR EXISTS (SELECT FROM hookonce.runs r WHERE r.event = e.id AND {_IS_RUN_STRANDED} OFFSET 0))
ORDER BY e.id LIMIT {_PAGE} FOR UPDATE OF e
"""  # noqa: S608  constants
_BEGIN_NEW_ANEW = f"""
UPDATE hookonce.events SET due_at = now() + (due_at - received_at) WHERE id = ANY(%(events)s) AND {_IS_NEW_STRANDED}
"""  # noqa: S608  constants
# A pause begins anew at the time that is now, whatever began it; what was to run at once does.
_BEGIN_RUNS_ANEW = f"""
WITH stranded AS MATERIALIZED (
    SELECT r.event, r.handler, r.due_at - CASE
               WHEN r.started_at > now() THEN r.started_at
               WHEN r.status = '{RunStatus.RUNNING}' THEN r.lease_until - {_LIMIT}
               ELSE coalesce((SELECT max(f.failed_at) FROM hookonce.failures f WHERE (f.event, f.handler)
                   = (r.event, r.handler) AND f.failed_at > now()), r.due_at) END AS span
    FROM hookonce.runs r WHERE r.event = ANY(%(events)s) AND {_IS_RUN_STRANDED}
), failed AS (
    UPDATE hookonce.failures f SET failed_at = now() FROM stranded s
    WHERE (f.event, f.handler) = (s.event, s.handler) AND f.failed_at > now()
)
UPDATE hookonce.runs r SET started_at = least(r.started_at, now()),
    due_at = now() + greatest(s.span, interval '0'),
    lease_until = CASE WHEN r.lease_until IS NOT NULL THEN now() + greatest(s.span, interval '0') END
FROM stranded s WHERE (r.event, r.handler) = (s.event, s.handler)
"""  # noqa: S608  constants
_BEGIN_BATCHES_ANEW = """
UPDATE hookonce.batches SET lease_until = now() + (lease_until - made_at), made_at = now()
WHERE token IS NOT NULL AND made_at > now() + %(set_back)s::interval
"""


class ClockWatch:
    """Compares the database's clock with this process's, which nobody sets; for one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ahead: datetime | None = None  # the time at which our clock began, by the database's

    def look(self, connection: psycopg.Connection) -> bool:
        """Return whether the clock was set back since the last look; at the first, whether it was before. Committed."""
        with connection.transaction():
            row = connection.execute(_LOOK, [SET_BACK]).fetchone()
        if row is None:
            return False
        now, is_announced_ahead = row
        before, self._ahead = self._ahead, now - timedelta(seconds=self._clock())
        return bool(is_announced_ahead) if before is None else bool(before - self._ahead > SET_BACK)


def begin_anew(connection: psycopg.Connection) -> int:
    """Begin pauses and leases anew that began in the future; return of how many events. Committed page by page.

    Safe in many processes at once: what was begun anew once is of the future no more.
    """
    values = {"set_back": SET_BACK, "margin": LEASE_MARGIN, "after": 0}
    count = 0
    with connection.transaction():
        connection.execute(_BEGIN_BATCHES_ANEW, values)
    while True:
        with connection.transaction():
            events = [event for (event,) in connection.execute(_STRANDED, values)]
            values |= {"events": events}
            if events:
                connection.execute(_BEGIN_NEW_ANEW, values)
                connection.execute(_BEGIN_RUNS_ANEW, values)
                connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": events})
        count += len(events)
        if len(events) < _PAGE:
            break
        values |= {"after": events[-1]}
    log.warning(
        "the database's clock was set back; what waited for it to come there again (%d events) does not",
        count,
    )
    return count
