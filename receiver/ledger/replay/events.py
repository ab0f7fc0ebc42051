"""Runs stored events again: a new round of attempts, which is a run's next cycle, under the same idempotency key.

That key never changes, since it is made of event and handler only. What steps of handlers gave stays, but for those
that are named to be forgotten: these are done anew.

A replay gives a run its attempts back and a new cycle. A run that is done is run again only where one says so
(`again`), and only if what is done is still what one has seen (`view`): every desk asks by these two. A run that is
under way is left alone, and one that already waits for its first attempt has nothing to be given: so a replay asked for
twice is one new cycle. What became of the cycle before stays in `runs`, no longer as the last.

Lock order: events by id, which keeps retention and other replays away, then rows of the queue by event and n. Ends of
runs lock no event. So what is open is locked first, and all is read by the next statement: whichever run has ended
until then has its row in `runs`, and one that ends later was under way.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

import psycopg
from pydantic import Field

from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.ledger import steps
from hookonce.receiver.ledger.access.audit_log import Note, note_all
from hookonce.receiver.ledger.replay import rereading
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus, RunStatus, Waits
from hookonce.receiver.ledger.stats import activity
from hookonce.receiver.ledger.store import Key

REPLAY_BATCH = 200
"""Events replayed in one transaction; what it locks, workers pass by."""


class ReplayOutcome(StrEnum):
    """The outcome of a replay for one event."""

    REPLAYED = "replayed"
    RELEASED = "released"
    QUEUED = "already_queued"
    RUNNING = "running"
    BODY_DROPPED = "body_dropped"
    BODY_NOT_KEPT = "body_not_kept"
    ERASED = "erased"
    UNREADABLE = "unreadable"
    READ = "read"
    CHANGED = "changed"
    DONE = "already_done"


GOOD = frozenset({ReplayOutcome.REPLAYED, ReplayOutcome.RELEASED, ReplayOutcome.QUEUED, ReplayOutcome.READ})
Reread = Callable[[psycopg.Connection, int], Sequence[Key] | None]
"""Reads an unreadable event anew (`receiver.intake.rereading`)."""


class DoneRun(ResponseModel):
    """A run that had succeeded."""

    handler: Ours
    cycle: int
    ended_at: datetime


def view(done: Iterable[DoneRun]) -> str:
    """Return what was seen of these runs: 16 hex digits, and other ones once any of them has changed."""
    said = "\n".join(f"{run.cycle} {run.handler}" for run in sorted(done, key=lambda each: each.handler))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


class ReplayResult(ResponseModel):
    """The outcome of one event; `left` are handlers whose runs are under way and were left alone.

    `forgotten` are the steps that are repeated, as "handler/step"; `done` the runs that had succeeded before, and
    `view` what `seen` takes. `is_command`: it is the command of a client.
    """

    id: Identifier
    fate: ReplayOutcome
    handlers: list[Ours] = Field(default_factory=list)
    left: list[Ours] = Field(default_factory=list)
    forgotten: list[str] = Field(default_factory=list)
    done: list[DoneRun] = Field(default_factory=list)
    view: Ours = ""
    is_command: bool = False
    skipped_by: list[Ours] = Field(
        default_factory=list,
        description="handlers that will skip it: they have done a newer version of what it is about",
    )

    @property
    def is_whole(self) -> bool:
        """Whether everything that was asked for is done."""
        return self.fate in GOOD and not self.left


@dataclass(frozen=True, slots=True)
class _Run:
    """A row of the queue, or the last outcome of a handler (`n` is None); `handler` '' where there is none."""

    event: int
    n: int | None
    handler: str
    status: str
    attempts: int
    is_held: bool
    cycle: int
    ended_at: datetime | None

    @property
    def is_done(self) -> bool:
        return self.status == RunStatus.DONE

    @property
    def is_running(self) -> bool:
        return self.status == RunStatus.RUNNING

    @property
    def is_spent(self) -> bool:
        """Whether a replay has something to give: a new cycle."""
        return bool(self.handler) and (self.n is None or (bool(self.attempts) and not self.is_running))


# Not FOR UPDATE, which would wait for handlers that have written a row that points at the event, as steps do.
_LOCK = "SELECT id FROM hookonce.events WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"

# Nothing that is leased: a handler that opens short transactions holds its row, and nobody waits for a handler.
_LOCK_OPEN = """
SELECT FROM hookonce.queue WHERE event = ANY(%s) AND token IS NULL ORDER BY event, n FOR UPDATE
"""

_EVENTS = f"""
SELECT e.id, e.status, e.provider,
       CASE WHEN EXISTS (SELECT FROM hookonce.bodies b WHERE b.event = e.id AND b.received_at = e.received_at)
            THEN NULL WHEN kept.erased_at IS NOT NULL THEN '{ReplayOutcome.ERASED}'
            WHEN kept.keep_body THEN '{ReplayOutcome.BODY_DROPPED}' ELSE '{ReplayOutcome.BODY_NOT_KEPT}' END
FROM hookonce.event_states e JOIN hookonce.events kept USING (id) WHERE e.id = ANY(%s) ORDER BY e.id
"""  # noqa: S608  constants

# An event that was discarded before a handler was given to it is as one that nobody took.
_RUNS = f"""
SELECT event, n, coalesce(handler, ''),
       CASE WHEN token IS NULL THEN '{RunStatus.WAITING}' ELSE '{RunStatus.RUNNING}' END, attempts,
       coalesce(waits = '{Waits.HELD}', false), cycle, NULL
FROM hookonce.queue WHERE event = ANY(%(events)s)
UNION ALL
SELECT r.event, NULL, handler,
       CASE WHEN handler = '' AND status = '{RunStatus.DISCARDED}' AND NOT EXISTS (
                SELECT FROM hookonce.failures f WHERE f.event = r.event AND f.handler = '')
            THEN '{EventStatus.IGNORED}' ELSE status END, attempts, false, cycle, finished_at
FROM hookonce.runs r WHERE r.event = ANY(%(events)s) AND is_last
ORDER BY 1, 3
"""  # noqa: S608  constants

_DEAD_RUN = f"""
SELECT FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event
     JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at
WHERE r.event = %s AND r.handler = %s AND r.cycle = %s AND r.is_last AND r.status = '{RunStatus.DEAD}'
      AND r.handler <> ''
"""

_RENEW = """
UPDATE hookonce.queue AS q SET cycle = q.cycle + 1, attempts = 0, due_at = now(), waits = NULL, slot_at = NULL,
                               schedule = NULL
FROM unnest(%s::bigint[], %s::smallint[]) AS t (event, n)
WHERE q.event = t.event AND q.n = t.n AND q.token IS NULL
RETURNING q.event, q.n
"""

# A cycle that has ended is the last no more, and the next one is in the queue.
_REOPEN = """
WITH ended AS (
    UPDATE hookonce.runs r SET is_last = false FROM unnest(%s::bigint[], %s::text[]) AS t (event, handler)
    WHERE r.event = t.event AND r.handler = t.handler AND r.is_last
    RETURNING r.event, r.handler, r.cycle
)
INSERT INTO hookonce.queue (event, n, received_at, source, type, handler, cycle, due_at)
SELECT e.id, coalesce((SELECT max(q.n) + 1 FROM hookonce.queue q WHERE q.event = e.id), 0)
             + row_number() OVER (PARTITION BY e.id ORDER BY ended.handler) - 1,
       e.received_at, e.source, e.type, ended.handler, ended.cycle + 1, now()
FROM ended JOIN hookonce.events e ON e.id = ended.event
"""

# Nobody took it, or there is nothing but that it came: as if it had come just now.
_RECEIVE = """
WITH ignored AS (
    DELETE FROM hookonce.runs WHERE event = ANY(%(events)s) AND handler = '' RETURNING event, cycle
)
INSERT INTO hookonce.queue (event, received_at, source, type, cycle, due_at)
SELECT e.id, e.received_at, e.source, e.type, coalesce(ignored.cycle, 1), now()
FROM hookonce.events e LEFT JOIN ignored ON ignored.event = e.id WHERE e.id = ANY(%(events)s)
"""

_HASTEN = """
UPDATE hookonce.queue SET due_at = least(due_at, now()), waits = CASE WHEN handler IS NOT NULL THEN waits END
WHERE event = ANY(%s) AND attempts = 0 AND token IS NULL AND (handler IS NULL OR due_at > now())
"""


def replay(  # noqa: PLR0913  all but three by keyword
    connection: psycopg.Connection,
    ids: Sequence[int],
    who: str | None,
    *,
    status: str | None = None,
    forget: Sequence[str] = (),
    again: bool = False,
    seen: Mapping[int, str] = MappingProxyType({}),
    done_until: datetime | None = None,
    reread: Reread | None = None,
) -> Iterator[ReplayResult]:
    """Make events due again, in batches that are committed one by one; audited, each event by a line.

    With `status`, an event that has left it meanwhile is left alone, and so is one of which more, or less, is done than
    was `seen` (a `view` by its id), or of which anything was done after `done_until`. Runs that are done stay so,
    unless `again`. Steps whose names are in `forget` are done anew, unless their run is under way or stays done. Ids
    that are not in the ledger give no outcome. An unreadable event is read anew by `reread`, and is done once that has
    succeeded. Without `who`, nothing is audited: that is for a bulk replay, which has its own lines.
    """
    wanted = sorted(set(ids))
    for start in range(0, len(wanted), REPLAY_BATCH):
        with connection.transaction():
            batch = wanted[start : start + REPLAY_BATCH]
            outcomes = _replay(connection, batch, _Asked(status, again, seen, done_until), forget)
            if reread is not None:
                _read_anew(connection, outcomes, reread)
            if who is not None:
                note_all(connection, who, map(_note, outcomes))
        yield from outcomes


def replay_dead_run(connection: psycopg.Connection, event: int, handler: str, cycle: int, who: str) -> bool:
    """Make one run due again whose last cycle is `cycle` and dead; return whether it was. Audited, committed.

    A run that has left that cycle since, or whose body is not kept any more, is left alone.
    """
    with connection.transaction():
        connection.execute(_LOCK, [[event]])
        if connection.execute(_DEAD_RUN, [event, handler, cycle]).fetchone() is None:
            return False
        activity.keep_ends(connection, [event])
        connection.execute(_REOPEN, [[event], [handler]])
        note_all(
            connection, who, [_note(ReplayResult(id=event, fate=ReplayOutcome.REPLAYED, handlers=[handler]))]
        )
    return True


def lock(connection: psycopg.Connection, ids: Sequence[int]) -> list[int]:
    """Lock events, and what of them is open and not leased, in the caller's transaction; return those there are."""
    locked = [row[0] for row in connection.execute(_LOCK, [list(ids)])]
    connection.execute(_LOCK_OPEN, [locked])
    return locked


def _read_anew(connection: psycopg.Connection, outcomes: Iterable[ReplayResult], reread: Reread) -> None:
    """Have unreadable events, which are locked, read anew; those that can be read are done."""
    for outcome in outcomes:
        if outcome.fate is ReplayOutcome.UNREADABLE and (keys := reread(connection, outcome.id)):
            rereading.end_as_read(connection, outcome.id, keys)
            outcome.fate = ReplayOutcome.READ


@dataclass(frozen=True, slots=True)
class _Asked:
    """Under which conditions events are run again; see `replay`."""

    status: str | None
    again: bool
    seen: Mapping[int, str]
    done_until: datetime | None

    def is_met_by(self, event: int, status: str, done: Sequence[DoneRun], found: str) -> bool:
        until = self.done_until
        is_old = until is None or all(run.ended_at <= until for run in done)
        return is_old and self.status in {None, status} and self.seen.get(event, found) == found


def _replay(
    connection: psycopg.Connection, ids: Sequence[int], asked: _Asked, forget: Sequence[str]
) -> list[ReplayResult]:
    locked = lock(connection, ids)
    events = connection.execute(_EVENTS, [locked]).fetchall()
    runs: dict[int, list[_Run]] = {event: [] for event in locked}
    for row in connection.execute(_RUNS, {"events": locked}):
        runs[row[0]].append(_Run(*row))
    outcomes = []
    for event, status, provider, lost in events:
        done = [
            DoneRun(handler=run.handler, cycle=run.cycle, ended_at=run.ended_at)
            for run in runs[event]
            if run.ended_at and run.is_done
        ]
        found = view(done)
        outcome = (
            _fate(event, runs[event], lost=ReplayOutcome(lost) if lost else None, again=asked.again)
            if asked.is_met_by(event, status, done, found)
            else ReplayResult(id=event, fate=ReplayOutcome.CHANGED)
        )
        outcome.done, outcome.view, outcome.is_command = done, found, provider == COMMAND
        outcomes.append(outcome)
    good = {outcome.id: outcome for outcome in outcomes if outcome.fate in GOOD}
    _renew(connection, good, runs)
    _reopen(connection, good, runs)
    connection.execute(_HASTEN, [list(good)])
    _forget(connection, good, runs, forget)
    return outcomes


def _fate(event: int, runs: Sequence[_Run], *, lost: ReplayOutcome | None, again: bool) -> ReplayResult:
    """Decide what becomes of an event, which is locked."""
    if lost is not None:
        return ReplayResult(id=event, fate=lost)
    left = [run.handler for run in runs if run.is_running]
    spent = [run.handler for run in runs if run.is_spent and (again or not run.is_done)]
    if spent:
        return ReplayResult(id=event, fate=ReplayOutcome.REPLAYED, handlers=spent, left=left)
    if left:
        return ReplayResult(id=event, fate=ReplayOutcome.RUNNING, left=left)
    if any(run.n is not None for run in runs):
        is_held = any(run.is_held for run in runs)
        return ReplayResult(id=event, fate=ReplayOutcome.RELEASED if is_held else ReplayOutcome.QUEUED)
    if any(run.is_done for run in runs):
        return ReplayResult(id=event, fate=ReplayOutcome.DONE)
    is_unreadable = any(run.status in {RunStatus.DEAD, RunStatus.DISCARDED} for run in runs)
    return ReplayResult(id=event, fate=ReplayOutcome.UNREADABLE if is_unreadable else ReplayOutcome.REPLAYED)


def _renew(
    connection: psycopg.Connection, outcomes: Mapping[int, ReplayResult], runs: Mapping[int, Sequence[_Run]]
) -> None:
    """Give runs that wait for another attempt a new cycle; one that was leased by now is left alone."""
    spent = {
        (event, run.n): run.handler
        for event in outcomes
        for run in runs[event]
        if run.n is not None and run.is_spent
    }
    renewed = connection.execute(_RENEW, [[event for event, _ in spent], [n for _, n in spent]]).fetchall()
    for event, n in spent.keys() - set(renewed):
        outcomes[event].handlers.remove(spent[event, n])
        outcomes[event].left.append(spent[event, n])
        if not outcomes[event].handlers:
            outcomes[event].fate = ReplayOutcome.RUNNING


def _reopen(
    connection: psycopg.Connection, outcomes: Mapping[int, ReplayResult], runs: Mapping[int, Sequence[_Run]]
) -> None:
    """Open runs again that have ended; events that nobody took, and those of which there is nothing, are received."""
    ended = [
        (event, run.handler)
        for event, outcome in outcomes.items()
        for run in runs[event]
        if run.n is None and run.handler in outcome.handlers
    ]
    reopened = [event for event, _ in ended]
    untaken = [event for event in outcomes if all(run.n is None and not run.handler for run in runs[event])]
    activity.keep_ends(connection, [*reopened, *untaken])
    connection.execute(_REOPEN, [reopened, [handler for _, handler in ended]])
    connection.execute(_RECEIVE, {"events": untaken})


def _forget(
    connection: psycopg.Connection,
    outcomes: Mapping[int, ReplayResult],
    runs: Mapping[int, Sequence[_Run]],
    names: Sequence[str],
) -> None:
    """Forget steps of what was replayed and is not running."""
    at_rest = [
        (event, run.handler)
        for event, outcome in outcomes.items()
        for run in runs[event]
        if run.handler
        and run.handler not in outcome.left
        and (not run.is_done or run.handler in outcome.handlers)
    ]
    for event, handler, name in steps.forget_of_runs(connection, at_rest, names):
        outcomes[event].forgotten.append(f"{handler}/{name}")


def _note(o: ReplayResult) -> Note:
    action = "release" if o.fate is ReplayOutcome.RELEASED else "replay"
    detail = {"outcome": o.fate, "handlers": o.handlers, "left_running": o.left}
    return Note(action, f"event {o.id}", detail | ({"forgotten": o.forgotten} if o.forgotten else {}))
