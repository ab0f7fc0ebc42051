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

from bench.load.sending import BadAnswers, closed, send
from bench.run import Run
from bench.scenarios import aged_ledger
from bench.scenarios.handling import wal_bytes
from bench.scenarios.receiving import empty, with_cpu
from bench.servers.disk import flush_milliseconds
from bench.servers.process_costs import cpu_seconds
from bench.servers.stack import Server, Site
from hookonce.jobs.maintenance import sweep, tasks
from hookonce.receiver.dashboard.blueprint import COOKIE
from hookonce.receiver.dashboard.sessions import Sessions
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.ledger.maintenance.retention import Pruned, Retention, RetentionPass
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import activity, event_counts

STAGES = ("load", "ingest", "statuses", "look", "prune")
ROUNDS = 8
DISTURBED = 2.0
"""Times as long as in the other half of a pair that a flush to disk may take for the pair to say something."""
TUNED = ("shared_buffers = '1GB'", "max_wal_size = '8GB'")
PRUNED_ROWS = 100_000
WAITING = 100_000
NEWEST = 50
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
    "/admin/issues",
)
ADMIN_TOKEN = "bench admin token of some length"  # noqa: S105  of a server that lives as long as the benchmark
_SIZES = """
SELECT (pg_table_size('hookonce.events') + pg_table_size('hookonce.runs'))::float8 / count(*),
       (pg_indexes_size('hookonce.events') + pg_indexes_size('hookonce.runs'))::float8 / count(*) FROM hookonce.events
"""
_BODY_SIZE = """
SELECT sum(pg_total_relation_size(inhrelid))::float8 / greatest((SELECT count(*) FROM hookonce.bodies), 1)
FROM pg_inherits WHERE inhparent = 'hookonce.bodies'::regclass
"""


def chosen_stages(names: Sequence[str]) -> Sequence[str]:
    """Return the stages of these names, or all. Raises `LookupError` for a wrong one."""
    wrong = [name for name in names if name not in STAGES]
    if wrong:
        raise LookupError(f"growth has no stage '{wrong[0]}'; there are {', '.join(STAGES)}")
    return names or STAGES


def growth(run: Run, rows: int, stages: Sequence[str]) -> None:
    """Load a ledger unless it is there, then measure ingest on it and an empty one, looking into it, and pruning."""
    full = run.stack.ours
    if full.value("SELECT count(*) FROM (SELECT FROM hookonce.events LIMIT 1000) AS some_rows") == 0:
        began = time.monotonic()
        with full.connect() as connection:
            aged_ledger.load(connection, rows, datetime.now(UTC))
            _count(connection)
        run.note(growth_load_seconds=time.monotonic() - began)
    run.note(growth_rows=full.value("SELECT reltuples FROM pg_class WHERE relname = 'events'"))
    _tune(run)
    for name, measure in (
        ("load", _sizes),
        ("ingest", _ingest),
        ("statuses", _statuses),
        ("look", _look),
        ("prune", _prune),
    ):
        if name in stages:
            print(f"{name} …", flush=True)
            measure(run)


def _tune(run: Run) -> None:
    """Set PostgreSQL up as docs/explanation/scaling.md says for a ledger of this size; its own defaults are tiny."""
    with run.stack.ours.connect() as connection:
        for setting in TUNED:
            connection.execute(f"ALTER SYSTEM SET {setting}".encode())
    run.stack.postgres.restart()


def _count(connection: psycopg.Connection) -> None:
    """Do at once what a sweep does over many turns."""
    mark = event_counts.mark(connection)
    for _ in range(mark.newest // event_counts.COUNT_BATCH + 1):
        event_counts.advance(connection, mark)
    event_counts.recount(connection)
    while activity.fill(connection):
        pass


def _sizes(run: Run) -> None:
    with run.stack.ours.connect() as connection:
        tables, indexes = connection.execute(_SIZES).fetchone() or (0, 0)
    run.note(growth_ledger_bytes=tables + indexes, growth_index_bytes=indexes)
    run.note(growth_body_bytes=run.stack.ours.value(_BODY_SIZE))


def _ingest(run: Run) -> None:
    """Send new events to the empty ledger and the full one, and to the full one while it drops a day of bodies.

    Each round begins settled, by a checkpoint. Which ledger comes first changes from round to round, and the disk is
    looked at beside both: a pair in whose halves it was not the same says nothing about the ledger.
    """
    seconds = run.pick(3, 1)
    stock = run.stack.obvious.serve("bench.peers.empty_route:flask_app", is_stock=True)
    with _both(run) as (big, small), stock as flask:
        _fresh_wal(run, big, seconds)
        for number in run.rounds(ROUNDS, 2, seconds * 9):
            empty(run, flask, seconds)
            _settle(run)
            halves = [
                lambda: _rate(run, run.stack.obvious, small, seconds, "growth_empty"),
                lambda: _rate(run, run.stack.ours, big, seconds, "growth"),
            ]
            rates = [half() for half in (halves if number % 2 else reversed(halves))]
            bare, loaded = rates if number % 2 else reversed(rates)
            pace = _Turns(timedelta(0), None)
            with _pruning(run.stack.ours, _oldest_day(run.stack.ours), seconds / 2, pace) as pruned:
                dropping, cpu = with_cpu(big, seconds)
            if len(pruned.days) != 1:
                raise BadAnswers(f"one day of bodies was to be dropped: {pruned}")
            run.note(growth_empty_rate=bare, growth_full_rate=loaded, growth_dropping_rate=dropping)
            run.note(growth_dropping_cpu_us=cpu)
            disturbed = _is_disturbed(run)
            run.note(growth_disturbed_pair=disturbed)
            if not disturbed:
                run.note(growth_ingest=loaded / bare, growth_ingest_dropping=dropping / bare)
            run.stack.obvious.empty()
    pairs = run.figures["growth_disturbed_pair"]
    run.note(growth_disturbed=sum(pairs))
    if all(pairs):
        print("  the disk was busy in every round; nothing can be said about the ledger", flush=True)


def _settle(run: Run) -> None:
    """Have everything written that waits to be: what a checkpoint costs is measured apart."""
    with run.stack.ours.connect() as connection:
        connection.execute("CHECKPOINT")


def _fresh_wal(run: Run, server: Server, seconds: float) -> None:
    """Measure the WAL of the first events after a checkpoint, when each changed page is logged whole."""
    for name, is_random in (("growth_fresh_wal_bytes", False), ("growth_random_wal_bytes", True)) * 3:
        _settle(run)
        before = wal_bytes(run.stack.ours)
        result = send(closed(server.port, seconds, random=is_random))
        run.note(**{name: (wal_bytes(run.stack.ours) - before) / max(result["answered"], 1)})


def _is_disturbed(run: Run) -> bool:
    beside_empty, beside_full = (
        run.figures[f"{name}_disk_ms"][-1] for name in ("growth_empty", "growth_full")
    )
    return max(beside_empty, beside_full) > DISTURBED * min(beside_empty, beside_full)


def _prune(run: Run) -> None:
    """Prune the oldest events while new ones come as fast as they are taken: as the sweep does, then as the command."""
    full, seconds = run.stack.ours, run.pick(5, 2)
    with _both(run) as (big, small):
        for _ in run.rounds(3, 1, seconds * 6):
            bare = send(closed(small.port, seconds))["rate"]
            for name, horizons, pace in (
                (
                    "sweep",
                    _oldest_rows(full),
                    _Turns(tasks.PRUNE_BUDGET, sweep.SWEEP_INTERVAL - tasks.PRUNE_BUDGET),
                ),
                ("command", _oldest_rows(full), _Turns(timedelta(0), None)),
            ):
                with _pruning(full, horizons, seconds / 5, pace) as pruned:
                    loaded = send(closed(big.port, seconds))["rate"]
                    pace.is_over = True
                run.note(**{f"growth_pruned_by_{name}": pruned.events / pace.took})
                run.note(**{f"growth_ingest_beside_{name}": loaded / bare})
            run.stack.obvious.empty()


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


def _oldest_rows(site: Site) -> Retention:
    """Return horizons that let go of the `PRUNED_ROWS` oldest events, and of nothing else."""
    age = "SELECT extract(epoch FROM now() - received_at) FROM hookonce.events ORDER BY id LIMIT 1"
    query = f"{age} OFFSET {PRUNED_ROWS}"
    return Retention(timedelta(seconds=site.value(query)), FOR_EVER, FOR_EVER, FOR_EVER)


def _statuses(run: Run) -> None:
    """Time the newest fifty events of each status, with fifty received ones behind many that wait."""
    with run.stack.ours.connect() as connection:
        aged_ledger.add_open(connection, NEWEST, WAITING)
        for status, took in newest_of_each(connection).items():
            print(f"  newest {NEWEST} {status}: {took:.1f} ms", flush=True)
            run.note(growth_newest_ms=took)
        connection.execute("DELETE FROM hookonce.queue WHERE source = %s", [aged_ledger.OPEN])
        connection.execute("DELETE FROM hookonce.events WHERE source = %s", [aged_ledger.OPEN])
    run.note(growth_newest_worst_ms=max(run.figures["growth_newest_ms"]))


def newest_of_each(connection: psycopg.Connection) -> dict[str, float]:
    """Return the milliseconds that the newest events of each status take; none may be lost."""
    found = {}
    for status in EventStatus:
        if status is not EventStatus.LOST:
            times = [_newest(connection, status) for _ in range(5)]
            found[str(status)] = median(times)
    return found


def _newest(connection: psycopg.Connection, status: EventStatus) -> float:
    began = time.perf_counter()
    list(events.events(connection, Filter(status=status), NEWEST))
    return (time.perf_counter() - began) * 1000


def _look(run: Run) -> None:
    """Time `hookonce events list`, start of Python included, /metrics, and the first byte of dashboard pages."""
    site = run.stack.ours
    with site.connect() as connection:  # what other stages sent is handled, and counted by the sweep
        connection.execute(
            "WITH ended AS (DELETE FROM hookonce.queue WHERE token IS NULL AND waits IS NULL RETURNING event, cycle) "
            "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
            "SELECT event, 'bench', cycle, 'done', 1, now() FROM ended ON CONFLICT DO NOTHING"
        )
        connection.execute("VACUUM ANALYZE hookonce.events, hookonce.queue, hookonce.runs")
        _count(connection)
    for listing in LISTINGS:
        times = [_listed(site, *listing.split()) for _ in range(3)]
        print(f"  events list {listing}: {median(times):.0f} ms", flush=True)
        run.note(growth_list_ms=median(times))
    run.note(growth_list_worst_ms=max(run.figures["growth_list_ms"]))
    run.note(growth_start_ms=median(_listed(site, "--help") for _ in range(3)))
    session = Sessions(ADMIN_TOKEN)
    cookie = {"Cookie": f"{COOKIE}={session.cookie(session.begin('bench'))}"}
    with site.serve("wsgi:application", HOOKONCE_ADMIN_TOKEN=ADMIN_TOKEN) as server:
        run.note(growth_scrape_ms=median(_first_byte(server, "/metrics", {}) for _ in range(5)))
        for page in PAGES:
            times = [_first_byte(server, page, cookie) for _ in range(5)]
            print(f"  {page}: {median(times):.0f} ms", flush=True)
            run.note(growth_page_ms=median(times))
    run.note(growth_page_worst_ms=max(run.figures["growth_page_ms"]))


@contextlib.contextmanager
def _both(run: Run) -> Iterator[tuple[Server, Server]]:
    """Serve the full ledger and the empty one, warm: what a server starts with is a cold cache and a checkpoint."""
    full, empty = run.stack.ours, run.stack.obvious
    empty.empty()
    with full.serve("wsgi:application") as big, empty.serve("wsgi:application") as small:
        for server in (big, small):
            send(closed(server.port, run.pick(4, 1)))
        yield big, small


def _rate(run: Run, site: Site, server: Server, seconds: float, name: str) -> float:
    """Send new events; note how much WAL each made, and how long the disk took for a flush before and after."""
    disk = [flush_milliseconds(run.stack.directory)]
    before = wal_bytes(site)
    cpu = cpu_seconds(server.pid)
    result = send(closed(server.port, seconds))
    cpu = cpu_seconds(server.pid) - cpu
    after = wal_bytes(site)
    disk.append(flush_milliseconds(run.stack.directory))
    beside = "growth_full" if name == "growth" else name
    answered = max(result["answered"], 1)
    run.note(**{f"{name}_wal_bytes": (after - before) / answered, f"{name}_cpu_us": cpu / answered * 1e6})
    run.note(**{f"{beside}_disk_ms": sum(disk) / len(disk)})
    return float(result["rate"])


def _oldest_day(site: Site) -> Retention:
    """Return horizons that let go of the oldest day of bodies, and of nothing else."""
    with site.connect() as connection:
        end = partitions.day_bounds(next(iter(partitions.days(connection)))).end
    return Retention(FOR_EVER, datetime.now(UTC) - end - timedelta(minutes=1), FOR_EVER, FOR_EVER)


@contextlib.contextmanager
def _pruning(site: Site, horizons: Retention, after: float, pace: _Turns) -> Iterator[Pruned]:
    """Prune meanwhile; ends when both have."""
    passes = RetentionPass(horizons, patience=20, size=tasks.PRUNE_STEP)

    def prune() -> None:
        time.sleep(after)
        with site.connect() as connection:
            pace.follow(passes.steps(connection))

    thread = threading.Thread(target=prune)
    thread.start()
    try:
        yield passes.done
    finally:
        thread.join()


def _listed(site: Site, *options: str) -> float:
    """Return the milliseconds that a listing takes."""
    began = time.perf_counter()
    with site.run("-m", "hookonce.receiver.cli", "events", "list", "--limit", "50", *options) as process:
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
