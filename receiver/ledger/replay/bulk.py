"""Bulk replays: all events that match a filter, run again step by step, so that none is lost or replayed twice.

The row of one holds the filter, the highest id when it began, and how far it has come. A step replays the next events,
as many as the rate allows by then, and moves the cursor in one transaction. The program that started a replay may
drive it, as the command line does; otherwise, or once that driver has taken no step for `DRIVER_GONE` and a rate's
pause, the sweep does. A step keeps the ids of its events that have not ended yet: each look at them counts those that
have, and lets go of their ids.

Lock order: bulk_replays, then as in `receiver.ledger.replay.events`.
"""

import time
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import psycopg
from psycopg.types.json import Json
from pydantic import Field, TypeAdapter, computed_field

from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import events
from hookonce.receiver.ledger.replay.events import ReplayResult, Reread
from hookonce.receiver.ledger.rows import Identifier, Ours, all_as
from hookonce.receiver.ledger.states import OPEN, EventStatus, one_of
from hookonce.receiver.ledger.withheld import Content, ContentRow, without_error

DRIVER_GONE = timedelta(seconds=10)
LOOK_AHEAD = 50_000
"""Ids looked through by one statement: so none takes long, however rare the matches are."""
BULK_BATCH = timedelta(milliseconds=300)
"""How long one step looks for matches before it says how far it has come."""
TURN_LENGTH = timedelta(seconds=1)
"""How long the sweep may be kept by bulk replays in one turn."""
LONGEST_PAUSE = 5
"""Seconds of a pause between two steps that count for the rate: a replay does not catch up on a night."""
MAX_STEPS = 50
"""Steps looked at in one go, those that were not looked at for longest first."""
_FILTER = TypeAdapter(Filter)


class BulkReplay(ContentRow):
    """A bulk replay and how far it is; of what it replayed, `done` and `dead` have ended so, `open` have not yet."""

    id: Identifier
    who: Ours
    started_at: datetime
    ended_at: datetime | None
    filter: Annotated[dict[str, Any], Content(without_error)]
    rate: float | None = Field(description="events per second")
    matched: int = Field(description="how many there were when it began")
    replayed: int
    left_alone: int = Field(description="events that could not be replayed, or not wholly")
    last_event: int = Field(description="up to which ledger id it has come, the oldest first")
    until_event: int
    done: int = Field(default=0, description="as of the last look, like the two after it")
    dead: int = 0
    open: int = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def state(self) -> Literal["running", "complete", "stopped"]:
        """Whether there are steps left to take; one that has ended before its last match was stopped."""
        if self.ended_at is None:
            return "running"
        return "complete" if self.last_event >= self.until_event else "stopped"

    @property
    def is_running(self) -> bool:
        """Whether there are steps left to take."""
        return self.ended_at is None


class _Turn(BulkReplay):
    """A bulk replay whose next step is taken now, and of how many events it may be."""

    allowed: int


_COLUMNS = (
    "id, who, started_at, ended_at, filter, rate, matched, replayed, left_alone, last_event, until_event"
)
_WITH_PROGRESS = f"""SELECT {_COLUMNS}, progress.* FROM hookonce.bulk_replays CROSS JOIN LATERAL (
    SELECT coalesce(sum(done), 0)::int AS done, coalesce(sum(dead), 0)::int AS dead,
           coalesce(sum(cardinality(events)), 0)::int AS open
    FROM hookonce.bulk_steps WHERE bulk = bulk_replays.id) AS progress"""  # noqa: S608  a constant
_COUNTS = "SELECT type, status, count(*) FROM ({matching}) AS matching GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
_EXTENT = "SELECT count(*), coalesce(max(id), 0), coalesce(min(id) - 1, 0) FROM ({matching}) AS matching"
_EVERY_ID: dict[str, object] = {"low": 0, "top": 2**63 - 1}
_START = f"""
INSERT INTO hookonce.bulk_replays (who, filter, rate, driver, matched, until_event, last_event, ended_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, CASE WHEN %s THEN now() END) RETURNING {_COLUMNS}
"""  # noqa: S608  a constant
_GET = f"{_WITH_PROGRESS} WHERE id = %s"
_LISTING = f"""
{_WITH_PROGRESS} WHERE %(before)s::bigint IS NULL OR id < %(before)s
ORDER BY id DESC LIMIT %(limit)s
"""
_STOP = "UPDATE hookonce.bulk_replays SET ended_at = now() WHERE id = %s AND ended_at IS NULL"
_GO_ON = """
UPDATE hookonce.bulk_replays SET ended_at = NULL, driver = NULL, driven_at = now()
WHERE id = %s AND last_event < until_event AND ended_at IS NOT NULL
"""

# Who drives one is believed until a step of it is overdue; a time in the future is of a clock that was ahead.
_PAUSE = "(%(gone)s + coalesce(1 / rate, 0) * interval '1 second')"
_IS_FREE = f"(driver IS NULL OR driven_at NOT BETWEEN now() - {_PAUSE} AND now() + {_PAUSE})"
_FREE = f"SELECT id FROM hookonce.bulk_replays WHERE ended_at IS NULL AND {_IS_FREE} ORDER BY id LIMIT 20"  # noqa: S608  constants
_SET_RATE = "UPDATE hookonce.bulk_replays SET rate = %(rate)s WHERE id = %(id)s AND ended_at IS NULL"
# Its driver takes the first event at once.
_TAKE = f"""
SELECT CASE WHEN rate IS NULL THEN %(most)s
            ELSE least(greatest(floor(least(idle, {LONGEST_PAUSE}) * rate), 1), %(most)s) END::int AS allowed,
       {_COLUMNS}
FROM hookonce.bulk_replays CROSS JOIN LATERAL (SELECT extract(epoch FROM now() - driven_at) AS idle) AS i
WHERE id = %(id)s AND ended_at IS NULL AND (driver = %(driver)s OR {_IS_FREE})
      AND (rate IS NULL OR (driver = %(driver)s AND replayed + left_alone = 0)
           OR abs(idle) * rate >= 1) FOR UPDATE OF bulk_replays SKIP LOCKED
"""  # noqa: S608  constants
_MOVE = f"""
UPDATE hookonce.bulk_replays SET replayed = replayed + %(replayed)s, left_alone = left_alone + %(left_alone)s,
       last_event = %(last)s, driver = %(driver)s, driven_at = now(),
       ended_at = CASE WHEN %(last)s >= until_event THEN now() END
WHERE id = %(id)s RETURNING {_COLUMNS}
"""  # noqa: S608  a constant
_KEEP = "INSERT INTO hookonce.bulk_steps (bulk, last_event, events) VALUES (%s, %s, %s)"

_LOOK = f"""
WITH picked AS MATERIALIZED (
    SELECT bulk, last_event, events FROM hookonce.bulk_steps
    WHERE events <> '{{}}' AND (%(bulk)s::bigint IS NULL OR bulk = %(bulk)s)
    ORDER BY checked_at LIMIT {MAX_STEPS} FOR UPDATE SKIP LOCKED
), seen AS (
    SELECT p.bulk, p.last_event, count(*) FILTER (WHERE e.status = '{EventStatus.DONE}') AS done,
           count(*) FILTER (WHERE e.status = '{EventStatus.DEAD}') AS dead,
           coalesce(array_agg(e.id) FILTER (WHERE {one_of("e.status", OPEN)}), '{{}}') AS open
    FROM picked p CROSS JOIN unnest(p.events) AS t (event) LEFT JOIN LATERAL (
        SELECT s.id, s.status FROM hookonce.event_states s WHERE s.id = t.event OFFSET 0) AS e ON true
    GROUP BY p.bulk, p.last_event
)
UPDATE hookonce.bulk_steps s SET done = s.done + seen.done, dead = s.dead + seen.dead, events = seen.open,
  checked_at = now()
FROM seen WHERE s.bulk = seen.bulk AND s.last_event = seen.last_event
"""  # noqa: S608  constants


def counts(connection: psycopg.Connection, wanted: Filter) -> list[tuple[str, str, int]]:
    """Count what matches by type and status, most first."""
    query = _COUNTS.format(matching=event_filter.rows("type, status", wanted))
    parameters = wanted.parameters | _EVERY_ID | {"limit": None}
    return connection.execute(query.encode(), parameters, prepare=False).fetchall()


def start(  # noqa: PLR0913  all but four by keyword
    connection: psycopg.Connection,
    wanted: Filter,
    who: str,
    rate: float | None = None,
    *,
    limit: int = 0,
    driver: str | None = None,
) -> BulkReplay:
    """Begin to replay what matches now, the oldest `limit` of it (0: all), at most `rate` events per second.

    Nothing is replayed yet. Without a `driver` the sweep takes the steps. One that matches nothing has ended.
    Audited here and at its end, by a line each, however many events it replays.
    """
    with connection.transaction():
        query = _EXTENT.format(matching=event_filter.ids(wanted, "ASC"))
        parameters = wanted.parameters | _EVERY_ID | {"limit": limit or None}
        extent = connection.execute(query.encode(), parameters, prepare=False).fetchone()
        matched, until, after = extent or (0, 0, 0)
        document = _FILTER.dump_python(wanted, mode="json", exclude_none=True)
        values = (who, Json(document), rate, driver, matched, until, after, not matched)
        (bulk,) = all_as(BulkReplay, connection, _START, values)
        detail = {"filter": document, "matched": matched, "rate": rate}
        audit_log.note(connection, who, "bulk replay", f"bulk replay {bulk.id}", detail)
        return bulk


def get(connection: psycopg.Connection, number: int) -> BulkReplay | None:
    """Return a bulk replay, or None."""
    return next(iter(all_as(BulkReplay, connection, _GET, [number])), None)


def listing(connection: psycopg.Connection, limit: int = 50, before: int | None = None) -> list[BulkReplay]:
    """Return bulk replays, newest first, those with ids below `before`."""
    return all_as(BulkReplay, connection, _LISTING, {"limit": limit, "before": before})


def stop(connection: psycopg.Connection, number: int, who: str) -> None:
    """End one where it is. Audited, unless it had ended."""
    with connection.transaction():
        if connection.execute(_STOP, [number]).rowcount:
            audit_log.note(connection, who, "stop", f"bulk replay {number}")


def go_on(connection: psycopg.Connection, number: int, who: str) -> None:
    """Take up one that was stopped. Audited, if it was."""
    with connection.transaction():
        if connection.execute(_GO_ON, [number]).rowcount:
            audit_log.note(connection, who, "go on", f"bulk replay {number}")


def step(  # noqa: PLR0913  the last by keyword
    connection: psycopg.Connection,
    number: int,
    most: int = events.REPLAY_BATCH,
    *,
    driver: str | None = None,
    rate: float | None = None,
    reread: Reread | None = None,
) -> list[ReplayResult] | None:
    """Replay the next events, as its rate allows, and move the cursor with them; committed. `rate` is another one.

    Returns None where somebody else takes the steps, the rate allows none yet, or there is none left.
    """
    asked = {"id": number, "driver": driver, "rate": rate, "gone": DRIVER_GONE, "most": most}
    with connection.transaction():
        if rate is not None:
            connection.execute(_SET_RATE, asked)
        bulk = next(iter(all_as(_Turn, connection, _TAKE, asked)), None)
        if bulk is None:
            return None
        wanted = _FILTER.validate_python(bulk.with_content().filter)
        ids, last = _next(connection, bulk, wanted)
        takes_done = wanted.status in {None, EventStatus.DONE}  # how many of each there are was shown
        until = bulk.started_at if takes_done else None  # nobody saw what has ended well since
        how: dict[str, Any] = {"status": wanted.status, "again": takes_done, "done_until": until}
        outcomes = list(events.replay(connection, ids, None, reread=reread, **how))
        if whole := [outcome.id for outcome in outcomes if outcome.is_whole]:
            connection.execute(_KEEP, [number, last, whole])
        moved = {"replayed": len(whole), "left_alone": len(outcomes) - len(whole)}
        (after,) = all_as(
            BulkReplay, connection, _MOVE, {"id": number, "last": last, "driver": driver, **moved}
        )
        if after.ended_at is not None:
            result = {"replayed": after.replayed, "left_alone": after.left_alone}
            audit_log.note(connection, bulk.who, "end", f"bulk replay {number}", result)
    return outcomes


def advance(connection: psycopg.Connection, reread: Reread | None = None) -> int:
    """Take the next steps of the replays that nobody drives, each at its rate; return how many events they were.

    Safe in many processes at once. Ends after `TURN_LENGTH`.
    """
    deadline = time.monotonic() + TURN_LENGTH.total_seconds()
    waiting = [row[0] for row in connection.execute(_FREE, {"gone": DRIVER_GONE})]
    replayed = 0
    while waiting and time.monotonic() < deadline:
        number = waiting.pop(0)
        outcomes = step(connection, number, reread=reread)
        if outcomes is not None:
            replayed += sum(outcome.is_whole for outcome in outcomes)
            waiting.append(number)
    return replayed


def look(connection: psycopg.Connection, bulk: int | None = None) -> None:
    """Look at what is still open, of one bulk replay or of all; a bounded part of it."""
    connection.execute(_LOOK, {"bulk": bulk})


def _next(connection: psycopg.Connection, bulk: _Turn, wanted: Filter) -> tuple[list[int], int]:
    """Find the next matches, and the id up to which all were looked at."""
    limit = bulk.allowed
    deadline = time.monotonic() + BULK_BATCH.total_seconds()
    query = event_filter.ids(wanted, "ASC").encode()
    found: list[int] = []
    last = bulk.last_event
    while len(found) < limit and last < bulk.until_event:
        to = min(last + LOOK_AHEAD, bulk.until_event)
        window = wanted.parameters | {"low": last + 1, "top": to + 1, "limit": limit - len(found)}
        found += [row[0] for row in connection.execute(query, window, prepare=False)]
        last = found[-1] if len(found) == limit else to
        if time.monotonic() > deadline:
            break
    return found, last
