"""Claims rows of the queue for one worker: leases under a random token what there is room for, in one transaction.

Rows are read in the order of their due times, or by the word that they wait with: suspects, and batches. What becomes
of each is the worker's to decide (`receiver.ledger.runs.decisions`); here rows are locked, read and written. A lease
changes nothing that an index knows of. Lock order: rows of the queue (skipped, if another holds them), limits, pauses.
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import plans
from hookonce.receiver.ledger.reasons import HANDLER, OF_ROWS
from hookonce.receiver.ledger.runs import due_rows, leases, limit_gate, parking
from hookonce.receiver.ledger.runs.claimed import LEASE, LEASE_IS_OVER, ClaimedRun, QueuedRun
from hookonce.receiver.ledger.runs.decisions import ClaimContext, Decide, Decision, PlannedRun
from hookonce.receiver.ledger.runs.due_cursor import DueCursor, Kind
from hookonce.receiver.ledger.runs.due_rows import Waiting
from hookonce.receiver.ledger.states import EventStatus, Waits

log = logging.getLogger(__name__)

_LOOK = 1000
"""Due rows that are looked at to tell whether there is anything to do."""
_BATCHED_SHARE = 4
"""If more than one in so many runs of a claim are to be in batches, more of them are looked for at once."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The outcome of a claim: the runs leased, in the order in which they are to be started.

    `met`: the runs that something was done with; `is_more`: some that are due may be left. `waiting`: those that were
    made to wait for a paused handler or source. `failing`: handlers whose failures in a row are counted
    (`receiver.ledger.runs.breakers`). `is_anything_lost`, `has_suspects`: see `ClaimContext`. `batched`: handlers of
    batches for which some were met; `crowd`: of which kinds, where these are much of what is due. `unripe`: how long
    the few that wait for a batch wait for others.
    """

    runs: Sequence[ClaimedRun] = ()
    met: int = 0
    is_more: bool = False
    waiting: int = 0
    failing: AbstractSet[str] = frozenset()
    is_anything_lost: bool = False
    has_suspects: bool = False
    batched: AbstractSet[str] = frozenset()
    crowd: Mapping[str, Sequence[Kind]] = field(default_factory=dict)
    unripe: timedelta | None = None


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
INSERT INTO hookonce.claims (token, lease_until, events, places, slots, is_suspect, handler)
SELECT token, now() + %(lease)s, array_agg(event ORDER BY number), array_agg(n ORDER BY number), %(slots)s,
       %(is_suspect)s, %(batch_of)s
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
# What is to be in a batch keeps the time that its rate has given it.
_WAIT = f"""
UPDATE hookonce.queue q SET handler = t.handler, waits = t.waits, due_at = coalesce(now() + t.delay, q.due_at),
                            slot_at = CASE WHEN t.waits = '{Waits.BATCH}' THEN q.slot_at ELSE now() + t.slot END,
                            schedule = CASE WHEN t.waits = '{Waits.BATCH}' THEN q.schedule
                                            WHEN t.slot IS NOT NULL THEN t.schedule END
FROM unnest(%(events)s::bigint[], %(places)s::smallint[], %(handlers)s::text[], %(waits)s::text[],
            %(delays)s::interval[], %(slots)s::interval[], %(schedules)s::text[])
     AS t (event, n, handler, waits, delay, slot, schedule)
WHERE q.event = t.event AND q.n = t.n
"""  # noqa: S608  constants
# What is leased keeps the time that its rate has given it, in case that it is let go of.
_NOTE_TIMES = """
UPDATE hookonce.queue q SET slot_at = now(), schedule = t.schedule
FROM unnest(%s::bigint[], %s::smallint[], %s::text[]) AS t (event, n, schedule) WHERE q.event = t.event AND q.n = t.n
"""
_IGNORE = f"""
WITH given_up AS (
    DELETE FROM hookonce.queue WHERE event = ANY(%s) AND n = 0 RETURNING event, cycle
)
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
SELECT event, '', cycle, '{EventStatus.IGNORED}', 0, now() FROM given_up
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
    wanted: Waiting | None = None,
    at_once: int = 1,
    finished: Iterable[uuid.UUID] = (),
    parks_batches: bool = True,
) -> Claim:
    """Lease due runs: of events `ids`, or what waits as it is `wanted`, or any; committed.

    Without these, `cursor` says where to look, and is told what was found. `at_once`: how many runs of a handler that
    is limited to a number at once this worker can have under way. `finished`: claims of this worker that are over, to
    be forgotten. Without `parks_batches` many runs of batches are left for batches to be filled up with.
    """
    cursor = cursor or DueCursor()
    with plans.claiming(connection):
        pauses = connection.execute(PAUSED, prepare=True)
        if done := list(finished):
            leases.forget(connection, done)
        if wanted is not None:
            found = due_rows.waiting(connection, wanted)
        else:
            found = due_rows.locked(connection, ids, limit, cursor)
        paused = paused_of(pauses.fetchall())
        if found.gone:
            due_rows.forget(connection, found.gone)
        planned: Sequence[PlannedRun] = []
        runs: list[ClaimedRun] = []
        if found.rows and not found.unripe:
            planned = _with_pauses(connection, decide, found.rows, paused)
            runs, waiting = _leased(connection, planned, at_once)
            write(connection, planned, runs, waiting, slots=decide.slots, word=wanted and wanted.word)
            _report(planned)
        if runs:
            reach("batch.leased" if wanted and wanted.word == Waits.BATCH else "run.leased")
    is_full = len(found.rows) + len(found.gone) == limit
    left = [each for each in planned if each.decision is Decision.LEAVE]
    batched = _batched(planned)
    is_crowd = is_full and _BATCHED_SHARE * sum(map(len, batched.values())) > len(planned)
    return Claim(
        runs,
        met=len(planned) - len(left) + len(found.gone),
        is_more=found.is_full
        if wanted
        else is_full or bool(found.gone) or bool(left) or (ids is None and cursor.has_passed_crowd),
        waiting=_park(
            connection, decide, paused, planned, wanted or cursor, is_crowd=is_crowd and parks_batches
        ),
        failing=paused.failing,
        is_anything_lost=paused.is_anything_lost,
        has_suspects=paused.has_suspects,
        batched=batched.keys(),
        crowd={handler: list(set(kinds)) for handler, kinds in batched.items()} if is_crowd else {},
        unripe=found.unripe,
    )


_NOTHING_PAUSED = ClaimContext()


def paused_of(rows: Sequence[tuple[str, str, int | None]]) -> ClaimContext:
    """Sort what was read besides the queue."""
    if not rows:
        return _NOTHING_PAUSED
    kinds = {kind for kind, _, _ in rows}
    return ClaimContext(
        frozenset(name for kind, name, _ in rows if kind == HANDLER.kind),
        frozenset((event, name) for kind, name, event in rows if kind == _TRIAL and event is not None),
        frozenset(name for kind, name, _ in rows if kind == _TRIAL),
        is_anything_lost=_LOST in kinds,
        has_suspects=_SUSPECT in kinds,
        has_rows=not kinds.isdisjoint(pause.kind for pause in OF_ROWS),
    )


def _with_pauses(
    connection: psycopg.Connection, decide: Decide, due: Sequence[QueuedRun], paused: ClaimContext
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
    connection: psycopg.Connection, planned: Sequence[PlannedRun], at_once: int
) -> tuple[list[ClaimedRun], list[PlannedRun]]:
    """Return the runs to be leased, as far as the limits of their handlers allow it now, and those that wait."""
    tokens: defaultdict[int, uuid.UUID] = defaultdict(uuid.uuid4)
    runs = {
        (each.row.event.id, each.n): ClaimedRun(
            each.row.event,
            each.n,
            each.handler,
            each.row.attempts + 1,
            each.row.cycle,
            tokens[each.lane],
            is_suspect=each.row.waits == Waits.SUSPECT,
            is_trial=each.is_trial,
        )
        for each in planned
        if each.decision is Decision.LEASE
    }
    waiting = [each for each in planned if each.decision is Decision.WAIT]
    limited = [each for each in planned if each.limit is not None and each.key in runs]
    if not limited:
        return list(runs.values()), [_as_it_was(each) for each in waiting]
    held, schedules = limit_gate.hold_back(connection, limited, tokens, at_once)
    for key in held:
        del runs[key]
    waiting += held.values()
    if given := [(*key, schedule) for key, schedule in schedules.items() if key in runs]:
        connection.execute(_NOTE_TIMES, _columns(given))
    return list(runs.values()), [_as_it_was(each) for each in waiting]


def _as_it_was(each: PlannedRun) -> PlannedRun:
    """Return what is to wait, a suspect as a suspect: others wait for a place, but it must stay what it is."""
    if each.row.waits != Waits.SUSPECT:
        return each
    return each._replace(waits=Waits.SUSPECT, delay=SUSPECT_PAUSE if each.delay is None else each.delay)


def write(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    planned: Sequence[PlannedRun],
    runs: Sequence[ClaimedRun],
    waiting: Sequence[PlannedRun],
    *,
    slots: int,
    word: str | None = None,
) -> None:
    """Write what was decided on locked rows, in the caller's transaction; `word`: they were read by that.

    First the rows that are new, then what waits, what nobody takes, and what is leased.
    """
    written = {(run.event.id, run.n) for run in runs} | {each.key for each in waiting}
    met = {event for event, _ in written}
    first = [each for each in planned if each.row.handler is None and each.row.event.id in met]
    # Of an event that is met first, its other runs are written too, and left for others.
    left = [each for each in first if each.decision is Decision.LEAVE and each.key not in written]
    waiting = [*waiting, *left]
    if new := [(*each.key, each.handler) for each in first if each.n]:
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
            "is_suspect": word == Waits.SUSPECT,
            "batch_of": runs[0].handler if word == Waits.BATCH and len(runs) > 1 else None,
        }
        connection.execute(_LEASE, values, prepare=True)


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _report(planned: Sequence[PlannedRun]) -> None:
    """Log what was ignored, as its runs are where it has some."""
    if not log.isEnabledFor(logging.INFO):
        return
    for each in planned:
        if each.decision is Decision.IGNORE:
            event = each.row.event
            log.info("ignored", extra={"event": event.id, "source": event.source, "type": event.type})


def _batched(planned: Sequence[PlannedRun]) -> Mapping[str, list[Kind]]:
    """Return the handlers of batches that have runs here, and the kinds of these."""
    found: dict[str, list[Kind]] = {}
    for each in planned:
        if each.waits == Waits.BATCH:
            found.setdefault(each.handler, []).append((each.row.event.source, each.row.event.type))
    return found


def _park(  # noqa: PLR0913  the last by keyword
    connection: psycopg.Connection,
    decide: Decide,
    paused: ClaimContext,
    planned: Sequence[PlannedRun],
    where: DueCursor | Waiting,
    *,
    is_crowd: bool,
) -> int:
    """Make wait what is to wait beside what a claim has met; return how many runs wait for a pause. Committed.

    Where much of what a claim has met is of that kind, or runs of batches are a crowd, many more may come: they would
    keep all others waiting. The claim is committed before: what it has leased must be run, even if this fails.
    """
    waiting = sum(each.waits == Waits.HANDLER for each in planned)
    is_crowd |= 2 * waiting > len(planned)
    try:
        if paused.has_rows:
            waiting += _park_rows(connection, where)
        if is_crowd and isinstance(where, DueCursor):
            waiting += park_head(connection, decide, where.since)
    except psycopg.Error as error:
        log.warning("what is paused was not parked: %s", type(error).__name__)
    return waiting


def _park_rows(connection: psycopg.Connection, where: DueCursor | Waiting) -> int:
    """Park what is paused by its row, and now and then what lies before the cursor; return how many. Committed."""
    if isinstance(where, Waiting):
        handlers = where.handlers if where.word == Waits.BATCH else ()
        return sum(parking.park_batch(connection, handler) for handler in handlers)
    parked = parking.park_rows(connection, None if where.parking.begin() else where.since)
    if not parked:  # what finds something is worth its time
        where.parking.end()
    return parked


def park_head(connection: psycopg.Connection, decide: Decide, since: datetime | None, pages: int = 1) -> int:
    """Make wait what is to wait at the head of the queue; return how many runs wait for a pause. Committed.

    An event whose runs do not all wait by a word is left as it is. `pages` of `due_rows.HEAD` are looked at, at most.
    """
    count = 0
    for _ in range(pages):
        with plans.claiming(connection):
            pauses = connection.execute(PAUSED, prepare=True)
            found = due_rows.head(connection, due_rows.HEAD, since)
            planned = _with_pauses(connection, decide, found.rows, paused_of(pauses.fetchall()))
            others = {each.row.event.id for each in planned if each.waits not in {Waits.HANDLER, Waits.BATCH}}
            waiting = [each for each in planned if each.row.event.id not in others]
            write(connection, waiting, (), waiting, slots=0)
        count += sum(each.waits == Waits.HANDLER for each in waiting)
        if len(found.rows) < due_rows.HEAD:
            break
        since = found.rows[-1].due_at
    return count
