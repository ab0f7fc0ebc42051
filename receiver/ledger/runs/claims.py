"""Claims due rows of the queue for one worker: leases under a random token what there is room for, in one transaction.

Which rows those are is the worker's to decide (`receiver.ledger.runs.decisions`); here they are locked, read and
written. A lease changes nothing that an index knows of. Lock order: rows of the queue (skipped, if another holds them),
limits, pauses.
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import plans
from hookonce.receiver.ledger.reasons import HANDLER, OF_ROWS
from hookonce.receiver.ledger.runs import due_rows, leases, limit_gate, parking, unreadable
from hookonce.receiver.ledger.runs.claimed import LEASE, LEASE_IS_OVER, ClaimedRun, QueuedRun
from hookonce.receiver.ledger.runs.decisions import Decide, Decision, Paused, PlannedRun
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.states import EventStatus, Waits
from hookonce.receiver.ledger.stats import event_counts

log = logging.getLogger(__name__)

_LOOK = 1000
"""Due rows that are looked at to tell whether there is anything to do."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of it: the runs leased, in the order in which they are to be started.

    `met`: the runs that something was done with; `is_more`: some that are due may be left. `waiting`: those that were
    made to wait for a paused handler or source. `failing`: handlers whose failures in a row are counted
    (`receiver.ledger.runs.breakers`).
    `is_anything_lost`, `has_suspects`: see `Paused`. `batchable`: due events that are left to a batch, by handler.
    """

    runs: Sequence[ClaimedRun] = ()
    met: int = 0
    is_more: bool = False
    waiting: int = 0
    failing: AbstractSet[str] = frozenset()
    is_anything_lost: bool = False
    has_suspects: bool = False
    batchable: Mapping[str, Sequence[int]] = field(default_factory=dict)


_TRIAL, _LOST, _SUSPECT = "trial", "lost", "suspect"
PAUSED = f"""
SELECT kind, name, NULL::bigint FROM hookonce.pauses
UNION ALL SELECT '{_TRIAL}', handler, trying FROM hookonce.breakers
UNION ALL SELECT '{_LOST}', '', NULL WHERE EXISTS (SELECT FROM hookonce.claims WHERE {LEASE_IS_OVER})
UNION ALL SELECT '{_SUSPECT}', '', NULL FROM (
    SELECT token, due_at FROM hookonce.queue WHERE waits = '{Waits.SUSPECT}' LIMIT {_LOOK}) AS head
HAVING bool_or(token IS NULL AND due_at <= now()) OR count(*) = {_LOOK}
"""  # noqa: S608  constants

# By the place of each row, which is locked: any join by its key may be planned the other way round.
_LEASE = """
WITH leased AS (
    UPDATE hookonce.queue q SET handler = t.handler, token = t.token
    FROM (SELECT handler, token, (SELECT ctid FROM hookonce.queue r WHERE r.event = t.event AND r.n = t.n) AS row
          FROM unnest(%(events)s::bigint[], %(places)s::smallint[], %(handlers)s::text[], %(tokens)s::uuid[])
               AS t (event, n, handler, token) OFFSET 0) AS t
    WHERE q.ctid = t.row
)
INSERT INTO hookonce.claims (token, lease_until, events, places, slots, is_alone, handler)
SELECT token, now() + %(lease)s, array_agg(event ORDER BY number), array_agg(n ORDER BY number), %(slots)s,
       %(is_alone)s, %(batch_of)s
FROM unnest(%(events)s::bigint[], %(places)s::smallint[], %(handlers)s::text[], %(tokens)s::uuid[])
     WITH ORDINALITY AS t (event, n, handler, token, number)
GROUP BY token
"""
# The other runs of an event that is met first.
_ADD = """
INSERT INTO hookonce.queue (event, n, received_at, source, type, handler, due_at)
SELECT q.event, t.n, q.received_at, q.source, q.type, t.handler, q.due_at
FROM unnest(%s::bigint[], %s::smallint[], %s::text[]) AS t (event, n, handler)
JOIN hookonce.queue q ON q.event = t.event AND q.n = 0
"""
_WAIT = """
UPDATE hookonce.queue q SET handler = t.handler, waits = t.waits, due_at = coalesce(now() + t.delay, q.due_at),
                            slot_at = now() + t.slot, schedule = CASE WHEN t.slot IS NOT NULL THEN t.schedule END
FROM unnest(%(events)s::bigint[], %(places)s::smallint[], %(handlers)s::text[], %(waits)s::text[],
            %(delays)s::interval[], %(slots)s::interval[], %(schedules)s::text[])
     AS t (event, n, handler, waits, delay, slot, schedule)
WHERE q.event = t.event AND q.n = t.n
"""
# What is leased keeps the time that its rate has given it, in case that it is let go of.
_NOTE_TIMES = """
UPDATE hookonce.queue q SET slot_at = now(), schedule = t.schedule
FROM unnest(%s::bigint[], %s::smallint[], %s::text[]) AS t (event, n, schedule) WHERE q.event = t.event AND q.n = t.n
"""
_IGNORE = f"""
WITH given_up AS (
    DELETE FROM hookonce.queue WHERE event = ANY(%s) AND n = 0 RETURNING event, source, cycle
), ended AS (
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
    SELECT event, '', cycle, '{EventStatus.IGNORED}', 0, now() FROM given_up
)
{event_counts.newly_ignored("given_up")}
"""  # noqa: S608  constants
SUSPECT_PAUSE = timedelta(seconds=5)
"""How long a suspect waits whose limit is full; others wait for a place, but it must stay what it is."""


def claim(  # noqa: PLR0913  all but two by keyword
    connection: psycopg.Connection,
    decide: Decide,
    *,
    ids: Sequence[int] | None = None,
    limit: int = 50,
    cursor: DueCursor | None = None,
    at_once: int = 1,
    finished: Iterable[uuid.UUID] = (),
) -> Claim:
    """Lease due runs (of events `ids`, or any); committed.

    Without `ids`, `cursor` says where to look, and is told what was found. `at_once`: how many runs of a handler that
    is limited to a number at once this worker can have under way. `finished`: claims of this worker that are over, to
    be forgotten.
    """
    cursor = cursor or DueCursor()
    with plans.claiming(connection):
        pauses = connection.execute(PAUSED, prepare=True)
        if done := list(finished):
            leases.forget(connection, done)
        due, odd = due_rows.locked(connection, ids, limit, cursor)
        paused = paused_of(pauses.fetchall())
        if odd:
            _bury(connection, decide, odd)
        planned = _with_pauses(connection, decide, due, paused)
        runs, waiting = _leased(connection, planned, at_once)
        write(connection, planned, runs, waiting, slots=decide.slots)
        if runs:
            reach("run.leased")
    _report(planned)
    left = sum(each.decision is Decision.LEAVE for each in planned)
    return Claim(
        runs,
        met=sum(each.decision not in {Decision.LEAVE, Decision.BATCH} for each in planned) + len(odd),
        is_more=len(due) + len(odd) == limit
        or bool(odd or left)
        or (ids is None and cursor.has_passed_crowd),
        waiting=_park(connection, decide, paused, planned, cursor),
        failing=paused.failing,
        is_anything_lost=paused.is_anything_lost,
        has_suspects=paused.has_suspects,
        batchable=_by_handler(planned),
    )


def claim_suspect(
    connection: psycopg.Connection, decide: Decide, handlers: Sequence[str]
) -> ClaimedRun | None:
    """Lease a suspect of these handlers, to be run with nothing beside it; its start is counted. Committed."""
    with plans.claiming(connection):
        pauses = connection.execute(PAUSED, prepare=True)
        due, odd = due_rows.suspect(connection, handlers)
        paused = paused_of(pauses.fetchall())
        if odd:
            _bury(connection, decide, odd)
        planned = decide(due, paused)
        runs, held = _leased(connection, planned, 1, is_alone=True)
        waiting = [
            each._replace(waits=Waits.SUSPECT, delay=SUSPECT_PAUSE if each.delay is None else each.delay)
            for each in held
        ]
        write(connection, planned, runs, waiting, slots=decide.slots, is_alone=True)
        if runs:
            reach("run.leased")
    return runs[0] if runs else None


def paused_of(rows: Sequence[tuple[str, str, int | None]]) -> Paused:
    """Sort what was read besides the queue."""
    kinds = {kind for kind, _, _ in rows}
    return Paused(
        frozenset(name for kind, name, _ in rows if kind == HANDLER.kind),
        frozenset((event, name) for kind, name, event in rows if kind == _TRIAL and event is not None),
        frozenset(name for kind, name, _ in rows if kind == _TRIAL),
        is_anything_lost=_LOST in kinds,
        has_suspects=_SUSPECT in kinds,
        has_rows=not kinds.isdisjoint(pause.kind for pause in OF_ROWS),
    )


def _with_pauses(
    connection: psycopg.Connection, decide: Decide, due: Sequence[QueuedRun], paused: Paused
) -> Sequence[PlannedRun]:
    """Decide on locked rows; the pauses of what is made to wait for one are locked.

    Whoever ends such a pause finds the rows then, and waits for our locks.
    """
    planned = decide(due, paused)
    names = {each.handler for each in planned if each.waits == Waits.HANDLER}
    if not names:
        return planned
    left = parking.lock_pauses(connection, HANDLER.kind, names)
    if left == names:
        return planned
    return decide(due, paused._replace(handlers=paused.handlers - (names - left)))


def _leased(
    connection: psycopg.Connection, planned: Sequence[PlannedRun], at_once: int, *, is_alone: bool = False
) -> tuple[list[ClaimedRun], list[PlannedRun]]:
    """Return the runs to be leased, as far as the limits of their handlers allow it now, and those that wait."""
    tokens: defaultdict[int, uuid.UUID] = defaultdict(uuid.uuid4)
    runs = {
        each.key: ClaimedRun(
            each.row.event,
            each.n,
            each.handler,
            each.row.attempts + 1,
            each.row.cycle,
            tokens[each.lane],
            is_alone=is_alone,
            is_trial=each.is_trial,
        )
        for each in planned
        if each.decision is Decision.LEASE
    }
    waiting = [each for each in planned if each.decision is Decision.WAIT]
    limited = [each for each in planned if each.key in runs and each.limit is not None]
    if not limited:
        return list(runs.values()), waiting
    held, schedules = limit_gate.hold_back(connection, limited, tokens, at_once)
    for each in planned:
        if (by := held.get(each.key)) is not None:
            del runs[each.key]
            waiting.append(
                each._replace(
                    waits=by.waits,
                    delay=by.delay if by.waits is None else None,
                    slot=by.slot,
                    schedule=schedules.get(each.key),
                )
            )
    if given := [(*key, schedule) for key, schedule in schedules.items() if key in runs]:
        connection.execute(_NOTE_TIMES, _columns(given))
    return list(runs.values()), waiting


def write(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    planned: Sequence[PlannedRun],
    runs: Sequence[ClaimedRun],
    waiting: Sequence[PlannedRun],
    *,
    slots: int,
    is_alone: bool = False,
    batch_of: str | None = None,
) -> None:
    """Write what was decided on locked rows, in the caller's transaction; `batch_of`: a handler has all of it at once.

    First the rows that are new, then what waits, what nobody takes, and what is leased.
    """
    written = {(run.event.id, run.n) for run in runs} | {each.key for each in waiting}
    met = {event for event, _ in written}
    # Of an event that is met first, its other runs are written too, and left for others.
    left = [
        each for each in planned if _is_left(each) and each.row.event.id in met and each.key not in written
    ]
    waiting = [*waiting, *left]
    new = [(*each.key, each.handler) for each in planned if each.row.handler is None and each.n]
    if new := [row for row in new if row[0] in met]:
        connection.execute(_ADD, _columns(new))
    if waiting:
        columns = _columns(
            [(*each.key, each.handler, each.waits, each.delay, each.slot, each.schedule) for each in waiting]
        )
        names = ("events", "places", "handlers", "waits", "delays", "slots", "schedules")
        connection.execute(_WAIT, dict(zip(names, columns, strict=True)))
    if ignored := [each.row.event.id for each in planned if each.decision is Decision.IGNORE]:
        connection.execute(_IGNORE, [ignored])
    if runs:
        values = {
            "events": [run.event.id for run in runs],
            "places": [run.n for run in runs],
            "handlers": [run.handler for run in runs],
            "tokens": [run.token for run in runs],
            "lease": LEASE,
            "slots": slots,
            "is_alone": is_alone,
            "batch_of": batch_of,
        }
        connection.execute(_LEASE, values, prepare=True)


def _is_left(each: PlannedRun) -> bool:
    return each.row.handler is None and each.decision in {Decision.LEAVE, Decision.BATCH}


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _bury(connection: psycopg.Connection, decide: Decide, events: Sequence[int]) -> None:
    """End the runs of events that can't be read as dead; an event that nobody takes is ignored all the same."""
    untaken = unreadable.bury(connection, decide, events, due_rows.VALUES, due_rows.HEAVY)
    if untaken:
        connection.execute(_IGNORE, [untaken])


def _by_handler(planned: Sequence[PlannedRun]) -> Mapping[str, Sequence[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for each in planned:
        if each.decision is Decision.BATCH:
            found[each.handler].append(each.row.event.id)
    return found


def _report(planned: Sequence[PlannedRun]) -> None:
    """Log what was ignored, as its runs are where it has some."""
    if not log.isEnabledFor(logging.INFO):
        return
    for each in planned:
        if each.decision is Decision.IGNORE:
            event = each.row.event
            log.info("ignored", extra={"event": event.id, "source": event.source, "type": event.type})


def _park(
    connection: psycopg.Connection,
    decide: Decide,
    paused: Paused,
    planned: Sequence[PlannedRun],
    cursor: DueCursor,
) -> int:
    """Make wait what is paused beside what a claim has met; return how many runs. Committed.

    The claim is committed before: what it has leased must be run, even if this fails.
    """
    waiting = sum(each.waits == Waits.HANDLER for each in planned)
    try:
        if paused.has_rows:
            waiting += _park_rows(connection, cursor)
        if 2 * sum(each.waits == Waits.HANDLER for each in planned) > len(planned):
            waiting += _park_head(connection, decide, paused, cursor)
    except psycopg.Error as error:
        log.warning("what is paused was not parked: %s", type(error).__name__)
    return waiting


def _park_rows(connection: psycopg.Connection, cursor: DueCursor) -> int:
    """Park what is due and paused by its row, and now and then what lies before the cursor; return how many.

    Committed.
    """
    since = None if cursor.parking.begin() else cursor.since
    parked = parking.park_rows(connection, since)
    if not parked:  # what finds something is worth its time
        cursor.parking.end()
    return parked


def _park_head(connection: psycopg.Connection, decide: Decide, paused: Paused, cursor: DueCursor) -> int:
    """Make wait what only paused handlers take at the head of the queue; return the number of runs. Committed.

    Where most of what a claim has met is of that kind, many more may come: they would keep all others waiting.
    """
    with plans.claiming(connection):
        planned = _with_pauses(connection, decide, due_rows.head(connection, cursor), paused)
        others = {each.row.event.id for each in planned if each.waits != Waits.HANDLER}
        waiting = [each for each in planned if each.row.event.id not in others]
        write(connection, waiting, (), waiting, slots=0)
    return len(waiting)
