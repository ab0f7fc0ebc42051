"""Lets go of what has outlived its horizon, in steps small enough to disturb nobody.

Four horizons: ledger rows (the memory of what came: the longest), bodies (dropped by whole days), rejected
deliveries and the audit. A source may have its own horizon of rows, for ever perhaps. An event that is received,
running, waiting or held loses nothing, however old it is: as long as it has a row in the queue.

What is to go is locked first (what others hold is skipped), and the queue is looked at by the next statement: one that
locks and looks would go by what it saw before it had the lock, and a replay may have come between.

The sweep takes a few steps at each turn, `hookonce prune` all of them at once; both at the same time do no harm.
Nothing goes while the clock is not trusted (`steady_clock`), and no day of bodies that begins after the newest event.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import psycopg
from pydantic import Field

from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger import id_at_time
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.maintenance import partitions, steady_clock
from hookonce.receiver.ledger.maintenance.partitions import DropResult
from hookonce.receiver.ledger.maintenance.steady_clock import ClockHeld
from hookonce.receiver.ledger.rows import Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import event_counts
from hookonce.receiver.ledger.waits import LONGEST
from hookonce.receiver.source import FOREVER

PRUNE_BATCH = 1000

_IS_OPEN = "EXISTS (SELECT FROM hookonce.queue q WHERE q.event = events.id OFFSET 0)"  # asked of each, and never joined

# Of a source with a horizon of its own, that one counts; `h.before` is -infinity where it is kept for ever.
_PAGE = f"""
SELECT id, received_at < coalesce(h.before, %(before)s) AND NOT {_IS_OPEN}, coalesce(h.before = '-infinity', false)
FROM hookonce.events LEFT JOIN unnest(%(sources)s::text[], %(befores)s::timestamptz[]) AS h (source, before)
    USING (source)
WHERE id > %(last)s AND id < %(end)s ORDER BY id LIMIT %(step)s
"""  # noqa: S608  a constant of this module

# Bodies that a source does not keep, of events that no handler took: until then a worker that takes them might come.
_UNKEPT = """
SELECT events.id
FROM hookonce.events JOIN hookonce.bodies b ON b.event = events.id AND b.received_at = events.received_at
WHERE NOT events.keep_body AND events.source = ANY(%(sources)s)
      AND events.received_at < %(before)s AND events.received_at > %(before)s - interval '1 day'
      AND b.received_at < %(before)s AND b.received_at > %(before)s - interval '1 day'
"""
_DROP_UNKEPT = f"""
DELETE FROM hookonce.bodies b USING hookonce.events
WHERE events.id = ANY(%s) AND b.event = events.id AND b.received_at = events.received_at AND NOT {_IS_OPEN}
      AND EXISTS (SELECT FROM hookonce.runs r
                  WHERE r.event = events.id AND r.status = '{EventStatus.IGNORED}' AND r.is_last)
"""  # noqa: S608  the same

_LOCK = "SELECT id FROM hookonce.events WHERE id = ANY(%s) ORDER BY id FOR UPDATE SKIP LOCKED"

# Rows that no foreign key ties to an event go with it; sums kept of the rows follow.
_DELETE = f"""
WITH gone AS (
    DELETE FROM hookonce.events WHERE id = ANY(%s) AND NOT {_IS_OPEN} RETURNING id, source
), runs AS (
    DELETE FROM hookonce.runs WHERE event IN (SELECT id FROM gone)
), logs AS (
    DELETE FROM hookonce.run_logs WHERE event IN (SELECT id FROM gone)
), counted AS (
    INSERT INTO hookonce.event_counts (source, what, count)
    SELECT source, 'events', -count(*) FROM gone
    WHERE id <= (SELECT sum(count) FROM hookonce.event_counts WHERE what = 'until') GROUP BY source
), noted AS ({event_counts.noting_pruned("gone")}
)
SELECT count(*) FROM gone
"""  # noqa: S608  a constant of this module

# With the bodies of their day, so not of days that had to stay.
_DROP_LOGS = """
DELETE FROM hookonce.run_logs WHERE id IN (
    SELECT id FROM hookonce.run_logs
    WHERE received_at < date_trunc('day', %s, 'UTC') AND (received_at AT TIME ZONE 'UTC')::date <> ALL(%s::date[])
    LIMIT %s)
"""

_NEWEST_DAY = "SELECT (received_at AT TIME ZONE 'UTC')::date FROM hookonce.events ORDER BY id DESC LIMIT 1"


EXPIRING = (("rejected", "rejected_at"), ("audit", "at"))
"""Logs, as (table, time column): rows with ids in the order of time. Horizon and count are named like the table."""

_EXPIRE = """
DELETE FROM hookonce.{table} WHERE id IN (
    SELECT id FROM (SELECT id, {column} AS at FROM hookonce.{table} ORDER BY id LIMIT %s) AS oldest WHERE at < %s)
"""
_EXPIRED = "SELECT count(*) FROM hookonce.{table} WHERE {column} < %s"

# Without news for as long as events are kept.
_FORGET_ENTITIES = """
DELETE FROM hookonce.entities WHERE ctid = ANY (ARRAY(
    SELECT e.ctid FROM hookonce.entities e
    LEFT JOIN unnest(%(sources)s::text[], %(befores)s::timestamptz[]) AS h (source, before) USING (source)
    WHERE e.raised_at < coalesce(h.before, %(before)s) LIMIT %(step)s FOR UPDATE OF e SKIP LOCKED))
"""

# Kept for as long as any handler waits, and while a wait for it lasts.
_FORGET_ARRIVALS = f"""
DELETE FROM hookonce.arrivals WHERE key = ANY (ARRAY(
    SELECT key FROM hookonce.arrivals a
    WHERE at < %(now)s - coalesce((SELECT max(coalesce(longest, '{LONGEST.days} days')) FROM hookonce.awaited),
                                  '{LONGEST.days} days')
          AND NOT EXISTS (SELECT FROM hookonce.waits w WHERE w.key = a.key AND w.ended_at IS NULL)
    ORDER BY at LIMIT %(step)s))
"""  # noqa: S608  a constant

NOT_TAKEN_FOR = timedelta(minutes=30)
"""After which a body goes that a source does not keep and no handler took: in a deploy it may be taken until then."""


class Retention(NamedTuple):
    """How long each kind is kept; `own` are the horizons of events of sources that have their own (or `FOREVER`).

    unkept: sources that keep no bodies
    """

    events: timedelta
    bodies: timedelta
    rejected: timedelta
    audit: timedelta
    own: Mapping[str, timedelta] = MappingProxyType({})
    unkept: Sequence[str] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take them from the configuration."""
        return cls(
            settings.keep_events,
            settings.keep_bodies,
            settings.keep_rejected,
            settings.keep_audit,
            settings.horizons(),
            [name for name, source in settings.sources.items() if not source.keep_body],
        )


class Pruned(ResponseModel):
    """Rows that were deleted, or would be: ledger rows, rejected deliveries, lines of the audit, days of bodies."""

    dry_run: bool = False
    events: int = 0
    rejected: int = 0
    audit: int = 0
    days: list[Ours] = Field(default_factory=list)
    needed: list[Ours] = Field(
        default_factory=list, description="stay: an event of that day is yet to be handled"
    )
    busy: list[Ours] = Field(default_factory=list, description="could not be dropped now; ask again")

    def add(self, table: str, rows: int) -> None:
        """Add to the rows of a table."""
        setattr(self, table, getattr(self, table) + rows)

    @property
    def is_anything(self) -> bool:
        """Whether anything went."""
        return bool(self.events or self.rejected or self.audit or self.days)


@dataclass(slots=True)
class RetentionPass:
    """One pass over everything that is kept for a time; `done` grows with each of its `steps`.

    `patience` is how often a day in use is tried; each try may hold up deliveries for
    `partitions.DROP_LOCK_TIMEOUT`. `size` is the rows looked at in one transaction.
    `trusts_clock`: a person says that the clock is right, though it leapt.
    """

    horizons: Retention
    dry_run: bool = False
    patience: int = 1
    size: int = PRUNE_BATCH
    trusts_clock: bool = False
    done: Pruned = field(default_factory=Pruned)
    begin: int = 0
    """Events up to this id are kept for ever; where the next pass may begin, after this one."""

    def __post_init__(self) -> None:
        self.done.dry_run = self.dry_run

    def steps(self, connection: psycopg.Connection) -> Iterator[None]:
        """Delete what is older than its horizon by the database's clock, or only count it, a step at a time.

        Each step is committed. Safe to stop at any of them and to begin anew. Raises: `ClockHeld`.
        """
        now, held_since = steady_clock.look(connection)
        if held_since and not self.trusts_clock:
            raise ClockHeld(steady_clock.why(held_since))
        before = {
            name: now - kept for name, kept in self.horizons._asdict().items() if isinstance(kept, timedelta)
        }
        yield
        stayed: list[date] = []
        newest_day = connection.execute(_NEWEST_DAY).fetchone() or (date.min,)
        for day, name in partitions.days(connection).items():
            if partitions.day_bounds(day).end > before["bodies"] or day > newest_day[0]:
                break
            if self._drop(connection, day, name) is not DropResult.DROPPED:
                stayed.append(day)
            yield
        gone = [before["bodies"], stayed, self.size]
        while not self.dry_run and connection.execute(_DROP_LOGS, gone).rowcount:
            yield
        yield from self._walk(connection, before["events"])
        if self.horizons.unkept and not self.dry_run:
            _drop_unkept(connection, self.horizons.unkept, now - NOT_TAKEN_FOR)
            yield
        for table, column in EXPIRING:
            yield from self._expire(connection, table, column, before[table])
        arrivals = {"now": now, "step": self.size}
        while not self.dry_run and connection.execute(_FORGET_ARRIVALS, arrivals).rowcount:
            yield

    def audit(self, connection: psycopg.Connection, who: str) -> None:
        """Put down in the audit what went; nothing where nothing did."""
        if self.done.is_anything and not self.dry_run:
            audit_log.note(connection, who, "prune", "ledger", self.done.model_dump(exclude={"dry_run"}))

    def _drop(self, connection: psycopg.Connection, day: date, name: str) -> DropResult:
        for _ in range(self.patience):
            became = partitions.drop_day(connection, day, dry_run=self.dry_run)
            if became is not DropResult.BUSY:
                break
        {
            DropResult.DROPPED: self.done.days,
            DropResult.NEEDED: self.done.needed,
            DropResult.BUSY: self.done.busy,
        }[became].append(name)
        return became

    def _walk(self, connection: psycopg.Connection, before: datetime) -> Iterator[None]:
        """Walk up the ledger from its oldest row to where it is young enough."""
        own = {name: _before(before, self.horizons.events, kept) for name, kept in self.horizons.own.items()}
        youngest = max([before, *(moment for moment in own.values() if moment)])
        end = id_at_time.first_since(connection, youngest)
        asked = {
            "before": before,
            "sources": list(own),
            "befores": [moment.isoformat() if moment else "-infinity" for moment in own.values()],
            "end": end,
            "step": self.size,
        }
        last, is_for_ever = self.begin, True
        while rows := connection.execute(_PAGE, asked | {"last": last}).fetchall():
            ids = [number for number, may_go, _ in rows if may_go]
            last = rows[-1][0]
            self.done.events += len(ids) if self.dry_run else delete_events(connection, ids)
            is_for_ever = is_for_ever and all(never for _, _, never in rows)
            self.begin = last if is_for_ever else self.begin
            yield
        while not self.dry_run and connection.execute(_FORGET_ENTITIES, asked).rowcount:
            yield

    def _expire(
        self, connection: psycopg.Connection, table: str, column: str, before: datetime
    ) -> Iterator[None]:
        """Delete the oldest rows of a log."""
        if self.dry_run:
            query = _EXPIRED.format(table=table, column=column).encode()
            self.done.add(table, _number(connection.execute(query, [before]).fetchone()))
            return
        query = _EXPIRE.format(table=table, column=column).encode()
        while rows := connection.execute(query, [self.size, before]).rowcount:
            self.done.add(table, rows)
            yield


def _before(usual: datetime, usual_kept: timedelta, kept: timedelta) -> datetime | None:
    """Return since when events are kept for so long, by the database's clock; None for ever."""
    return None if kept == FOREVER else usual + usual_kept - kept


def _drop_unkept(connection: psycopg.Connection, sources: Sequence[str], before: datetime) -> None:
    with connection.transaction():
        unkept = connection.execute(_UNKEPT, {"sources": list(sources), "before": before})
        locked = connection.execute(_LOCK, [[row[0] for row in unkept]])
        connection.execute(_DROP_UNKEPT, [[row[0] for row in locked]])


def delete_events(connection: psycopg.Connection, ids: list[int]) -> int:
    """Delete those of the events that nothing holds and that have no row in the queue; return their number."""
    if not ids:
        return 0
    with connection.transaction():
        locked = connection.execute(_LOCK, [ids])
        return _number(connection.execute(_DELETE, [[row[0] for row in locked]]).fetchone())


def _number(row: tuple[Any, ...] | None) -> int:
    return int(row[0]) if row else 0
