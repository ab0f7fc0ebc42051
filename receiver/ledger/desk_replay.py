"""Runs stored events again. The idempotency key never changes, since it is made of event and handler only.

A replay gives a run its attempts back and a new cycle. A run that is under way is left alone, and one that
already waits for its first attempt has nothing to be given: so a replay asked for twice is one new cycle.

Lock order as in `receiver.ledger.runs`: events by id, then runs.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import psycopg

from receiver.ledger.runs import DERIVE

BATCH = 200
"""Events replayed in one transaction; what it locks, workers pass by."""


class Fate(StrEnum):
    """What a replay made of an event."""

    REPLAYED = "replayed"
    RELEASED = "released"
    QUEUED = "already queued"
    RUNNING = "running"
    BODY_DROPPED = "body dropped"
    UNREADABLE = "unreadable"
    CHANGED = "changed"


GOOD = frozenset({Fate.REPLAYED, Fate.RELEASED, Fate.QUEUED})


@dataclass(slots=True)
class Outcome:
    """What a replay made of one event, and of which runs: given a new cycle, or left alone while they run."""

    id: int
    fate: Fate
    handlers: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

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
SELECT e.id, e.status, EXISTS (SELECT FROM bodies b WHERE b.event = e.id AND b.received_at = e.received_at)
FROM events e WHERE e.id = ANY(%s) ORDER BY e.id FOR UPDATE OF e
"""

_RUNS = "SELECT event, handler, status, attempts FROM runs WHERE event = ANY(%s) ORDER BY event, handler FOR UPDATE"

# Gives runs a new cycle. A lease on one that was not started ends here; its worker finds its token gone.
_RESET = """
UPDATE runs SET status = 'waiting', attempts = 0, cycle = cycle + 1, due_at = now(), token = NULL,
                lease_until = NULL, result = NULL, started_at = NULL, finished_at = NULL
FROM unnest(%s::bigint[], %s::text[]) AS t (event, handler)
WHERE runs.event = t.event AND runs.handler = t.handler
"""

_HASTEN = """
UPDATE runs SET due_at = now()
WHERE event = ANY(%s) AND status = 'waiting' AND attempts = 0 AND token IS NULL AND due_at > now()
"""

_RECEIVE = """
WITH woken AS (
    SELECT source FROM events WHERE id = ANY(%(ids)s) AND status = 'ignored'
), counted AS (
    INSERT INTO event_counts (source, what, count) SELECT source, 'ignored', -count(*) FROM woken GROUP BY source
)
UPDATE events SET status = 'received', due_at = now() WHERE id = ANY(%(ids)s)
"""

_AUDIT = """
INSERT INTO audit (who, action, subject, detail)
SELECT %s, action, subject, detail::json FROM unnest(%s::text[], %s::text[], %s::text[]) AS t (action, subject, detail)
"""


def replay(
    connection: psycopg.Connection, ids: Sequence[int], who: str, *, status: str | None = None
) -> Iterator[Outcome]:
    """Make events due again, in batches that are committed one by one; audited.

    With `status`, an event that has left it meanwhile is left alone. Ids that are not in the ledger give no
    outcome.
    """
    wanted = sorted(set(ids))
    for start in range(0, len(wanted), BATCH):
        with connection.transaction():
            outcomes = _replay(connection, wanted[start : start + BATCH], status)
            _audit(connection, outcomes, who)
        yield from outcomes


def _replay(connection: psycopg.Connection, ids: Sequence[int], only: str | None) -> list[Outcome]:
    events = connection.execute(_LOCK, [list(ids)]).fetchall()
    runs: dict[int, list[_Run]] = {row[0]: [] for row in events}
    for row in connection.execute(_RUNS, [list(runs)]):
        runs[row[0]].append(_Run(*row))
    outcomes = [
        _fate(event, status, runs[event], has_body=has_body)
        if only in {None, status}
        else Outcome(event, Fate.CHANGED)
        for event, status, has_body in events
    ]
    resets = [(o.id, handler) for o in outcomes if o.fate is Fate.REPLAYED for handler in o.handlers]
    connection.execute(_RESET, [[event for event, _ in resets], [handler for _, handler in resets]])
    due = [o.id for o in outcomes if o.fate in GOOD]
    connection.execute(_HASTEN, [due])
    connection.execute(DERIVE, {"events": due})
    fresh = [event for event in due if not runs[event]]
    connection.execute(_RECEIVE, {"ids": fresh})
    return outcomes


def _fate(event: int, status: str, runs: Sequence[_Run], *, has_body: bool) -> Outcome:
    """Decide what becomes of an event; its row and its runs are locked."""
    if not has_body:
        return Outcome(event, Fate.BODY_DROPPED)
    if not runs:
        return Outcome(event, _FATE_WITHOUT_RUNS.get(status, Fate.REPLAYED))
    left = [run.handler for run in runs if run.status == "running"]
    spent = [
        run.handler
        for run in runs
        if run.status in {"done", "dead"} or (run.status == "waiting" and run.attempts)
    ]
    if spent:
        return Outcome(event, Fate.REPLAYED, spent, left)
    return Outcome(event, Fate.RUNNING if left else Fate.QUEUED, [], left)


_FATE_WITHOUT_RUNS = {
    "held": Fate.RELEASED,
    "received": Fate.QUEUED,
    "dead": Fate.UNREADABLE,  # an element of a batch that could not be read: there is nothing to run
}


def _audit(connection: psycopg.Connection, outcomes: Sequence[Outcome], who: str) -> None:
    connection.execute(
        _AUDIT,
        [
            who,
            ["release" if o.fate is Fate.RELEASED else "replay" for o in outcomes],
            [f"event {o.id}" for o in outcomes],
            [
                json.dumps({"outcome": o.fate, "handlers": o.handlers, "left_running": o.left})
                for o in outcomes
            ],
        ],
    )
