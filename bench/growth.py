"""What five million old events cost: `python -m bench growth`.

The full ledger and an empty one lie side by side in one PostgreSQL and are measured in turn. Ids are random,
as GitHub's are, so every insert lands somewhere else in a unique index that does not fit the caches of a
processor. Bodies are loaded for the last days only, as after retention.
"""

import contextlib
import hashlib
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from bench.deliveries import SIZE
from bench.lab import Lab, closed, send
from bench.stack import ROOT, Site
from receiver.ledger.upkeep import make_partition

DAYS = 30
BODY_DAYS = 6
BODIES_A_DAY = 60_000
_EVENTS = """
COPY events (id, source, provider, event_id, type, fingerprint, id_is_signed, status, received_at) FROM STDIN
"""
_BODIES = "COPY bodies (event, received_at, url, headers, body, is_element) FROM STDIN"
_SIZE = "SELECT pg_total_relation_size('events')::float8 / count(*) FROM events"


def growth(lab: Lab, rows: int) -> None:
    """Load a ledger, then measure ingest on it and on an empty one, and the listing."""
    began = time.monotonic()
    full, empty = lab.stack.ours, lab.stack.obvious
    days = [datetime.now(UTC).date() - timedelta(days=n) for n in range(DAYS)]
    _load(full, rows, days)
    lab.note(growth_rows=rows, growth_load_seconds=time.monotonic() - began)
    lab.note(growth_ledger_bytes=full.value(_SIZE))
    seconds = lab.pick(3, 1)
    with full.serve("wsgi:application") as big, empty.serve("wsgi:application") as small:
        for number in lab.rounds(BODY_DAYS - 1, 2, seconds * 6):
            bare = send(closed(small.port, seconds))["rate"]
            loaded = send(closed(big.port, seconds))["rate"]
            with _dropping(full, days[BODY_DAYS - 1 - number], seconds / 2):
                dropping = send(closed(big.port, seconds))["rate"]
            lab.note(growth_empty_rate=bare, growth_full_rate=loaded, growth_dropping_rate=dropping)
            lab.note(growth_ingest=loaded / bare, growth_ingest_dropping=dropping / bare)
            empty.empty()
    _list(lab, full)


def _load(site: Site, rows: int, days: list[date]) -> None:
    """Fill the ledger by COPY, the oldest first, and tell the planner."""
    with site.connect() as connection:
        for day in days:
            make_partition(connection, day)
        with connection.cursor() as cursor:
            with cursor.copy(_EVENTS) as copy:
                for line in _event_lines(rows, days):
                    copy.write(line)
            with cursor.copy(_BODIES) as copy:
                for line in _body_lines(rows, days):
                    copy.write(line)
        connection.execute("SELECT setval(pg_get_serial_sequence('events', 'id'), max(id)) FROM events")
        connection.execute("VACUUM ANALYZE events, bodies")


def _event_lines(rows: int, days: list[date]) -> Iterator[str]:
    """Give the rows of the ledger as COPY takes them, a thousand at a time."""
    lines = []
    for number in range(1, rows + 1):
        day = days[(rows - number) * len(days) // rows]
        guid = uuid.uuid4()
        fingerprint = hashlib.sha256(guid.bytes).hexdigest()
        lines.append(
            f"{number}\tgithub\tgithub\t{guid}\tpush\t\\\\x{fingerprint}\tf\tdone\t{day} 00:00:01+00\n"
        )
        if len(lines) == 1000:  # noqa: PLR2004  rows a write
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def _body_lines(rows: int, days: list[date]) -> Iterator[str]:
    """Give bodies of the newest events of the last days."""
    body = "{" + "x" * (SIZE - 2) + "}"
    a_day = rows // len(days)
    for back, day in enumerate(days[:BODY_DAYS]):
        newest = rows - back * a_day
        for number in range(newest, newest - min(a_day, BODIES_A_DAY), -1):
            yield f"{number}\t{day} 00:00:01+00\t/hooks/github\t{{}}\t{body}\tf\n"


@contextlib.contextmanager
def _dropping(site: Site, day: date, after: float) -> Iterator[None]:
    """Drop a day of bodies meanwhile, in the way that holds no lock for long."""

    def drop() -> None:
        time.sleep(after)
        name = f"bodies_{day:%Y%m%d}"
        with site.connect() as connection:
            connection.execute(f"ALTER TABLE bodies DETACH PARTITION {name} CONCURRENTLY".encode())
            connection.execute(f"DROP TABLE {name}".encode())

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _list(lab: Lab, site: Site) -> None:
    """Time `hookonce events list`, start of Python included; nothing is noted where it fails."""
    for _ in range(3):
        began = time.perf_counter()
        with site.run("-m", "receiver.cli", "events", "list", "--limit", "50") as process:
            try:
                failed = process.wait(60)
            except subprocess.TimeoutExpired:
                failed = 1
        if failed:
            print(f"  `events list` failed in {ROOT.name}", file=sys.stderr)
            return
        lab.note(growth_list_ms=(time.perf_counter() - began) * 1000)
