"""From accepted to done: full load, backlog, latency at a calm pace, fairness to fast handlers."""

from datetime import timedelta

from bench.load.deliveries import SIZE, body
from bench.load.generator import Plan, quantile
from bench.load.sending import CONNECTIONS, prepare, send
from bench.run import Run
from bench.servers.process_costs import cpu_seconds
from bench.servers.stack import EMPTY_OF_EVENTS, OBVIOUS_WORKER, WORKER, Server, Site

WORKERS = 2
_BETWEEN = "SELECT count(*) / extract(epoch FROM max(at) - min(at)) FROM effects"
_FROM_FIRST = (
    "SELECT count(*) / extract(epoch FROM (SELECT max(at) FROM effects) - "
    "min(received_at)) FROM hookonce.events"
)
_DELAYS = """
SELECT extract(epoch FROM r.finished_at - e.received_at)::float8
FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event WHERE r.handler = %s
"""
_BACKLOG = """
WITH stored AS (
    INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed)
    SELECT 'github', 'github', gen_random_uuid()::text, %(type)s, sha256(n::text::bytea), false
    FROM generate_series(1, %(count)s) AS n
    RETURNING id, received_at, source, type
), queued AS (
    INSERT INTO hookonce.queue (event, received_at, source, type, due_at)
    SELECT id, received_at, source, type, now() FROM stored
)
INSERT INTO hookonce.bodies (event, received_at, url, headers, body, is_element)
SELECT id, received_at, '/hooks/github', %(headers)s::json, %(body)s, false FROM stored
"""
_HEADERS = '{"content-type": "application/json", "x-github-event": "push", "x-github-delivery": "%s"}' % (
    "0" * 36
)


def full_load(run: Run) -> None:
    """Send as fast as it is taken, two workers beside it; ours and the obvious way in turn, in a quick run ours."""
    ours, other = run.stack.ours, run.stack.obvious
    count = int(run.pick(8000, 200))
    if run.quick:
        with ours.serve("wsgi:application") as hookonce:
            run.note(done_rate=_end_to_end(run, ours, hookonce, count, WORKER, "cpu_done_us"))
        return
    with (
        ours.serve("wsgi:application") as hookonce,
        other.serve("bench.peers.obvious_way:app", is_stock=True) as obvious,
    ):
        for _ in run.rounds(5, 1, 15):
            rate = _end_to_end(run, ours, hookonce, count, WORKER, "cpu_done_us")
            theirs = _end_to_end(run, other, obvious, 200, OBVIOUS_WORKER, "cpu_obvious_done_us")
            run.note(done_rate=rate, obvious_done_rate=theirs, done_to_obvious=rate / theirs)


def backlog(run: Run) -> None:
    """Have one worker process take up a backlog, one database write for each event."""
    for _ in run.rounds(5, 1, run.pick(20, 4)):
        rate, _ = drain(run, int(run.pick(20_000, 400)), 1)
        run.note(drain_rate=rate)


def scale_workers(run: Run) -> None:
    """Have 1, 2 and 4 worker processes take up a backlog."""
    for _ in run.rounds(2, 1, 15):
        for workers in (2,) if run.quick else (1, 2, 4):
            names = f"cpu_{workers}_workers_us", f"cpu_{workers}_workers_postgres_us"
            rate, _ = drain(run, int(run.pick(6000, 400)), workers, names=names)
            run.note(**{f"drain_rate_{workers}_workers": rate})


def in_batches(run: Run) -> None:
    """Have one worker process take up a backlog by a handler of batches, one upsert of 500 each."""
    names = "batch_cpu_worker_us", "batch_cpu_worker_postgres_us"
    for _ in run.rounds(5, 1, run.pick(15, 4)):
        rate, _ = drain(run, int(run.pick(60_000, 4000)), 1, names=names, type="many")
        run.note(batch_drain_rate=rate)


def drain(  # noqa: PLR0913  the last three by keyword
    run: Run,
    count: int,
    workers: int,
    *,
    command: tuple[str, ...] = WORKER,
    names: tuple[str, str] = ("cpu_worker_us", "cpu_worker_postgres_us"),
    type: str = "push",  # noqa: A002  the field's word
) -> tuple[float, float]:
    """Make a backlog, start workers, and give events/s from the first write to the last, and the CPU of an event (µs).

    Notes that by these names: of the workers, and of PostgreSQL. The WAL of an event is noted with PostgreSQL's CPU.
    """
    site = run.stack.ours
    site.empty()
    add_backlog(site, count, type)
    with site.workers(workers, command) as pids:
        costs = dict(zip(names, (pids, [run.stack.postgres.pid]), strict=True))
        site.await_effects(count // 4)  # whoever starts costs more than work does
        before = {name: sum(map(cpu_seconds, each)) for name, each in costs.items()}
        wal, begun = wal_bytes(site), site.value("SELECT count(*) FROM effects")
        site.await_effects(count)
        taken = {
            name: (sum(map(cpu_seconds, each)) - before[name]) / max(count - begun, 1) * 1e6
            for name, each in costs.items()
        }
        wal = (wal_bytes(site) - wal) / max(count - begun, 1)
        run.note(**taken, **{names[1].replace("_us", "_wal_bytes").removeprefix("cpu_"): wal})
    rate = site.value(_BETWEEN)
    site.empty()
    return rate, sum(taken.values())


def wal_bytes(site: Site) -> float:
    """Return how much WAL the server has written so far, by its position in it."""
    return site.value("SELECT pg_current_wal_insert_lsn() - '0/0'")


def add_backlog(site: Site, count: int, type: str = "push") -> None:  # noqa: A002
    """Store events that are due, as if they had been received a moment ago."""
    if len(body()) != SIZE:
        raise ValueError("the body is not of the size it should have")
    with site.connect() as connection:
        connection.execute(
            _BACKLOG, {"count": count, "type": type, "headers": _HEADERS, "body": body().encode()}
        )
        connection.execute("ANALYZE hookonce.events, hookonce.queue")


def latency(run: Run) -> None:
    """Measure the time from accept to done at 50 events a second, by the database's clock."""
    ours = run.stack.ours
    for _ in run.rounds(5, 1, 8):
        with ours.serve("wsgi:application") as server, ours.workers(WORKERS):
            warm_up(ours, server.port)
            send(steady(server.port, rate=50, seconds=run.pick(5, 1)))
            ours.await_effects(int(50 * run.pick(5, 1)))
            found = delays(ours, "write")
        run.note(done_p50_ms=quantile(found, 0.5) * 1000, done_p99_ms=quantile(found, 0.99) * 1000)
    ours.empty()


def fairness(run: Run) -> None:
    """One event a second for a handler that takes a second, fifty for an instant one, two workers."""
    ours, seconds = run.stack.ours, run.pick(12, 1)
    with ours.serve("wsgi:application") as server, ours.workers(WORKERS):
        warm_up(ours, server.port)
        loads = [
            prepare(steady(server.port, rate=50, seconds=seconds)),
            prepare(steady(server.port, rate=1, seconds=seconds, type="slow")),
        ]
        for load in loads:
            load.start()
        for load in loads:
            load.result()
        ours.await_effects(int(51 * seconds))
        run.note(fair_p99_ms=quantile(delays(ours, "write"), 0.99) * 1000)
    ours.empty()


def _end_to_end(  # noqa: PLR0913, PLR0917
    run: Run, site: Site, server: Server, count: int, worker: tuple[str, ...], cpu: str
) -> float:
    """Send so many with workers running; events/s from the first accepted to the last done.

    Notes by the name `cpu` what each costs receivers and workers.
    """
    site.empty()
    with site.workers(WORKERS, worker) as workers:
        warm_up(site, server.port)
        before = sum(map(cpu_seconds, (server.pid, *workers)))
        send(Plan(server.port, count=count, connections=CONNECTIONS))
        site.await_effects(count)
        run.note(**{cpu: (sum(map(cpu_seconds, (server.pid, *workers))) - before) / count * 1e6})
    rate = site.value(_FROM_FIRST)
    site.empty()
    return rate


def warm_up(site: Site, port: int) -> None:
    """Wait until the workers work, then forget what they did; the connections stay."""
    send(Plan(port, count=40, connections=4))
    site.await_effects(40)
    _settled(site)
    with site.connect() as connection:
        connection.execute(EMPTY_OF_EVENTS)


def _settled(site: Site, seconds: timedelta = timedelta(seconds=10)) -> None:
    with site.connect() as connection:
        connection.execute(f"SET statement_timeout = {int(seconds.total_seconds() * 1000)}".encode())
        while connection.execute("SELECT FROM hookonce.queue WHERE waits IS NULL LIMIT 1").rowcount:
            connection.execute("SELECT pg_sleep(0.05)")


def steady(port: int, *, rate: float, seconds: float, type: str = "push") -> Plan:  # noqa: A002
    """Return the plan of events that come at a steady pace."""
    count = int(rate * seconds)
    return Plan(port, count=count, seconds=seconds, connections=4, rate=rate, type=type)


def delays(site: Site, handler: str) -> list[float]:
    """Return the seconds from accept to done of each run of a handler."""
    with site.connect() as connection:
        return [row[0] for row in connection.execute(_DELAYS, [handler])]
