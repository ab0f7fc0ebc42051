"""From accepted to done: full load, backlog, latency at a calm pace, fairness to fast handlers."""

from datetime import timedelta

from bench.deliveries import SIZE, body
from bench.lab import CONNECTIONS, Lab, await_effects, prepare, send
from bench.load import Plan, quantile
from bench.processes import cpu_seconds
from bench.stack import OBVIOUS_WORKER, WORKER, Site

WORKERS = 2
_BETWEEN = "SELECT count(*) / extract(epoch FROM max(at) - min(at)) FROM effects"
_FROM_FIRST = (
    "SELECT count(*) / extract(epoch FROM (SELECT max(at) FROM effects) - min(received_at)) FROM events"
)
_DELAYS = """
SELECT extract(epoch FROM r.finished_at - e.received_at)::float8
FROM runs r JOIN events e ON e.id = r.event WHERE r.handler = %s
"""
_BACKLOG = """
WITH stored AS (
    INSERT INTO events (source, provider, event_id, type, fingerprint, id_is_signed, status, due_at)
    SELECT 'github', 'github', gen_random_uuid()::text, 'push', sha256(n::text::bytea), false, 'received', now()
    FROM generate_series(1, %(count)s) AS n
    RETURNING id, received_at
)
INSERT INTO bodies (event, received_at, url, headers, body, is_element)
SELECT id, received_at, '/hooks/github', %(headers)s::json, %(body)s, false FROM stored
"""
_HEADERS = '{"content-type": "application/json", "x-github-event": "push", "x-github-delivery": "%s"}' % (
    "0" * 36
)


def full_load(lab: Lab) -> None:
    """Send as fast as it is taken, two workers beside it; ours and the obvious way in turn."""
    ours, other = lab.stack.ours, lab.stack.obvious
    count = int(lab.pick(8000, 1500))
    with ours.serve("wsgi:application") as hookonce, other.serve("bench.obvious:app") as obvious:
        for _ in lab.rounds(5, 1, 15):
            rate = _end_to_end(ours, hookonce.port, count, WORKER)
            theirs = _end_to_end(other, obvious.port, int(lab.pick(200, 80)), OBVIOUS_WORKER)
            lab.note(done_rate=rate, obvious_done_rate=theirs, done_to_obvious=rate / theirs)


def backlog(lab: Lab) -> None:
    """Have one worker process take up a backlog, one database write for each event."""
    for _ in lab.rounds(5, 1, lab.pick(20, 4)):
        lab.note(drain_rate=drain(lab, int(lab.pick(20_000, 2000)), 1))


def scale_workers(lab: Lab) -> None:
    """Have 1, 2 and 4 worker processes take up a backlog."""
    for _ in lab.rounds(2, 1, 15):
        for workers in (1, 2, 4):
            rate = drain(lab, int(lab.pick(6000, 2000)), workers)
            lab.note(**{f"drain_rate_{workers}_workers": rate})


def drain(lab: Lab, count: int, workers: int) -> float:
    """Make a backlog, start workers, and give events/s from the first write to the last; note their CPU."""
    site = lab.stack.ours
    site.empty()
    add_backlog(site, count)
    with site.workers(workers) as pids:
        costs = {"cpu_worker_us": pids, "cpu_worker_postgres_us": [lab.stack.postgres.pid]}
        await_effects(site, count // 4)  # whoever starts costs more than work does
        before = {name: sum(map(cpu_seconds, each)) for name, each in costs.items()}
        begun = site.value("SELECT count(*) FROM effects")
        await_effects(site, count)
        for name, each in costs.items():
            lab.note(**{name: (sum(map(cpu_seconds, each)) - before[name]) / max(count - begun, 1) * 1e6})
    rate = site.value(_BETWEEN)
    site.empty()
    return rate


def add_backlog(site: Site, count: int) -> None:
    """Store events that are due, as if they had been received a moment ago."""
    if len(body()) != SIZE:
        raise ValueError("the body is not of the size it should have")
    with site.connect() as connection:
        connection.execute(_BACKLOG, {"count": count, "headers": _HEADERS, "body": body().encode()})
        connection.execute("ANALYZE events")


def latency(lab: Lab) -> None:
    """Measure the time from accept to done at 50 events a second, by the database's clock."""
    ours = lab.stack.ours
    for _ in lab.rounds(5, 1, 8):
        with ours.serve("wsgi:application") as server, ours.workers(WORKERS):
            _warm_up(ours, server.port)
            send(_steady(server.port, rate=50, seconds=lab.pick(5, 3)))
            await_effects(ours, int(50 * lab.pick(5, 3)))
            delays = _delays(ours, "write")
        lab.note(done_p50_ms=quantile(delays, 0.5) * 1000, done_p99_ms=quantile(delays, 0.99) * 1000)
    ours.empty()


def fairness(lab: Lab) -> None:
    """One event a second for a handler that takes a second, fifty for an instant one, two workers."""
    ours, seconds = lab.stack.ours, lab.pick(12, 5)
    with ours.serve("wsgi:application") as server, ours.workers(WORKERS):
        _warm_up(ours, server.port)
        loads = [
            prepare(_steady(server.port, rate=50, seconds=seconds)),
            prepare(_steady(server.port, rate=1, seconds=seconds, type="slow")),
        ]
        for load in loads:
            load.start()
        for load in loads:
            load.result()
        await_effects(ours, int(51 * seconds))
        lab.note(fair_p99_ms=quantile(_delays(ours, "write"), 0.99) * 1000)
    ours.empty()


def _end_to_end(site: Site, port: int, count: int, worker: tuple[str, ...]) -> float:
    """Send so many with workers running; events/s from the first accepted to the last done."""
    site.empty()
    with site.workers(WORKERS, worker):
        _warm_up(site, port)
        send(Plan(port, count=count, connections=CONNECTIONS))
        await_effects(site, count)
    rate = site.value(_FROM_FIRST)
    site.empty()
    return rate


def _warm_up(site: Site, port: int) -> None:
    """Wait until the workers work, then forget what they did; the connections stay."""
    send(Plan(port, count=40, connections=4))
    await_effects(site, 40)
    _settled(site)
    with site.connect() as connection:
        connection.execute("TRUNCATE events, bodies, runs, failures, conflicts, effects")


def _settled(site: Site, seconds: timedelta = timedelta(seconds=10)) -> None:
    with site.connect() as connection:
        connection.execute(f"SET statement_timeout = {int(seconds.total_seconds() * 1000)}".encode())
        while connection.execute("SELECT FROM events WHERE due_at IS NOT NULL LIMIT 1").rowcount:
            connection.execute("SELECT pg_sleep(0.05)")


def _steady(port: int, *, rate: float, seconds: float, type: str = "push") -> Plan:  # noqa: A002
    count = int(rate * seconds)
    return Plan(port, count=count, seconds=seconds, connections=4, rate=rate, type=type)


def _delays(site: Site, handler: str) -> list[float]:
    with site.connect() as connection:
        return [row[0] for row in connection.execute(_DELAYS, [handler])]
