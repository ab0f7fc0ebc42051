"""Takes bulk replays further, step by step, so that nothing is lost or repeated whoever is killed.

A step replays the next events, as many as the rate allows by then, and moves the cursor of the replay's row in one
transaction. The program that started it may drive it, as the command line does; otherwise, or once that driver has
taken no step for `DRIVER_GONE` and a rate's pause, the sweep does.

Lock order: bulk_replays, then as in `receiver.ledger.replay.events`.
"""

import time
from datetime import timedelta

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import events
from hookonce.receiver.ledger.replay.bulk import COLUMNS, GET, Bulk, one
from hookonce.receiver.ledger.replay.events import ReplayResult, Reread
from hookonce.receiver.ledger.states import EventStatus

DRIVER_GONE = timedelta(seconds=10)
LOOK_AHEAD = 50_000
"""Ids looked through by one statement: so none takes long, however rare the matches are."""
BULK_BATCH = timedelta(milliseconds=300)
"""How long one step looks for matches before it says how far it has come."""
TURN_LENGTH = timedelta(seconds=1)
"""How long the sweep may be kept by bulk replays in one turn."""
_LONGEST_PAUSE = timedelta(seconds=5)
"""The part of a pause between two steps that counts for the rate: a replay does not catch up on a night."""


# Who drives one is believed until a step of it is overdue; a time in the future is of a clock that was ahead.
_PAUSE = "(%(gone)s + coalesce(1 / rate, 0) * interval '1 second')"
_IS_FREE = f"(driver IS NULL OR driven_at NOT BETWEEN now() - {_PAUSE} AND now() + {_PAUSE})"
_FREE = f"SELECT id FROM hookonce.bulk_replays WHERE ended_at IS NULL AND {_IS_FREE} ORDER BY id LIMIT 20"  # noqa: S608  constants
# Its driver takes the first event at once.
_TAKE = f"""
SELECT {COLUMNS} FROM hookonce.bulk_replays
WHERE id = %(id)s AND ended_at IS NULL AND (driver = %(driver)s OR {_IS_FREE})
      AND (rate IS NULL OR (driver = %(driver)s AND replayed + left_alone = 0)
           OR abs(extract(epoch FROM now() - driven_at)) * rate >= 1) FOR UPDATE SKIP LOCKED
"""  # noqa: S608  constants
_SET_RATE = "UPDATE hookonce.bulk_replays SET rate = %(rate)s WHERE id = %(id)s AND ended_at IS NULL"
_IDLE = "SELECT extract(epoch FROM now() - driven_at) FROM hookonce.bulk_replays WHERE id = %s"

_MOVE = f"""
UPDATE hookonce.bulk_replays SET replayed = replayed + %(replayed)s, left_alone = left_alone + %(left_alone)s,
       last_event = %(last)s, driver = %(driver)s, driven_at = now(),
       ended_at = CASE WHEN %(last)s >= until_event THEN now() END
WHERE id = %(id)s RETURNING {COLUMNS}
"""  # noqa: S608  a constant

_KEEP = "INSERT INTO hookonce.bulk_steps (bulk, last_event, events) VALUES (%s, %s, %s)"


def step(  # noqa: PLR0913  the last by keyword
    connection: psycopg.Connection,
    number: int,
    most: int = events.REPLAY_BATCH,
    *,
    driver: str | None = None,
    rate: float | None = None,
    reread: Reread | None = None,
) -> tuple[Bulk, list[ReplayResult]]:
    """Replay the next events, as its rate allows, and move the cursor with them; committed. `rate` is another one.

    One that has ended, or that somebody else drives, is given as it is. Raises: LookupError where there is none.
    """
    return _taken(connection, number, most, driver=driver, rate=rate, reread=reread) or (
        one(connection, GET, [number]),
        [],
    )


def advance(connection: psycopg.Connection, reread: Reread | None = None) -> int:
    """Take the next steps of the replays that nobody drives, each at its rate; return how many events they were.

    Safe in many processes at once. Ends after `TURN_LENGTH`.
    """
    deadline = time.monotonic() + TURN_LENGTH.total_seconds()
    waiting = [row[0] for row in connection.execute(_FREE, {"gone": DRIVER_GONE})]
    replayed = 0
    while waiting and time.monotonic() < deadline:
        number = waiting.pop(0)
        if taken := _taken(connection, number, events.REPLAY_BATCH, reread=reread):
            bulk, outcomes = taken
            replayed += sum(outcome.is_whole for outcome in outcomes)
            waiting += [number] * (bulk.ended_at is None)
    return replayed


def _taken(  # noqa: PLR0913  the last by keyword
    connection: psycopg.Connection,
    number: int,
    most: int,
    *,
    driver: str | None = None,
    rate: float | None = None,
    reread: Reread | None = None,
) -> tuple[Bulk, list[ReplayResult]] | None:
    """Take a step; None where somebody else takes them, the rate allows none yet, or there is none left."""
    asked = {"id": number, "driver": driver, "rate": rate, "gone": DRIVER_GONE}
    with connection.transaction(), connection.cursor(row_factory=class_row(Bulk)) as cursor:
        if rate is not None:
            cursor.execute(_SET_RATE, asked)
        bulk = cursor.execute(_TAKE.encode(), asked).fetchone()
        return (
            _step(connection, bulk, min(most, _allowed(connection, bulk)), driver, reread) if bulk else None
        )


def _allowed(connection: psycopg.Connection, bulk: Bulk) -> int:
    """Return how many events the rate allows since the last step."""
    if bulk.rate is None:
        return events.REPLAY_BATCH
    row = connection.execute(_IDLE, [bulk.id]).fetchone()
    counted = min(float(row[0]) if row else 0, _LONGEST_PAUSE.total_seconds())
    return min(max(int(counted * bulk.rate), 1), events.REPLAY_BATCH)


def _step(
    connection: psycopg.Connection, bulk: Bulk, limit: int, driver: str | None, reread: Reread | None
) -> tuple[Bulk, list[ReplayResult]]:
    wanted = bulk.wanted
    ids, last = _next(connection, bulk, wanted, limit)
    takes_done = wanted.status in {
        None,
        EventStatus.DONE,
    }  # whoever began it was told how many of each there are
    until = bulk.started_at if takes_done else None  # nobody saw what has ended well since
    outcomes = list(
        events.replay(
            connection,
            ids,
            None,
            status=wanted.status,
            again=takes_done,
            done_until=until,
            reread=reread,
        )
    )
    whole = [outcome.id for outcome in outcomes if outcome.is_whole]
    if whole:
        connection.execute(_KEEP, [bulk.id, last, whole])
    moved = {
        "id": bulk.id,
        "last": last,
        "replayed": len(whole),
        "left_alone": len(outcomes) - len(whole),
        "driver": driver,
    }
    after = one(connection, _MOVE, moved)
    if after.ended_at is not None:
        result = {"replayed": after.replayed, "left_alone": after.left_alone}
        audit_log.note(connection, bulk.who, "end", f"bulk replay {bulk.id}", result)
    return after, outcomes


def _next(connection: psycopg.Connection, bulk: Bulk, wanted: Filter, limit: int) -> tuple[list[int], int]:
    """Find the next matches, and the id up to which all were looked at."""
    deadline = time.monotonic() + BULK_BATCH.total_seconds()
    found: list[int] = []
    last = bulk.last_event
    while (
        len(found) < limit
        and last < bulk.until_event
        and (last == bulk.last_event or time.monotonic() < deadline)
    ):
        to = min(last + LOOK_AHEAD, bulk.until_event)
        window = wanted.parameters | {"low": last + 1, "top": to + 1, "limit": limit - len(found)}
        rows = connection.execute(event_filter.ids(wanted, "ASC").encode(), window, prepare=False).fetchall()
        found += [row[0] for row in rows]
        last = found[-1] if len(found) == limit else to
    return found, last
