"""Writes what a claim has decided: leases, starts, what waits, what is over; in the claim's transaction."""

import logging
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import psycopg

from hookonce.receiver.ledger.runs import claimed, event_status
from hookonce.receiver.ledger.runs.claim_plan import ClaimPlan
from hookonce.receiver.ledger.states import EventStatus, Parked, RunStatus
from hookonce.receiver.ledger.stats import counters, event_counts
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)

UNKNOWN_HANDLER_PAUSE = timedelta(seconds=30)
LEASE_RAN_OUT = "the worker stopped, or took longer than its lease"
NOW = timedelta(0)

# Leases runs, starting those marked, or parks them; the upsert creates the runs of an event that is claimed first.
_LEASE = f"""
INSERT INTO hookonce.runs (event, handler, status, attempts, due_at, token, lease_until, started_at, parked, slot_at,
                           schedule, beside)
SELECT event, handler, CASE WHEN starts THEN '{RunStatus.RUNNING}' ELSE '{RunStatus.WAITING}' END, starts::int - refund,
       now() + lease, CASE WHEN leased THEN %(token)s END, CASE WHEN leased THEN now() + lease END,
       CASE WHEN starts THEN now() END, parked, CASE WHEN NOT starts THEN now() + slot END,
       CASE WHEN NOT starts AND slot IS NOT NULL THEN schedule END, starts AND %(beside)s
FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(leases)s::interval[], %(leased)s::bool[],
            %(starts)s::bool[], %(parked)s::text[], %(slots)s::interval[], %(schedules)s::text[],
            %(refunds)s::int[])
     AS t (event, handler, lease, leased, starts, parked, slot, schedule, refund)
ORDER BY event, handler
ON CONFLICT (event, handler) DO UPDATE SET
    status = excluded.status, attempts = runs.attempts + excluded.attempts, due_at = excluded.due_at,
    token = excluded.token, lease_until = excluded.lease_until,
    started_at = coalesce(excluded.started_at, runs.started_at), finished_at = NULL, parked = excluded.parked,
    slot_at = excluded.slot_at, schedule = excluded.schedule, beside = excluded.beside
"""  # noqa: S608  constants

# Unless whoever came after the worker has said why (`transitions.note_end_of_worker`).
END_EXPIRED = f"""
WITH lost AS (
    UPDATE hookonce.runs SET status = CASE WHEN buried THEN '{RunStatus.DEAD}' ELSE runs.status END,
                    due_at = CASE WHEN buried THEN NULL ELSE runs.due_at END,
                    token = NULL, lease_until = NULL, parked = NULL,
                    finished_at = CASE WHEN buried THEN now() ELSE runs.finished_at END
    FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(buried)s::bool[]) AS t (event, handler, buried)
    WHERE runs.event = t.event AND runs.handler = t.handler
    RETURNING runs.event, runs.handler, runs.cycle, runs.attempts, runs.started_at
)
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)
SELECT event, handler, cycle, attempts, %(error)s FROM lost
WHERE NOT EXISTS (SELECT FROM hookonce.failures f WHERE f.event = lost.event AND f.handler = lost.handler
                  AND f.cycle = lost.cycle AND f.attempt = lost.attempts AND f.failed_at >= lost.started_at)
"""  # noqa: S608  constants

_IGNORE = f"""
WITH given_up AS (
    UPDATE hookonce.events SET status = '{EventStatus.IGNORED}', due_at = NULL WHERE id = ANY(%s) RETURNING source
)
{event_counts.newly_ignored("given_up")}
"""  # noqa: S608  constants


def write(
    connection: psycopg.Connection,
    plan: ClaimPlan,
    token: uuid.UUID,
    budget: timedelta,
    *,
    starts: int = 1,
) -> None:
    """Write what was decided, all of it in the claim's transaction; `starts`: how many of those leased start now."""
    if plan.lost:
        events, handlers, buried = zip(*plan.lost, strict=True)
        connection.execute(
            END_EXPIRED,
            {
                "events": list(events),
                "handlers": list(handlers),
                "buried": list(buried),
                "error": LEASE_RAN_OUT,
            },
        )
    if recovered := _recovered(plan):
        counters.add(connection, recovered)
    unstarted = budget + claimed.UNSTARTED_MARGIN
    leased = [
        RunWrite(
            *(key := (run.event.id, run.handler)),
            run.lease if n < starts else unstarted,
            slot=NOW if key in plan.schedules else None,
            schedule=plan.schedules.get(key),
        )
        for n, run in enumerate(plan.leased)
    ]
    waiting = [RunWrite(*run, UNKNOWN_HANDLER_PAUSE) for run in plan.put_off]
    waiting += [RunWrite(*run, NOW, Parked.HANDLER) for run in plan.parked]
    waiting += left_to_batches(plan)
    waiting += [RunWrite(*run, plan.schedules.get((run.event, run.handler))) for run in plan.held]
    waiting += [RunWrite(*run, NOW, Parked.SUSPECT) for run in plan.suspects]
    if plan.refunds:
        leased, waiting = (
            [each._replace(refund=int((each.event, each.handler) in plan.refunds)) for each in writes]
            for writes in (leased, waiting)
        )
    write_runs(connection, waiting, token, leased, starts=starts, beside=plan.beside)
    if plan.ignored:
        connection.execute(_IGNORE, [plan.ignored])
    connection.execute(
        event_status.DERIVE_EVENT_STATUS, {"events": [event.id for event in plan.events]}, prepare=True
    )


def _recovered(plan: ClaimPlan) -> Counter[Tally]:
    """Count the leases that had run out, by source."""
    sources = {event.id: event.source for event in plan.events}
    lost = {(event, handler): is_dead for event, handler, is_dead in plan.lost}
    return Counter(
        Tally(Kind.RECOVERED, sources[run[0]], RunStatus.DEAD if lost.get(run) else "again")
        for run in lost.keys() | plan.refunds
    )


def left_to_batches(plan: ClaimPlan) -> list["RunWrite"]:
    """Return new runs that a batch will take, of events whose other runs are written now: they are due."""
    ids = {event.id for event in plan.events}
    return [
        RunWrite(run.event.id, run.handler, NOW)
        for run in plan.batchable
        if run.is_new and run.event.id in ids
    ]


class RunWrite(NamedTuple):
    """A run as it is to be written: for how long, why it is parked, how far off its limit's time for it is.

    `schedule`: by what that was given (`run_limits.Given`); `refund`: attempts that are given back.
    """

    event: int
    handler: str
    span: timedelta
    parked: str | None = None
    slot: timedelta | None = None
    schedule: str | None = None
    refund: int = 0


def write_runs(  # noqa: PLR0913  the last two by keyword
    connection: psycopg.Connection,
    waiting: Sequence[RunWrite],
    token: uuid.UUID,
    leased: Sequence[RunWrite] = (),
    *,
    starts: int = 1,
    beside: bool = False,
) -> None:
    """Write runs that wait, and those leased, the first `starts` of which are started."""
    if not (leased or waiting):
        return
    events, handlers, spans, parked, slots, schedules, refunds = zip(*leased, *waiting, strict=True)
    connection.execute(
        _LEASE,
        {
            "events": list(events),
            "handlers": list(handlers),
            "leases": list(spans),
            "leased": [n < len(leased) for n in range(len(events))],
            "starts": [n < min(starts, len(leased)) for n in range(len(events))],
            "parked": list(parked),
            "slots": list(slots),
            "schedules": list(schedules),
            "refunds": list(refunds),
            "beside": beside,
            "token": token,
        },
        prepare=True,
    )


def report(plan: ClaimPlan) -> None:
    """Log what was ignored, as its runs are where it has some."""
    if plan.ignored and log.isEnabledFor(logging.INFO):
        ignored = frozenset(plan.ignored)
        for event in plan.events:
            if event.id in ignored:
                said = {"event": event.id, "source": event.source, "type": event.type}
                log.info("ignored", extra=said)
