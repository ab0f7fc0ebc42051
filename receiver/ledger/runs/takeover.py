"""Takes over what workers have lost, by a lease that is over or by their death: what may have been begun is a suspect.

A claim is taken over whole. Of the rows that are left of it, as many as the claim has slots may have been started,
those first in its order: they are suspects, to be run alone, and not charged. All others were not started, and are due
as they were. Only a suspect's start is written down, and counted: it was claimed alone.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple, Protocol

import psycopg
from psycopg.rows import args_row

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import batches, failed_attempts
from hookonce.receiver.ledger.runs.claimed import LEASE, LEASE_IS_OVER, ClaimedRun, QueueKey
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus, Waits
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)

LEASE_RAN_OUT = "the worker stopped, or took longer than its lease"
BATCH_LOST = "the worker stopped in the middle of a batch, or took longer than its lease"
AT_ONCE = 20
"""Claims taken over in one go."""
AGAIN = "again"

_COLUMNS = "token, events, places, slots, is_suspect, started_at IS NOT NULL, handler"
_OVER = f"SELECT {_COLUMNS} FROM hookonce.claims WHERE {LEASE_IS_OVER} ORDER BY lease_until LIMIT {AT_ONCE}"  # noqa: S608
_OF = f"SELECT {_COLUMNS} FROM hookonce.claims WHERE token = ANY(%s)"  # noqa: S608  a constant
_LOCK_CLAIM = """
SELECT FROM hookonce.claims WHERE token = %s AND (lease_until <= now() OR %s) FOR UPDATE SKIP LOCKED
"""
_ROWS = """
SELECT q.event, q.n, q.source, q.handler, q.attempts
FROM hookonce.queue q JOIN unnest(%s::bigint[], %s::smallint[]) AS t (event, n) ON q.event = t.event AND q.n = t.n
WHERE q.token = %s ORDER BY q.event, q.n
"""
_LOCK_ROWS = f"{_ROWS} FOR UPDATE OF q"
_LOCK_FREE_ROWS = f"{_LOCK_ROWS} SKIP LOCKED"
_GIVE_BACK = """
UPDATE hookonce.queue q SET token = NULL, waits = coalesce(t.waits, q.waits)
FROM unnest(%s::bigint[], %s::smallint[], %s::text[]) AS t (event, n, waits)
WHERE q.event = t.event AND q.n = t.n
"""
_DELETE = "DELETE FROM hookonce.claims WHERE token = %s"
# Of what is kept in it all may have been started.
_KEEP = """
UPDATE hookonce.claims SET events = %s, places = %s::smallint[], slots = cardinality(events), lease_until = now() + %s
WHERE token = %s
"""
_CUT_OFFS = "SELECT cut_offs FROM hookonce.queue WHERE event = %(event)s AND n = %(n)s AND token = %(token)s"
_NOTE_CUT_OFF = "UPDATE hookonce.queue SET cut_offs = %(number)s WHERE event = %(event)s AND n = %(n)s"
CHARGED_FROM = 5
"""How often in a row a handler loses its connection, the last time alone, before that is charged to it."""
FIRST_PAUSE = timedelta(seconds=0.5)
"""How long a run waits whose connection went away; twice as long each time in a row, up to `LONGEST_PAUSE`."""
LONGEST_PAUSE = timedelta(seconds=30)
_MOST_COUNTED = 10
_WAIT_SHORTLY = "SET LOCAL lock_timeout = 250"
"""How long a row is waited for: it is left where it is if its attempt is at its COMMIT for longer."""


class LostClaim(NamedTuple):
    """A row of `claims`."""

    token: uuid.UUID
    events: list[int]
    places: list[int]
    slots: int
    is_suspect: bool
    is_started: bool
    handler: str | None

    @property
    def rows(self) -> list[QueueKey]:
        """The rows of the queue, in the order in which they were to be started."""
        return [*zip(self.events, self.places, strict=True)]


class _Row(NamedTuple):
    event: int
    n: int
    source: str
    handler: str
    attempts: int

    @property
    def key(self) -> QueueKey:
        return self.event, self.n

    def tallies(self, detail: str) -> Sequence[Tally]:
        """Return what counts its recovery: by its source, and by its handler."""
        return [Tally(Kind.RECOVERED, self.source, detail), Tally(Kind.RECOVERED_RUN, self.handler, detail)]


class Handlers(Protocol):
    """The handlers that are known here."""

    def after(self, name: str, attempt: int) -> tuple[timedelta, int | None]:
        """Return how long a run waits after an attempt that failed, and how many its handler is given, if known."""


class WorkerEnd(NamedTuple):
    """The end of a worker, as far as it is known, and the handlers that may have ended it.

    Without `handlers` each is given as many attempts as is announced, at once.
    """

    error: str = LEASE_RAN_OUT
    handlers: Handlers | None = None

    def charged(self, name: str, attempt: int) -> AttemptResult:
        """Return the end of an attempt of a suspect that was under way."""
        delay, most = (timedelta(0), None) if self.handlers is None else self.handlers.after(name, attempt)
        return AttemptResult(RunStatus.WAITING, error=self.error, delay=delay, most=most, waits=Waits.SUSPECT)


class ConnectionLoss(NamedTuple):
    """An attempt's connection went away, or was not to be had.

    `is_own`: inside its handler, and not by a crash of which PostgreSQL tells that another session's process did it.
    """

    how: WorkerEnd
    is_own: bool = False

    def number_after(self, before: int) -> int:
        """Return how often in a row that has happened with this time; what happens elsewhere ends no row."""
        if self.is_own:
            return max(before, 0) + 1
        return before if before > 0 else max(before - 1, -_MOST_COUNTED)

    def ending(self, run: ClaimedRun, number: int) -> AttemptResult:
        """Return the end of the attempt: charged where it was alone and the handler may be what ends connections."""
        is_charged = self.is_own and run.is_suspect and number >= CHARGED_FROM
        if is_charged:
            return self.how.charged(run.handler, run.attempt)
        is_suspect = run.is_suspect or number >= CHARGED_FROM - 1
        pause = min(FIRST_PAUSE * 2 ** min(abs(number) - 1, _MOST_COUNTED), LONGEST_PAUSE)
        waits = Waits.SUSPECT if is_suspect else None
        return AttemptResult(RunStatus.WAITING, counted=False, delay=pause, waits=waits)


def take_over(connection: psycopg.Connection, how: WorkerEnd = WorkerEnd()) -> int:  # noqa: B008  immutable
    """Take over the claims whose leases are over; return how many runs were left of them. Committed claim by claim."""
    with connection.transaction():
        found = _claims(connection, _OVER)
    return sum(len(_take_over(connection, claim, how, is_dead=False)) for claim in found)


def take_over_of(connection: psycopg.Connection, tokens: Sequence[uuid.UUID], how: WorkerEnd) -> int:
    """Take over claims of a worker that is known to have died; return how many runs were left of them. Committed."""
    with connection.transaction():
        found = _claims(connection, _OF, list(tokens))
    return sum(len(_take_over(connection, claim, how, is_dead=True)) for claim in found)


def _claims(connection: psycopg.Connection, query: str, *values: object) -> list[LostClaim]:
    cursor = connection.cursor(row_factory=args_row(LostClaim))
    return cursor.execute(query.encode(), values, prepare=True).fetchall()


def _take_over(
    connection: psycopg.Connection, claim: LostClaim, how: WorkerEnd, *, is_dead: bool
) -> Sequence[RunStatus]:
    """Take over one claim; return what the runs are now that were left of it, none where another has it.

    A run that a transaction of its attempt keeps, which is at its COMMIT, stays in the claim, and all else is settled.
    """
    with suppress(psycopg.errors.LockNotAvailable), connection.transaction():
        return settle_claim(connection, claim, how, is_dead=is_dead)
    with connection.transaction():
        return settle_claim(connection, claim, how, is_dead=is_dead, skips_locked=True)


def settle_claim(
    connection: psycopg.Connection,
    claim: LostClaim,
    how: WorkerEnd,
    *,
    is_dead: bool,
    skips_locked: bool = False,
) -> Sequence[RunStatus]:
    """Lock a claim and settle the runs that are left of it; return their statuses, none if another has it."""
    if connection.execute(_LOCK_CLAIM, [claim.token, is_dead]).fetchone() is None:
        return ()
    values = [claim.events, claim.places, claim.token]
    connection.execute(_WAIT_SHORTLY)
    cursor = connection.cursor(row_factory=args_row(_Row))
    locked = cursor.execute(_LOCK_FREE_ROWS if skips_locked else _LOCK_ROWS, values).fetchall()
    connection.execute("SET LOCAL lock_timeout TO DEFAULT")
    left = cursor.execute(_ROWS, values).fetchall() if skips_locked else locked
    rows, free = {each.key: each for each in left}, {each.key for each in locked}
    buried = settle_rows(connection, claim, rows, free, how)
    held = [row for row in claim.rows if row in rows.keys() - free]
    if held:
        log.warning(
            "runs whose lease is over are kept by a transaction: events %s", [event for event, _ in held]
        )
        events, places = zip(*held, strict=True)
        connection.execute(_KEEP, [list(events), list(places), LEASE, claim.token])
    else:
        connection.execute(_DELETE, [claim.token])
    reach("claim.taken_over")
    return [RunStatus.DEAD] * buried + [RunStatus.WAITING] * (len(left) - buried)


def settle_rows(
    connection: psycopg.Connection,
    claim: LostClaim,
    left: Mapping[QueueKey, _Row],
    locked: AbstractSet[QueueKey],
    how: WorkerEnd,
) -> int:
    """Settle each locked row of a claim, of which the first may have been started; return how many are dead."""
    started = set([row for row in claim.rows if row in left][: claim.slots])
    rest = [row for row in claim.rows if row in locked]
    recovered: Counter[Tally] = Counter()
    buried = 0
    if claim.handler is not None and rest:
        waits = batches.words(batches.halves([event for event, _ in rest]))
        _give_back(connection, rest, {row: waits[row[0]] for row in rest})
        counters.count_halving(connection, claim.handler, BATCH_LOST)
        recovered.update(
            Tally(Kind.RECOVERED, source, AGAIN) for source in {left[row].source for row in rest}
        )
        recovered[Tally(Kind.RECOVERED_RUN, claim.handler, AGAIN)] += 1
    elif claim.is_suspect and claim.is_started:
        for row in rest:
            ending = how.charged(left[row].handler, left[row].attempts + 1)
            now = failed_attempts.fail_rows(connection, claim.token, [row], [ending])
            is_dead = now[row] == RunStatus.DEAD
            recovered.update(left[row].tallies(RunStatus.DEAD if is_dead else AGAIN))
            buried += is_dead
    elif rest:
        _give_back(connection, rest, dict.fromkeys(started, Waits.SUSPECT))
        for row in rest:
            if row in started:
                recovered.update(left[row].tallies(AGAIN))
    if recovered:
        counters.add(connection, recovered)
    return buried


def _give_back(
    connection: psycopg.Connection, rows: Sequence[QueueKey], waits: Mapping[QueueKey, str]
) -> None:
    """Let go of rows of the queue, each with its word; one without keeps what it has."""
    events, places = zip(*rows, strict=True)
    connection.execute(_GIVE_BACK, [list(events), list(places), [waits.get(row) for row in rows]])


def settle(
    connection: psycopg.Connection, run: ClaimedRun, cut_off: ConnectionLoss | None = None
) -> RunStatus | None:
    """Give back a run of ours that was not ended; return what it is now, None if it was ended before.

    It is not charged, and due at once unless it was `cut_off`. `connection` is idle. Raises
    `psycopg.errors.LockNotAvailable` where a transaction of the attempt goes on.
    """
    key = (run.event.id, run.n)
    ending = AttemptResult(RunStatus.WAITING, counted=False, waits=Waits.SUSPECT if run.is_suspect else None)
    number = 0
    with connection.transaction():
        if cut_off is not None:
            before = connection.execute(_CUT_OFFS, run.key._asdict()).fetchone()
            number = cut_off.number_after(before[0] if before else 0)
            ending = cut_off.ending(run, number)
        status = failed_attempts.fail_rows(connection, run.token, [key], [ending]).get(key)
        if number and status == RunStatus.WAITING:
            connection.execute(_NOTE_CUT_OFF, {"number": number, "event": run.event.id, "n": run.n})
        return status
