"""Looks into stored bodies, newest first: no index holds them, so as far as a bound of time, events and bytes reaches.

PostgreSQL passes over what can't match; what is sealed is opened here, if the key is.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import psycopg
from psycopg.rows import class_row

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.decryption import StoredBody, decrypt_body
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import COLUMNS, Event, came_at
from hookonce.receiver.ledger.queries.id_ranges import extent
from hookonce.receiver.ledger.queries.needles import Needle

MAX_EVENTS = 50_000
"""Events looked into at a time."""
MAX_BYTES = 8_000_000
"""Bytes of bodies read at once; a larger one is not looked into."""
STATEMENT_TIMEOUT = timedelta(seconds=2)
"""Time limit of each statement; one that is stopped ends the search where it was."""
_FIRST_BATCH, _LARGEST_BATCH = 100, 2000
_IDS = 50_000
"""Ids passed at a time where few of them match the filter."""

_CANDIDATE = f"{COLUMNS}, fingerprint"
_OLDEST = "SELECT coalesce(min(event), 0) FROM hookonce.bodies"
_SIZES = """
SELECT event, octet_length(body) FROM hookonce.bodies
WHERE event = ANY(%s) AND received_at >= %s AND received_at <= %s ORDER BY event DESC
"""
_BODIES = """
SELECT event, url, headers, body, key_id FROM hookonce.bodies
WHERE event = ANY(%(ids)s) AND received_at >= %(first)s AND received_at <= %(last)s
      AND (key_id IS NOT NULL OR headers ->> 'content-encoding' IS NOT NULL OR %(spellings)s::bytea[] = '{}'
           OR EXISTS (SELECT FROM unnest(%(spellings)s::bytea[]) AS s WHERE position(s IN body) > 0))
"""


class _Candidate(Event):
    fingerprint: bytes = b""


@dataclass(slots=True)
class Found:
    """The results so far: events, newest first; `rest` and `back_to` as of an `EventPage`.

    `looked_into` bodies, of which `sealed` had to be opened; `closed` could not be, `large` ones were left out.
    """

    rows: list[Event] = field(default_factory=list)
    rest: int | None = None
    back_to: datetime | None = None
    looked_into: int = 0
    sealed: int = 0
    closed: int = 0
    large: int = 0


def search(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    keyring: Keyring,
    wanted: Filter,
    needle: Needle,
    *,
    limit: int,
    before: int | None,
    budget: timedelta,
) -> Found:
    """Look for a needle in the bodies of matching events with ids below `before`, for about `budget`.

    It ends after `limit` events that have it, or `MAX_EVENTS` that were looked into.
    """
    low, top = extent(connection, wanted, before)
    low = max(low, (connection.execute(_OLDEST).fetchone() or (0,))[0])
    found = Found()
    until, size, seen = time.monotonic() + budget.total_seconds(), _FIRST_BATCH, 0
    while top > low:
        try:
            with connection.transaction():
                connection.execute(
                    f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT.total_seconds():.0f}s'".encode()
                )
                candidates, below = _candidates(connection, wanted, low, top, size)
                top = _look(connection, keyring, needle, candidates, found, limit, until) or below
        except psycopg.errors.QueryCanceled:
            break
        seen += len(candidates)
        size = min(size * 2, _LARGEST_BATCH)
        if len(found.rows) >= limit or seen >= MAX_EVENTS or time.monotonic() > until:
            break
    if top > low:
        found.rest, found.back_to = top, came_at(connection, top)
    return found


def _candidates(
    connection: psycopg.Connection, wanted: Filter, low: int, top: int, size: int
) -> tuple[list[_Candidate], int]:
    """Return the newest events of a stretch of ids, and the id below which nothing was looked at."""
    below = max(low, top - _IDS)
    page = wanted.parameters | {"low": below, "top": top, "limit": size}
    query = event_filter.rows(_CANDIDATE, wanted)
    with connection.cursor(row_factory=class_row(_Candidate)) as cursor:
        rows = cursor.execute(query.encode(), page, prepare=False).fetchall()
    return rows, rows[-1].id if len(rows) == size else below


def _look(  # noqa: PLR0913, PLR0917  one step of `search`
    connection: psycopg.Connection,
    keyring: Keyring,
    needle: Needle,
    candidates: Sequence[_Candidate],
    found: Found,
    limit: int,
    until: float,
) -> int | None:
    """Add to `found`; return the id of the last event that was looked at, if `limit` or the time ended it early."""
    last: int | None = None
    for some in _batches(connection, candidates, found):
        if last is not None and time.monotonic() > until:
            return last
        stored = _stored(connection, needle, some)
        for each in some:
            if each.id in stored and _has(keyring, needle, stored[each.id], found):
                found.rows.append(each)
                if len(found.rows) >= limit:
                    return each.id
        last = some[-1].id
    return None


def _batches(
    connection: psycopg.Connection, candidates: Sequence[_Candidate], found: Found
) -> Iterator[list[_Candidate]]:
    """Divide candidates that have a body, so that no batch is of more than `MAX_BYTES`."""
    if not candidates:
        return
    times = [each.received_at for each in candidates]
    ids = [each.id for each in candidates]
    sizes: dict[int, int] = dict(
        connection.execute(_SIZES, [ids, min(times), max(times)], prepare=False).fetchall()
    )
    batch: list[_Candidate] = []
    room = MAX_BYTES
    for each in candidates:
        if sizes.get(each.id, MAX_BYTES + 1) > MAX_BYTES:
            found.large += each.id in sizes
            continue
        if sizes[each.id] > room:
            yield batch
            batch, room = [], MAX_BYTES
        room -= sizes[each.id]
        batch.append(each)
        found.looked_into += 1
    if batch:
        yield batch


def _stored(
    connection: psycopg.Connection, needle: Needle, batch: Sequence[_Candidate]
) -> dict[int, StoredBody]:
    times = [each.received_at for each in batch]
    known = {each.id: each for each in batch}
    asked = {"ids": list(known), "first": min(times), "last": max(times), "spellings": needle.spellings}
    return {
        event: StoredBody(
            url, headers, body, key_id, known[event].source, known[event].event_id, known[event].fingerprint
        )
        for event, url, headers, body, key_id in connection.execute(_BODIES, asked, prepare=False)
    }


def _has(keyring: Keyring, needle: Needle, stored: StoredBody, found: Found) -> bool:
    found.sealed += stored.key_id is not None
    body = decrypt_body(keyring, stored)
    if body is None or body.unreadable:
        found.closed += 1
        return False
    return needle.is_in(body.body)
