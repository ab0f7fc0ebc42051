"""What has not ended in the ledger of a test, when the next of it may go on, and what it waits for."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.events import Detail, RunRow
from hookonce.receiver.ledger.runs import breakers, parking
from hookonce.receiver.ledger.states import WAITS_FOR_LIMIT, RunStatus, Waits, WaitsFor

_NAMED = 100
"""Events that are looked at to say what they wait for."""

# What is parked goes on when a place is free, a breaker tries, or a person says so; a suspect by its time.
_LEFT = f"""
SELECT count(DISTINCT event) AS events, coalesce(sum(attempts + (token IS NOT NULL)::int), 0) AS attempts,
       least(min(coalesce(lease_until, due_at)) FILTER (WHERE waits IS NULL OR waits = '{Waits.SUSPECT}'), (
           SELECT min(try_at) FROM hookonce.breakers b WHERE opened_at IS NOT NULL AND EXISTS (
               SELECT FROM hookonce.queue r WHERE (r.waiting_handler, r.waits) = (b.handler, '{Waits.HANDLER}'))
       )) - clock_timestamp() AS pause,
       EXISTS (SELECT FROM hookonce.breakers WHERE opened_at IS NOT NULL) AS is_broken
FROM hookonce.queue LEFT JOIN hookonce.claims USING (token) WHERE waits IS DISTINCT FROM '{Waits.HELD}'
"""  # noqa: S608  constants
_OPEN = f"""
SELECT DISTINCT event FROM hookonce.queue WHERE waits IS DISTINCT FROM '{Waits.HELD}' ORDER BY event LIMIT %s
"""  # noqa: S608  a constant
_PARKED = f"SELECT count(*) FROM hookonce.queue WHERE waits = '{Waits.HANDLER}'"  # noqa: S608  a constant

_TEXTS = {
    WaitsFor.LIMIT: "for a place of its limit",
    WaitsFor.RATE: "for the time that its rate gives it",
    WaitsFor.BACKOFF: "for the next attempt",
    WaitsFor.DELAY: "for the time it asked for (RetryLater)",
}


class Left(NamedTuple):
    """What has not ended: how many events, and the attempts of their runs so far.

    `pause` is in how long some of it may go on, none if only a person can say so; `is_broken`: a breaker is open.
    """

    events: int
    attempts: int
    pause: timedelta | None
    is_broken: bool


def left(connection: psycopg.Connection) -> Left:
    """Return what has not ended."""
    with connection.cursor(row_factory=class_row(Left)) as cursor:
        return cursor.execute(_LEFT).fetchone() or Left(0, 0, None, is_broken=False)


def unpark(connection: psycopg.Connection) -> bool:
    """Make due what was held by a breaker that has closed, as the sweep does; return whether there was any."""
    before = _parked(connection)
    parking.unpark_left(connection)
    return _parked(connection) < before


def _parked(connection: psycopg.Connection) -> int:
    row = connection.execute(_PARKED).fetchone()
    return int(row[0]) if row else 0


def story(connection: psycopg.Connection) -> str:
    """Return how much has not ended, and what it waits for: a line for each handler and reason."""
    paused = {(each[0], each[1]) for each in pauses.paused(connection)}
    broken = {each.handler: each for each in breakers.breakers(connection) if each.is_open}
    ids = [row[0] for row in connection.execute(_OPEN, [_NAMED])]
    found = [detail for each in ids if (detail := events.detail(connection, each, OFF))]
    said = Counter(line for detail in found for line in _reasons(detail, paused, broken))
    count = left(connection).events
    lines = [f"  {who}: {number} {why}" for (who, why), number in said.items()]
    return "\n".join([f"{count} event{'s' if count > 1 else ''} had not ended:", *lines])


def _reasons(
    found: Detail, paused: set[tuple[str, str]], broken: dict[str, breakers.Breaker]
) -> Iterator[tuple[str, str]]:
    source = found.event.source
    waiting = [run for run in found.runs if run.due_at is not None]
    if ("source", source) in paused:
        yield f"source {source}", f"waiting, source '{source}' is paused"
    elif not waiting:
        yield f"source {source}", "waiting for a worker"
    else:
        yield from ((run.handler, _reason(run, broken.get(run.handler), paused)) for run in waiting)


def _reason(run: RunRow, breaker: breakers.Breaker | None, paused: set[tuple[str, str]]) -> str:
    if run.status == RunStatus.RUNNING:
        return "under way until its lease ends"
    if run.parked == Waits.SUSPECT:
        return "waiting to be run by itself, as its process died"
    if run.parked and run.parked.startswith(WAITS_FOR_LIMIT):
        return f"waiting {_TEXTS[WaitsFor.LIMIT]}"
    if breaker is not None:
        return f"waiting for its circuit breaker, open after {breaker.failures} failures: {breaker.error}"
    if ("handler", run.handler) in paused:
        return f"waiting, handler '{run.handler}' is paused"
    waits_for = run.waits_for or WaitsFor.WORKER
    why = _TEXTS.get(waits_for, f"for a {waits_for}")
    return f"waiting {why}{f', after {run.error}' if run.error else ''}"
