"""Events that have not ended in the ledger of a test, when the next of it may go on, and what it waits for."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import pauses, reasons
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.queries.event_details import Detail, Run
from hookonce.receiver.ledger.reasons import WaitsFor
from hookonce.receiver.ledger.runs import breakers, parking
from hookonce.receiver.ledger.states import RunStatus, Waits

_NAMED = 100
"""Events that are looked at to say what they wait for."""

_BY_TIME = f"waits = '{Waits.SUSPECT}' OR {reasons.BATCH.parked_by('waits')}"
# What is parked goes on when a place is free, a breaker tries, or a person says so; suspects and batches by their time.
_LEFT = f"""
SELECT count(DISTINCT event) AS events, coalesce(sum(attempts + (token IS NOT NULL)::int), 0) AS attempts,
       least(min(coalesce(lease_until, due_at)) FILTER (WHERE waits IS NULL OR {_BY_TIME}), (
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


class Left(NamedTuple):
    """Events that have not ended: how many, and the attempts of their runs so far.

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
    paused = {each.name for each in pauses.paused(connection) if each.kind == reasons.HANDLER.kind}
    broken = {each.handler: each for each in breakers.breakers(connection) if each.is_open}
    ids = [row[0] for row in connection.execute(_OPEN, [_NAMED])]
    found = [
        (detail.with_content(), pauses.keeping(connection, each))
        for each in ids
        if (detail := event_details.detail(connection, each, OFF))
    ]
    said = Counter(line for detail, keeping in found for line in _reasons(detail, keeping, paused, broken))
    count = left(connection).events
    lines = [f"  {who}: {number} {why}" for (who, why), number in said.items()]
    return "\n".join([f"{count} event{'s' if count > 1 else ''} had not ended:", *lines])


def _reasons(
    found: Detail,
    keeping: Sequence[tuple[str, str]],
    paused: AbstractSet[str],
    broken: Mapping[str, breakers.Breaker],
) -> Iterator[tuple[str, str]]:
    source = f"source {found.event.source}"
    waiting = [run for run in found.runs if run.due_at is not None]
    if keeping:
        named = " and ".join(f"{kind} '{name}'" for kind, name in keeping)
        yield source, f"waiting, {named} is paused"
    elif not waiting:
        yield source, "waiting for a worker"
    else:
        yield from ((run.handler, _reason(run, broken.get(run.handler), paused)) for run in waiting)


def _reason(run: Run, breaker: breakers.Breaker | None, paused: AbstractSet[str]) -> str:
    if run.status == RunStatus.RUNNING:
        return "under way until its lease ends"
    if run.parked and run.waits_for not in {WaitsFor.BREAKER, WaitsFor.PAUSE}:
        return f"waiting: {run.waits}"
    if breaker is not None:
        return f"waiting for its circuit breaker, open after {breaker.failures} failures: {breaker.error}"
    if run.handler in paused:
        return f"waiting, handler '{run.handler}' is paused"
    why = reasons.of_waits_for(run.waits_for or WaitsFor.WORKER).words
    return f"waiting: {why}{f', after {run.error}' if run.error else ''}"
