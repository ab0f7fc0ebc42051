"""A ledger that has been in use for ninety days: millions of events by COPY, their runs, the bodies still kept.

Ids are random where the senders' are, so every insert lands somewhere else in unique indexes that no processor
cache holds. Some sources and types are rare, one source fell silent long ago: those are what listings trip over.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import NamedTuple

import psycopg

from bench.load.deliveries import body
from hookonce.receiver.ledger.maintenance.partitions import make_partition

SPAN = timedelta(days=90)
BODY_SPAN = timedelta(days=30)
CHUNK = 20_000  # rows a COPY
OPEN = "open"
"""The source of events that are still to be handled."""
_OPEN = """
WITH stored AS (
    INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed)
    SELECT %(source)s, 'github', gen_random_uuid()::text, 'push', sha256(n::text::bytea), false
    FROM generate_series(1, %(received)s + %(waiting)s) AS n ORDER BY n
    RETURNING id, received_at, source, type
)
INSERT INTO hookonce.queue (event, received_at, source, type, due_at, handler)
SELECT id, received_at, source, type, now(),
       CASE WHEN row_number() OVER (ORDER BY id) > %(received)s THEN 'app.open' END
FROM stored
"""
_HEADERS = (
    '{"content-type": "application/json", "user-agent": "GitHub-Hookshot/044aadd", "x-github-event": "push"}'
)
_BODY = body().replace("\\", "\\\\")
_EVENTS = """
COPY hookonce.events (id, source, provider, event_id, type, account, fingerprint, id_is_signed, received_at) FROM STDIN
"""
_RUNS = """
COPY hookonce.runs (event, handler, cycle, status, is_last, attempts, started_at, finished_at) FROM STDIN
"""
_QUEUE = "COPY hookonce.queue (event, received_at, source, type, due_at, waits) FROM STDIN"
_BODIES = "COPY hookonce.bodies (event, received_at, url, headers, body, is_element) FROM STDIN"


class Kind(NamedTuple):
    """Events of one source and type: how many of ten thousand, when in the past they came, how they ended.

    `replayed` ones were dead, were replayed, and are done.
    """

    source: str
    type: str
    share: int
    is_signed: bool = True
    status: str = "done"
    since: float = 0.0
    until: float = 1.0


KINDS = (
    Kind("github", "push", 3760, is_signed=False),
    Kind("github", "pull_request", 1000, is_signed=False),
    Kind("github", "check_run", 500, is_signed=False, status="ignored"),
    Kind("stripe", "invoice.paid", 2000),
    Kind("stripe", "charge.succeeded", 1450),
    Kind("stripe", "charge.refunded", 20, status="dead"),
    Kind("stripe", "charge.failed", 240, status="replayed"),
    Kind("shopify", "orders/create", 1000, is_signed=False),
    Kind("stripe", "payout.failed", 1),
    Kind("partner", "stock.low", 1),
    Kind("dormant", "ping", 25, until=0.05),
    Kind("shopify", "orders/edited", 3, is_signed=False, status="held", since=0.99),
)


class _Row(NamedTuple):
    number: int
    kind: Kind
    at: datetime


def load(connection: psycopg.Connection, rows: int, now: datetime) -> None:
    """Fill an empty ledger with so many events, the oldest `SPAN` before `now`, and tell the planner."""
    for ago in range(BODY_SPAN.days + 1):
        make_partition(connection, (now - timedelta(days=ago)).astimezone(UTC).date())
    connection.execute("SET session_replication_role = replica")  # each run has its event: no need to look
    for chunk in _chunks(rows, now):
        _copy(connection, _EVENTS, map(_event, chunk))
        _copy(connection, _RUNS, (_run(row) for row in chunk if row.kind.status != "held"))
        _copy(connection, _QUEUE, (_queued(row) for row in chunk if row.kind.status == "held"))
        if chunk[-1].at > now - BODY_SPAN:
            _copy(connection, _BODIES, (_body(row) for row in chunk if row.at > now - BODY_SPAN))
    connection.execute("SET session_replication_role = DEFAULT")
    connection.execute(
        "SELECT setval(pg_get_serial_sequence('hookonce.events', 'id'), max(id)) FROM hookonce.events"
    )
    connection.execute("VACUUM ANALYZE")


def add_open(connection: psycopg.Connection, received: int, waiting: int) -> None:
    """Add events that no worker has met, and newer ones that wait for their handler."""
    connection.execute(_OPEN, {"source": OPEN, "received": received, "waiting": waiting})
    connection.execute("VACUUM ANALYZE hookonce.events, hookonce.queue")


def _chunks(rows: int, now: datetime) -> Iterator[Sequence[_Row]]:
    """Return the rows, oldest first; the kinds are spread evenly over each ten thousand."""
    step = SPAN / rows
    deck = [
        kind
        for _, kind in sorted(((n + 0.5) / kind.share, kind) for kind in KINDS for n in range(kind.share))
    ]
    kinds = cycle(deck)
    for first in range(1, rows + 1, CHUNK):
        chunk = []
        for number in range(first, min(first + CHUNK, rows + 1)):
            kind = next(kinds)
            if not kind.since * rows <= number <= kind.until * rows:
                kind = KINDS[0]
            chunk.append(_Row(number, kind, now - step * (rows - number + 1)))
        yield chunk


def _event(row: _Row) -> str:
    number, kind, at = row
    noise = os.urandom(48).hex()
    event_id = (
        f"evt_{noise[:24]}"
        if kind.is_signed
        else f"{noise[:8]}-{noise[8:12]}-{noise[12:16]}-{noise[16:20]}-{noise[20:32]}"
    )
    return (
        f"{number}\t{kind.source}\t{kind.source}\t{event_id}\t{kind.type}\tacct_{number % 5000}\t"
        f"\\\\x{noise[32:]}\t{'t' if kind.is_signed else 'f'}\t{at}\n"
    )


def _run(row: _Row) -> str:
    ended = row.at + timedelta(milliseconds=20)
    handler = "" if row.kind.status == "ignored" else f"app.{row.kind.source}"
    cycles = ("dead", "done") if row.kind.status == "replayed" else (row.kind.status,)
    return "".join(
        f"{row.number}\t{handler}\t{cycle}\t{status}\t{cycle == len(cycles)}\t1\t{row.at}\t{ended}\n"
        for cycle, status in enumerate(cycles, 1)
    )


def _queued(row: _Row) -> str:
    return f"{row.number}\t{row.at}\t{row.kind.source}\t{row.kind.type}\t{row.at}\theld\n"


def _body(row: _Row) -> str:
    return f"{row.number}\t{row.at}\t/hooks/{row.kind.source}\t{_HEADERS}\t{_BODY}\tf\n"


def _copy(connection: psycopg.Connection, statement: str, lines: Iterator[str]) -> None:
    with connection.cursor().copy(statement.encode()) as copy:
        copy.write("".join(lines))
