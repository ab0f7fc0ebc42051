"""Claims due events for one worker: leases their runs under a random token, and starts one of them.

What to lease is `receiver.ledger.runs.claim_plan`'s to say; here it is read, locked and written. What is paused is
parked (`receiver.ledger.runs.parking`), so that it is met once. Lock order as in
`receiver.ledger.runs.transitions`: events by id (or skipped, if another holds them), then runs; a pause after both.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import args_row, class_row

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.columns import values
from hookonce.receiver.ledger.due import IS_DUE, IS_NOT_PAUSED, MAY_BE_CLAIMED
from hookonce.receiver.ledger.runs import claimed, limit_gate, parking, transitions, unreadable
from hookonce.receiver.ledger.runs.claim_plan import ClaimPlan, PausedHandlers, Planner
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun, ExistingRun
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.states import EventStatus, Parked, RunStatus
from hookonce.receiver.ledger.stats import counters, event_counts
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)

UNKNOWN_HANDLER_PAUSE = timedelta(seconds=30)
LEASE_RAN_OUT = "the worker stopped, or took longer than its lease"
HEAVY = 256 * 1024
"""Bodies above this are loaded when their run starts, so that a batch of them does not fill the memory."""
_HEAD = 1000
"""Due events among which those that only paused handlers take are parked in one go."""
_LOOK = 1000
"""Due events that are looked at to tell whether there is anything to do."""
_NOW = timedelta(0)
_LATEST = 500
"""Due events, the last, among which those are looked for that are not of the crowd at the head of the queue."""


class Claim(NamedTuple):
    """The runs leased, the first of them started; `events`: due ones looked at, `is_more`: some may be left.

    `parked`: events that were parked besides; there may be more of these, too. `failing`: handlers whose failures in a
    row are counted (`receiver.ledger.runs.breakers`).
    """

    runs: list[ClaimedRun]
    events: int
    is_more: bool = False
    parked: int = 0
    failing: AbstractSet[str] = frozenset()


_IN_EVENTS = values(ClaimedEvent, "events")
_VALUES = {name: f"d.{name}" for name in _IN_EVENTS} | values(ClaimedEvent, "bodies")


def _due(which: str) -> str:
    return f"""
WITH due AS MATERIALIZED (
    SELECT {", ".join(_IN_EVENTS)} FROM hookonce.events
    WHERE {which}
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
SELECT {", ".join(_VALUES[name] for name in ClaimedEvent._fields)}
FROM due d LEFT JOIN hookonce.bodies b ON b.event = d.id AND b.received_at = d.received_at
ORDER BY d.due_at, d.id
"""  # noqa: S608  constants


# What was made due a little earlier may have been committed only now.
_DUE_ANY = _due(
    f"{MAY_BE_CLAIMED} AND due_at >= coalesce(%(since)s::timestamptz - interval '2 seconds', '-infinity')"
)
_DUE_NAMED = _due(f"{MAY_BE_CLAIMED} AND id = ANY(%(ids)s)")

# Among what has become due last, the first of each kind that is not left out.
_DUE_BESIDE = _due(f"""{MAY_BE_CLAIMED} AND id = ANY(ARRAY(
        SELECT id FROM (SELECT id, due_at, source, type FROM hookonce.events WHERE {IS_DUE}
                        ORDER BY due_at DESC LIMIT {_LATEST}) AS latest
        WHERE NOT EXISTS (SELECT FROM unnest(%(sources)s::text[], %(types)s::text[]) AS t (source, type)
                          WHERE (t.source, t.type) = (latest.source, latest.type))
        ORDER BY due_at LIMIT %(limit)s))""")  # noqa: S608  constants

# Without their bodies: to be parked they need none.
_DUE_HEAD = f"""
SELECT {", ".join(name if name in _IN_EVENTS else "NULL" for name in ClaimedEvent._fields)} FROM hookonce.events
WHERE {MAY_BE_CLAIMED} AND status <> '{EventStatus.RUNNING}'
ORDER BY due_at LIMIT {_HEAD} FOR UPDATE SKIP LOCKED
"""  # noqa: S608  constants

# Event by event, whatever the planner thinks of the table: it may have been empty when the plan was made.
_RUNS = """
SELECT r.event, r.handler, r.status, r.attempts, r.cycle, r.due_at <= now() AS is_due, r.parked, r.slot_at
FROM unnest(%s::bigint[]) AS t (event), LATERAL (SELECT * FROM hookonce.runs WHERE event = t.event OFFSET 0) AS r
"""

_TRIAL = "trial"
_PAUSED = f"""
SELECT kind, name, NULL::bigint FROM hookonce.pauses
UNION ALL SELECT '{_TRIAL}', handler, trying FROM hookonce.breakers
"""  # noqa: S608  a constant

# Leases runs, starting those marked, or parks them; the upsert creates the runs of an event that is claimed first.
_LEASE = f"""
INSERT INTO hookonce.runs (event, handler, status, attempts, due_at, token, lease_until, started_at, parked, slot_at)
SELECT event, handler, CASE WHEN starts THEN '{RunStatus.RUNNING}' ELSE '{RunStatus.WAITING}' END, starts::int,
       now() + lease, CASE WHEN leased THEN %(token)s END, CASE WHEN leased THEN now() + lease END,
       CASE WHEN starts THEN now() END, parked, CASE WHEN NOT starts THEN now() + slot END
FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(leases)s::interval[], %(leased)s::bool[],
            %(starts)s::bool[], %(parked)s::text[], %(slots)s::interval[])
     AS t (event, handler, lease, leased, starts, parked, slot)
ORDER BY event, handler
ON CONFLICT (event, handler) DO UPDATE SET
    status = excluded.status, attempts = runs.attempts + excluded.attempts, due_at = excluded.due_at,
    token = excluded.token, lease_until = excluded.lease_until,
    started_at = coalesce(excluded.started_at, runs.started_at), finished_at = NULL, parked = excluded.parked,
    slot_at = excluded.slot_at
"""  # noqa: S608  constants

# Unless whoever came after the worker has said why (`transitions.note_end_of_worker`).
_END_EXPIRED = f"""
WITH lost AS (
    UPDATE hookonce.runs SET status = CASE WHEN buried THEN '{RunStatus.DEAD}' ELSE runs.status END,
                    due_at = CASE WHEN buried THEN NULL ELSE runs.due_at END,
                    token = NULL, lease_until = NULL, parked = NULL,
                    finished_at = CASE WHEN buried THEN now() ELSE runs.finished_at END
    FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(buried)s::bool[]) AS t (event, handler, buried)
    WHERE runs.event = t.event AND runs.handler = t.handler
    RETURNING runs.event, runs.handler, runs.cycle, runs.attempts
)
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)
SELECT event, handler, cycle, attempts, %(error)s FROM lost
WHERE NOT EXISTS (SELECT FROM hookonce.failures f WHERE f.event = lost.event AND f.handler = lost.handler
                  AND f.cycle = lost.cycle AND f.attempt = lost.attempts)
"""  # noqa: S608  constants

_IGNORE = f"""
WITH given_up AS (
    UPDATE hookonce.events SET status = '{EventStatus.IGNORED}', due_at = NULL WHERE id = ANY(%s) RETURNING source
)
{event_counts.newly_ignored("given_up")}
"""  # noqa: S608  constants


def claim(  # noqa: PLR0913  all but two by keyword
    connection: psycopg.Connection,
    planner: Planner,
    *,
    budget: timedelta,
    ids: Sequence[int] | None = None,
    limit: int = 50,
    quick_first: bool = True,
    cursor: DueCursor | None = None,
    at_once: int = 1,
) -> Claim:
    """Lease due events (those of `ids`, or any) and start the first run of the first one; committed.

    An event whose lease ran out is claimed alone, so that a poisonous one takes nobody with it. `budget` is how
    long after the claim an unstarted run may still be started; after that it must be released. One that a slow
    handler takes is claimed alone too, and with `quick_first` only if no other is due: nobody waits behind it.
    Without `ids`, `cursor` says where to look, and is told what was found. `at_once`: how many runs of a
    handler that is limited to a number at once this worker can have under way.
    """
    token = uuid.uuid4()
    plan = None
    with connection.pipeline(), connection.transaction():
        pauses = connection.execute(_PAUSED, prepare=True)
        due, odd = _due_events(connection, ids, limit, cursor or DueCursor())
        paused = _Paused.of(pauses.fetchall())
        if odd:
            _bury(connection, planner, odd, budget)
        if due:
            events = _claimable(due, planner, quick_first=quick_first)
            plan = _plan(connection, events, planner, paused, token)
            limit_gate.hold_back(connection, plan, at_once)
            _write(connection, plan, token, budget)
            reach("run.leased")
    parked = parking.park_sources(connection) if paused.sources else 0
    if plan is None:
        return Claim([], len(odd), is_more=bool(odd), parked=parked, failing=paused.failing)
    if 2 * len({event for event, _ in plan.parked_whole}) > len(plan.events):
        parked += _park_head(connection, planner, paused)
    _report(plan)
    count = len(due) + len(odd)
    is_more = count == limit or len(events) < len(due)
    return Claim(plan.leased, count, is_more, parked, paused.failing)


def _due_events(
    connection: psycopg.Connection, ids: Sequence[int] | None, limit: int, cursor: DueCursor
) -> tuple[list[ClaimedEvent], list[int]]:
    """Lock due events, those of `ids` or the first that are found; return them, and the ids of unreadable ones."""
    if ids is not None:
        return _locked(connection, _DUE_NAMED, limit, ids=list(ids))
    for look in cursor.looks():
        if look.beside:
            sources, types = zip(*look.beside, strict=True)
            due, odd = _locked(connection, _DUE_BESIDE, limit, sources=list(sources), types=list(types))
        else:
            due, odd = _locked(connection, _DUE_ANY, limit, since=look.since)
        cursor.found(look, due, limit)
        if due or odd:
            break
    return due, odd


def _locked(
    connection: psycopg.Connection, query: str, limit: int, **wanted: object
) -> tuple[list[ClaimedEvent], list[int]]:
    values = wanted | {"limit": limit, "heavy": HEAVY}
    rows = connection.cursor(row_factory=args_row(ClaimedEvent))
    return unreadable.sort_out(rows.execute(query, values, prepare=True, binary=True))


def _bury(connection: psycopg.Connection, planner: Planner, ids: Sequence[int], budget: timedelta) -> None:
    """End the runs of events that can't be read as dead, each with one attempt: the others must go on."""
    events, token = unreadable.labels(connection, ids), uuid.uuid4()
    plan = ClaimPlan(events, planner, _existing(connection, events), PausedHandlers(), token)
    _write(connection, plan, token, budget, start_all=True)
    for event in events:
        handlers = [run.handler for run in plan.leased if run.event.id == event.id]
        error = unreadable.reason(connection, event.id, _VALUES, HEAVY)
        log.error("%s", error, extra={"event": event.id, "source": event.source, "type": event.type})
        buried = {
            "events": [event.id] * len(handlers),
            "handlers": handlers,
            "buried": [True] * len(handlers),
        }
        connection.execute(_END_EXPIRED, buried | {"error": error})
    connection.execute(transitions.DERIVE_EVENT_STATUS, {"events": [event.id for event in events]})


class _Paused(NamedTuple):
    """What is paused, and the handlers that failed last."""

    sources: frozenset[str]
    handlers: PausedHandlers
    failing: frozenset[str]

    @classmethod
    def of(cls, rows: Sequence[tuple[str, str, int | None]]) -> "_Paused":
        """Sort the rows of `pauses` and `breakers`."""
        return cls(
            frozenset(name for kind, name, _ in rows if kind == Parked.SOURCE),
            PausedHandlers(
                frozenset(name for kind, name, _ in rows if kind == Parked.HANDLER),
                frozenset(
                    (event, name) for kind, name, event in rows if kind == _TRIAL and event is not None
                ),
            ),
            frozenset(name for kind, name, _ in rows if kind == _TRIAL),
        )


def _plan(
    connection: psycopg.Connection,
    events: Sequence[ClaimedEvent],
    planner: Planner,
    paused: "_Paused",
    token: uuid.UUID,
) -> ClaimPlan:
    """Decide on locked events; runs that are to be parked have their pause locked."""
    existing = _existing(connection, events)
    plan = ClaimPlan(events, planner, existing, paused.handlers, token)
    if not plan.parked:
        return plan
    names = {handler for _, handler in plan.parked}
    left = parking.lock_pauses(connection, Parked.HANDLER, names)
    # What is parked already stays so: whoever ends its pause finds it, and waits for our locks.
    if left == names:
        return plan
    still = paused.handlers._replace(names=paused.handlers.names - (names - left))
    return ClaimPlan(events, planner, existing, still, token)


def _park_head(connection: psycopg.Connection, planner: Planner, paused: "_Paused") -> int:
    """Park what only paused handlers take at the head of the queue; return the number of events. Committed.

    Where most of what a claim has met is of that kind, many more may come: they would keep all others waiting.
    """
    token = uuid.uuid4()
    with connection.pipeline(), connection.transaction():
        cursor = connection.cursor(row_factory=args_row(ClaimedEvent))
        due = cursor.execute(_DUE_HEAD, prepare=True, binary=True).fetchall()
        plan = _plan(connection, due, planner, paused, token)
        runs = plan.parked_whole
        events = sorted({event for event, _ in runs})
        if events:
            _write_runs(connection, [_RunWrite(*run, _NOW, Parked.HANDLER) for run in runs], token)
            connection.execute(transitions.DERIVE_EVENT_STATUS, {"events": events}, prepare=True)
    return len(events)


def _claimable(due: Sequence[ClaimedEvent], planner: Planner, *, quick_first: bool) -> Sequence[ClaimedEvent]:
    """Choose the events that may be claimed together."""
    running = EventStatus.RUNNING
    if due[0].status == running:
        return due[:1]
    fresh = [event for event in due if event.status != running]
    quick = [event for event in fresh if not planner.is_slow(event.source, event.provider, event.type)]
    if not quick or (quick[0] is not fresh[0] and not quick_first):
        return fresh[:1]
    return quick


def _write(
    connection: psycopg.Connection,
    plan: ClaimPlan,
    token: uuid.UUID,
    budget: timedelta,
    *,
    start_all: bool = False,
) -> None:
    """Write what was decided, all of it in the claim's transaction."""
    if plan.lost:
        events, handlers, buried = zip(*plan.lost, strict=True)
        connection.execute(
            _END_EXPIRED,
            {
                "events": list(events),
                "handlers": list(handlers),
                "buried": list(buried),
                "error": LEASE_RAN_OUT,
            },
        )
        counters.add(connection, _recovered(plan))
    slots = {(each.run.event.id, each.run.handler) for each in plan.limited if each.limit.rate}
    leased = [
        _RunWrite(
            *(key := (run.event.id, run.handler)),
            budget + claimed.UNSTARTED_MARGIN,
            slot=_NOW if key in slots else None,
        )
        for run in plan.leased
    ]
    if leased:
        leased[0] = leased[0]._replace(span=plan.leased[0].lease)
    waiting = [_RunWrite(*run, UNKNOWN_HANDLER_PAUSE) for run in plan.put_off]
    waiting += [_RunWrite(*run, _NOW, Parked.HANDLER) for run in plan.parked]
    waiting += [
        _RunWrite(run.event, run.handler, run.delay, run.parked, None if run.parked else run.delay)
        for run in plan.held
    ]
    _write_runs(connection, waiting, token, leased, start_all=start_all)
    if plan.ignored:
        connection.execute(_IGNORE, [plan.ignored])
    connection.execute(
        transitions.DERIVE_EVENT_STATUS, {"events": [event.id for event in plan.events]}, prepare=True
    )


def _recovered(plan: ClaimPlan) -> Counter[Tally]:
    """Count the leases that had run out, by source."""
    sources = {event.id: event.source for event in plan.events}
    return Counter(
        Tally(Kind.RECOVERED, sources[event], RunStatus.DEAD if is_dead else "again")
        for event, _, is_dead in plan.lost
    )


class _RunWrite(NamedTuple):
    """A run as it is to be written: for how long, why it is parked, how far off its limit's time for it is."""

    event: int
    handler: str
    span: timedelta
    parked: str | None = None
    slot: timedelta | None = None


def _write_runs(
    connection: psycopg.Connection,
    waiting: Sequence[_RunWrite],
    token: uuid.UUID,
    leased: Sequence[_RunWrite] = (),
    *,
    start_all: bool = False,
) -> None:
    """Write runs that wait, and those leased, the first of which is started, or all of them."""
    if not (leased or waiting):
        return
    events, handlers, spans, parked, slots = zip(*leased, *waiting, strict=True)
    connection.execute(
        _LEASE,
        {
            "events": list(events),
            "handlers": list(handlers),
            "leases": list(spans),
            "leased": [n < len(leased) for n in range(len(events))],
            "starts": [n < (len(leased) if start_all else min(1, len(leased))) for n in range(len(events))],
            "parked": list(parked),
            "slots": list(slots),
            "token": token,
        },
        prepare=True,
    )


def _report(plan: ClaimPlan) -> None:
    """Log what was ignored, as its runs are where it has some."""
    if plan.ignored and log.isEnabledFor(logging.INFO):
        ignored = frozenset(plan.ignored)
        for event in plan.events:
            if event.id in ignored:
                said = {"event": event.id, "source": event.source, "type": event.type}
                log.info("ignored", extra=said)


def _existing(
    connection: psycopg.Connection, events: Sequence[ClaimedEvent]
) -> Mapping[int, Sequence[ExistingRun]]:
    """Return the runs there are by event."""
    found: dict[int, list[ExistingRun]] = {event.id: [] for event in events}
    cursor = connection.cursor(row_factory=class_row(ExistingRun))
    for run in cursor.execute(_RUNS, [list(found)], prepare=True):
        found[run.event].append(run)
    return found


# Of those of paused sources, which are yet to be parked, no more than these are passed over: a worker parks them.
_ANYTHING_DUE = f"""
WITH head AS MATERIALIZED (SELECT source FROM hookonce.events WHERE {IS_DUE} ORDER BY due_at LIMIT {_LOOK})
SELECT EXISTS (SELECT FROM head WHERE {IS_NOT_PAUSED}) OR (SELECT count(*) FROM head) = {_LOOK}
"""  # noqa: S608  constants


def is_anything_due(connection: psycopg.Connection) -> bool:
    """Return whether there is something to do for a worker: an event to be claimed, or many to be parked."""
    row = connection.execute(_ANYTHING_DUE).fetchone()
    return bool(row and row[0])
