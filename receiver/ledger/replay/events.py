"""Runs stored events again. The idempotency key never changes, since it is made of event and handler only.

What steps of handlers gave stays, but for those that are named to be forgotten: these are done anew.

A replay gives a run its attempts back and a new cycle. A run that is under way is left alone, and one that
already waits for its first attempt has nothing to be given: so a replay asked for twice is one new cycle.

Lock order as in `receiver.ledger.runs.transitions`: events by id, then runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import psycopg

from hookonce.receiver.ledger import steps
from hookonce.receiver.ledger.access.audit_log import Note, note_all
from hookonce.receiver.ledger.runs import event_status
from hookonce.receiver.ledger.states import ENDED_RUNS, EventStatus, RunStatus
from hookonce.receiver.ledger.stats import activity, event_counts

REPLAY_BATCH = 200
"""Events replayed in one transaction; what it locks, workers pass by."""


class ReplayOutcome(StrEnum):
    """What a replay made of an event."""

    REPLAYED = "replayed"
    RELEASED = "released"
    QUEUED = "already queued"
    RUNNING = "running"
    BODY_DROPPED = "body dropped"
    BODY_NOT_KEPT = "body not kept"
    UNREADABLE = "unreadable"
    CHANGED = "changed"


GOOD = frozenset({ReplayOutcome.REPLAYED, ReplayOutcome.RELEASED, ReplayOutcome.QUEUED})


@dataclass(slots=True)
class ReplayResult:
    """What a replay made of one event, and of which runs: given a new cycle, or left alone while they run.

    `forgotten` are the steps that are done anew, as "handler/step".
    """

    id: int
    fate: ReplayOutcome
    handlers: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether everything that was asked for is done."""
        return self.fate in GOOD and not self.left


@dataclass(frozen=True, slots=True)
class _Run:
    event: int
    handler: str
    status: str
    attempts: int


_LOCK = """
SELECT e.id, e.status, e.keep_body,
       EXISTS (SELECT FROM hookonce.bodies b WHERE b.event = e.id AND b.received_at = e.received_at)
FROM hookonce.events e WHERE e.id = ANY(%s) ORDER BY e.id FOR UPDATE OF e
"""

# Not FOR UPDATE: a marked attempt holds its run (`receiver.ledger.runs.marks`), and nobody waits for a handler here.
_RUNS = (
    "SELECT event, handler, status, attempts FROM hookonce.runs WHERE event = ANY(%s) ORDER BY "
    "event, handler FOR NO KEY UPDATE"
)

# Gives runs a new cycle. A lease on one that was not started ends here; its worker finds its token gone.
_RESET = f"""
UPDATE hookonce.runs SET status = '{RunStatus.WAITING}', attempts = 0, cycle = cycle + 1, due_at = now(), token = NULL,
                lease_until = NULL, result = NULL, sealed_result = NULL, key_id = NULL,
                started_at = NULL, finished_at = NULL, parked = NULL
FROM unnest(%s::bigint[], %s::text[]) AS t (event, handler)
WHERE runs.event = t.event AND runs.handler = t.handler
"""  # noqa: S608  constants

_HASTEN = f"""
UPDATE hookonce.runs SET due_at = now()
WHERE event = ANY(%s) AND status = '{RunStatus.WAITING}' AND attempts = 0 AND token IS NULL AND due_at > now()
"""  # noqa: S608  constants

_RECEIVE = f"""
WITH woken AS (
    SELECT source FROM hookonce.events WHERE id = ANY(%(ids)s) AND status = '{EventStatus.IGNORED}'
), counted AS ({event_counts.no_longer_ignored("woken")}
)
UPDATE hookonce.events SET status = '{EventStatus.RECEIVED}', due_at = now(), parked = NULL WHERE id = ANY(%(ids)s)
"""  # noqa: S608  constants


def replay(
    connection: psycopg.Connection,
    ids: Sequence[int],
    who: str | None,
    *,
    status: str | None = None,
    forget: Sequence[str] = (),
) -> Iterator[ReplayResult]:
    """Make events due again, in batches that are committed one by one; audited, each event by a line.

    With `status`, an event that has left it meanwhile is left alone. Steps whose names are in `forget` are done anew,
    unless their run is under way. Ids that are not in the ledger give no
    outcome. Without `who`, nothing is audited: that is for a bulk replay, which has its own lines.
    """
    wanted = sorted(set(ids))
    for start in range(0, len(wanted), REPLAY_BATCH):
        with connection.transaction():
            outcomes = _replay(connection, wanted[start : start + REPLAY_BATCH], status, forget)
            if who is not None:
                note_all(connection, who, map(_note, outcomes))
        yield from outcomes


def _replay(
    connection: psycopg.Connection, ids: Sequence[int], only: str | None, forget: Sequence[str]
) -> list[ReplayResult]:
    events = connection.execute(_LOCK, [list(ids)]).fetchall()
    runs: dict[int, list[_Run]] = {row[0]: [] for row in events}
    for row in connection.execute(_RUNS, [list(runs)]):
        runs[row[0]].append(_Run(*row))
    outcomes = [
        _fate(event, status, runs[event], lost=None if has_body else _LOST[keep_body])
        if only in {None, status}
        else ReplayResult(event, ReplayOutcome.CHANGED)
        for event, status, keep_body, has_body in events
    ]
    resets = [(o.id, handler) for o in outcomes if o.fate is ReplayOutcome.REPLAYED for handler in o.handlers]
    activity.keep_ends(connection, [event for event, _ in resets])
    connection.execute(_RESET, [[event for event, _ in resets], [handler for _, handler in resets]])
    due = [o.id for o in outcomes if o.fate in GOOD]
    connection.execute(_HASTEN, [due])
    connection.execute(event_status.DERIVE_EVENT_STATUS, {"events": due})
    fresh = [event for event in due if not runs[event]]
    connection.execute(_RECEIVE, {"ids": fresh})
    _forget(connection, {o.id: o for o in outcomes if o.fate in GOOD}, runs, forget)
    return outcomes


_LOST = {True: ReplayOutcome.BODY_DROPPED, False: ReplayOutcome.BODY_NOT_KEPT}
"""What is said of an event without a body, by whether its source keeps bodies."""


def _forget(
    connection: psycopg.Connection,
    outcomes: Mapping[int, ReplayResult],
    runs: Mapping[int, Sequence[_Run]],
    names: Sequence[str],
) -> None:
    """Forget steps of what was replayed and is not running; its rows are locked."""
    at_rest = [
        (event, run.handler) for event in outcomes for run in runs[event] if run.status != RunStatus.RUNNING
    ]
    for event, handler, name in steps.forget_of_runs(connection, at_rest, names):
        outcomes[event].forgotten.append(f"{handler}/{name}")


def _fate(event: int, status: str, runs: Sequence[_Run], *, lost: ReplayOutcome | None) -> ReplayResult:
    """Decide what becomes of an event; its row and its runs are locked."""
    if lost is not None:
        return ReplayResult(event, lost)
    if not runs:
        return ReplayResult(event, _FATE_WITHOUT_RUNS.get(status, ReplayOutcome.REPLAYED))
    left = [run.handler for run in runs if run.status == RunStatus.RUNNING]
    spent = [
        run.handler
        for run in runs
        if run.status in ENDED_RUNS or (run.status == RunStatus.WAITING and run.attempts)
    ]
    if spent:
        return ReplayResult(event, ReplayOutcome.REPLAYED, spent, left)
    return ReplayResult(event, ReplayOutcome.RUNNING if left else ReplayOutcome.QUEUED, [], left)


_FATE_WITHOUT_RUNS: Mapping[str, ReplayOutcome] = {
    EventStatus.HELD: ReplayOutcome.RELEASED,
    EventStatus.RECEIVED: ReplayOutcome.QUEUED,
    EventStatus.DEAD: ReplayOutcome.UNREADABLE,  # of a batch, and could not be read: there is nothing to run
}


def _note(o: ReplayResult) -> Note:
    action = "release" if o.fate is ReplayOutcome.RELEASED else "replay"
    detail = {"outcome": o.fate, "handlers": o.handlers, "left_running": o.left}
    return Note(action, f"event {o.id}", detail | ({"forgotten": o.forgotten} if o.forgotten else {}))
