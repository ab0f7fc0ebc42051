"""What five million old events cost: `python -m bench growth`.

The full ledger and an empty one lie side by side in one PostgreSQL and are measured in turn. Whatever is pruned
is pruned by hookonce's own code, as the sweep and `hookonce prune` do it, while deliveries come.
"""

import contextlib
import http.client
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

import psycopg

from bench import past
from bench.lab import BadAnswers, Lab, closed, send
from bench.stack import Server, Site
from jobs import pruner, sweep
from receiver.admin.sessions import Sessions
from receiver.admin.shell import COOKIE
from receiver.ledger import activity, counts, upkeep
from receiver.ledger.desk_prune import Horizons, Pruned, Pruning

STAGES = ("load", "ingest", "look", "prune")
ROUNDS = 8
TUNED = ("shared_buffers = '1GB'", "max_wal_size = '8GB'")
PRUNED_ROWS = 100_000
FOR_EVER = timedelta(days=10_000)
LISTINGS = (
    "",
    "--source partner",
    "--source dormant",
    "--type payout.failed",
    "--type ping",
    "--status dead",
    "--status ignored",
    "--type payout.*",
    "--source shopify",
)
PAGES = (
    "/admin/",
    "/admin/?span=7d",
    "/admin/events",
    "/admin/events?source=dormant",
    "/admin/events?status=dead",
)
ADMIN_TOKEN = "bench admin token of some length"  # noqa: S105  of a server that lives as long as the benchmark
_SIZES = """
SELECT (pg_table_size('events') + pg_table_size('runs'))::float8 / count(*),
       (pg_indexes_size('events') + pg_indexes_size('runs'))::float8 / count(*) FROM events
"""
_BODY_SIZE = """
SELECT sum(pg_total_relation_size(inhrelid))::float8 / greatest((SELECT count(*) FROM bodies), 1)
FROM pg_inherits WHERE inhparent = 'bodies'::regclass
"""


def chosen_stages(names: Sequence[str]) -> Sequence[str]:
    """Give the stages of these names, or all. Raises `LookupError` for a wrong one."""
    wrong = [name for name in names if name not in STAGES]
    if wrong:
        raise LookupError(f"growth has no stage '{wrong[0]}'; there are {', '.join(STAGES)}")
    return names or STAGES


def growth(lab: Lab, rows: int, stages: Sequence[str]) -> None:
    """Load a ledger unless it is there, then measure ingest on it and an empty one, looking into it, and pruning."""
    full = lab.stack.ours
    if full.value("SELECT count(*) FROM (SELECT FROM events LIMIT 1000) AS some_rows") == 0:
        began = time.monotonic()
        with full.connect() as connection:
            past.load(connection, rows, datetime.now(UTC))
            _count(connection)
        lab.note(growth_load_seconds=time.monotonic() - began)
    lab.note(growth_rows=full.value("SELECT reltuples FROM pg_class WHERE relname = 'events'"))
    _tune(lab)
    for name, measure in (("load", _sizes), ("ingest", _ingest), ("look", _look), ("prune", _prune)):
        if name in stages:
            print(f"{name} …", flush=True)
            measure(lab)


def _tune(lab: Lab) -> None:
    """Give PostgreSQL what docs/scaling.md says a ledger of this size should have; its own defaults are tiny."""
    with lab.stack.ours.connect() as connection:
        for setting in TUNED:
            connection.execute(f"ALTER SYSTEM SET {setting}".encode())
    lab.stack.postgres.restart()


def _count(connection: psycopg.Connection) -> None:
    """Do at once what a sweep does over many turns."""
    mark = counts.mark(connection)
    for _ in range(mark.newest // counts.STEP + 1):
        counts.advance(connection, mark)
    counts.recount(connection)
    while activity.fill(connection):
        pass


def _sizes(lab: Lab) -> None:
    with lab.stack.ours.connect() as connection:
        tables, indexes = connection.execute(_SIZES).fetchone() or (0, 0)
    lab.note(growth_ledger_bytes=tables + indexes, growth_index_bytes=indexes)
    lab.note(growth_body_bytes=lab.stack.ours.value(_BODY_SIZE))


def _ingest(lab: Lab) -> None:
    """Send new events to the empty ledger, to the full one, and to the full one while it drops a day of bodies."""
    seconds = lab.pick(3, 1)
    with _both(lab) as (big, small):
        for _ in lab.rounds(ROUNDS, 2, seconds * 6):
            bare = _rate(lab, lab.stack.obvious, small, seconds, "growth_empty_wal_bytes")
            loaded = _rate(lab, lab.stack.ours, big, seconds, "growth_wal_bytes")
            pace = _Turns(timedelta(0), None)
            with _pruning(lab.stack.ours, _oldest_day(lab.stack.ours), seconds / 2, pace) as pruned:
                dropping = send(closed(big.port, seconds))["rate"]
            if len(pruned.days) != 1:
                raise BadAnswers(f"one day of bodies was to be dropped: {pruned}")
            lab.note(growth_empty_rate=bare, growth_full_rate=loaded, growth_dropping_rate=dropping)
            lab.note(growth_ingest=loaded / bare, growth_ingest_dropping=dropping / bare)
            lab.stack.obvious.empty()


def _prune(lab: Lab) -> None:
    """Prune the oldest events while new ones come as fast as they are taken: as the sweep does, then as the command."""
    full, seconds = lab.stack.ours, lab.pick(5, 2)
    with _both(lab) as (big, small):
        for _ in lab.rounds(3, 1, seconds * 6):
            bare = send(closed(small.port, seconds))["rate"]
            for name, horizons, pace in (
                ("sweep", _oldest_rows(full), _Turns(pruner.BUDGET, sweep.INTERVAL - pruner.BUDGET)),
                ("command", _oldest_rows(full), _Turns(timedelta(0), None)),
            ):
                with _pruning(full, horizons, seconds / 5, pace) as pruned:
                    loaded = send(closed(big.port, seconds))["rate"]
                    pace.is_over = True
                lab.note(**{f"growth_pruned_by_{name}": pruned.events / pace.took})
                lab.note(**{f"growth_ingest_beside_{name}": loaded / bare})
            lab.stack.obvious.empty()


@dataclass
class _Turns:
    """Work for so long, then rest for so long, or (None) for as long as the work took; until it is over."""

    work: timedelta
    rest: timedelta | None
    is_over: bool = False
    took: float = 0.0

    def follow(self, steps: Iterator[object]) -> None:
        """Take the steps."""
        first = began = time.monotonic()
        for _ in steps:
            worked = time.monotonic() - began
            if worked >= self.work.total_seconds():
                time.sleep(worked if self.rest is None else self.rest.total_seconds())
                began = time.monotonic()
            if self.is_over:
                break
        self.took = time.monotonic() - first


def _oldest_rows(site: Site) -> Horizons:
    """Give horizons that let go of the `PRUNED_ROWS` oldest events, and of nothing else."""
    query = (
        f"SELECT extract(epoch FROM now() - received_at) FROM events ORDER BY id LIMIT 1 OFFSET {PRUNED_ROWS}"  # noqa: S608  a number of ours
    )
    return Horizons(timedelta(seconds=site.value(query)), FOR_EVER, FOR_EVER, FOR_EVER)


def _look(lab: Lab) -> None:
    """Time `hookonce events list`, start of Python included, /metrics, and the first byte of dashboard pages."""
    site = lab.stack.ours
    with site.connect() as connection:  # what other stages sent is handled, and counted by the sweep
        connection.execute("UPDATE events SET status = 'done', due_at = NULL WHERE due_at IS NOT NULL")
        connection.execute("VACUUM ANALYZE events")
        _count(connection)
    for listing in LISTINGS:
        times = [_listed(site, *listing.split()) for _ in range(3)]
        print(f"  events list {listing}: {median(times):.0f} ms", flush=True)
        lab.note(growth_list_ms=median(times))
    lab.note(growth_list_worst_ms=max(lab.figures["growth_list_ms"]))
    lab.note(growth_start_ms=median(_listed(site, "--help") for _ in range(3)))
    session = Sessions(ADMIN_TOKEN)
    cookie = {"Cookie": f"{COOKIE}={session.cookie(session.begin('bench'))}"}
    with site.serve("wsgi:application", HOOKONCE_ADMIN_TOKEN=ADMIN_TOKEN) as server:
        lab.note(growth_scrape_ms=median(_first_byte(server, "/metrics", {}) for _ in range(5)))
        for page in PAGES:
            times = [_first_byte(server, page, cookie) for _ in range(5)]
            print(f"  {page}: {median(times):.0f} ms", flush=True)
            lab.note(growth_page_ms=median(times))
    lab.note(growth_page_worst_ms=max(lab.figures["growth_page_ms"]))


@contextlib.contextmanager
def _both(lab: Lab) -> Iterator[tuple[Server, Server]]:
    """Serve the full ledger and the empty one, warm: what a server starts with is a cold cache and a checkpoint."""
    full, empty = lab.stack.ours, lab.stack.obvious
    empty.empty()
    with full.serve("wsgi:application") as big, empty.serve("wsgi:application") as small:
        for server in (big, small):
            send(closed(server.port, lab.pick(4, 1)))
        yield big, small


def _rate(lab: Lab, site: Site, server: Server, seconds: float, wal: str) -> float:
    """Send new events; note how much WAL each made."""
    before = site.value("SELECT pg_current_wal_insert_lsn() - '0/0'")
    result = send(closed(server.port, seconds))
    after = site.value("SELECT pg_current_wal_insert_lsn() - '0/0'")
    lab.note(**{wal: (after - before) / max(result["answered"], 1)})
    return float(result["rate"])


def _oldest_day(site: Site) -> Horizons:
    """Give horizons that let go of the oldest day of bodies, and of nothing else."""
    with site.connect() as connection:
        end = upkeep.span(next(iter(upkeep.days(connection)))).end
    return Horizons(FOR_EVER, datetime.now(UTC) - end - timedelta(minutes=1), FOR_EVER, FOR_EVER)


@contextlib.contextmanager
def _pruning(site: Site, horizons: Horizons, after: float, pace: _Turns) -> Iterator[Pruned]:
    """Prune meanwhile; ends when both have."""
    pruning = Pruning(horizons, patience=20, size=pruner.SIZE)

    def prune() -> None:
        time.sleep(after)
        with site.connect() as connection:
            pace.follow(pruning.steps(connection))

    thread = threading.Thread(target=prune)
    thread.start()
    try:
        yield pruning.done
    finally:
        thread.join()


def _listed(site: Site, *options: str) -> float:
    """Give the milliseconds that a listing takes."""
    began = time.perf_counter()
    with site.run("-m", "receiver.cli", "events", "list", "--limit", "50", *options) as process:
        failed = process.wait(60)
    if failed:
        raise BadAnswers(f"`events list {' '.join(options)}` failed with {failed}")
    return (time.perf_counter() - began) * 1000


def _first_byte(server: Server, path: str, headers: dict[str, str]) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    began = time.perf_counter()
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    took = (time.perf_counter() - began) * 1000
    answer.read()
    connection.close()
    if answer.status != http.HTTPStatus.OK:
        print(f"  {path} answers {answer.status}", file=sys.stderr)
        raise BadAnswers(f"{path} answers {answer.status}")
    return took
