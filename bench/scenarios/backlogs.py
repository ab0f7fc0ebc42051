"""What a backlog costs the others: accept to done of a handler beside one of each kind, and a burst beside a snapshot.

A backlog is put in whole, at once, before the events that are timed: what a claim has to pass is there.
"""

import contextlib
import time
from collections.abc import Iterator

from bench.load.generator import quantile
from bench.load.sending import send
from bench.run import Run
from bench.scenarios.handling import add_backlog, delays, steady, warm_up
from bench.scenarios.slots import of
from bench.servers.process_costs import cpu_seconds
from bench.servers.stack import EMPTY_OF_EVENTS, Site

SLOTS = 8
WORKERS = 2
_PUT = """
WITH stored AS (
    INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed)
    SELECT 'github', 'github', gen_random_uuid()::text, %(type)s, sha256(n::text::bytea), false
    FROM generate_series(1, %(count)s) AS n
    RETURNING id, received_at, source, type
), queued AS (
    INSERT INTO hookonce.queue (event, received_at, source, type, handler, attempts, due_at)
    SELECT id, received_at, source, type, CASE %(status)s WHEN 'waiting' THEN type END,
           (%(status)s = 'waiting')::int, now() + %(due)s::interval FROM stored
)
INSERT INTO hookonce.bodies (event, received_at, url, headers, body, is_element)
SELECT id, received_at, '/hooks/github', '{"content-type": "application/json"}', '{}', false FROM stored
"""
_WRITES = "SELECT count(*) FROM hookonce.runs WHERE handler = 'write' AND status = 'done'"
_DEAD = "SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables WHERE schemaname = 'hookonce'"


def beside_backlogs(run: Run) -> None:
    """Time 50 events a second in quiet, and beside each kind of backlog; eight slots in each of two processes."""
    million, hundred_thousand = int(run.pick(1_000_000, 20_000)), int(run.pick(100_000, 5000))
    kinds = {
        "put_off": ("slow", "waiting", "1 hour", million),
        "slow": ("slow", "received", "0 s", million),
        "rated": ("rated", "received", "0 s", hundred_thousand),
    }
    if run.quick:
        del kinds["slow"], kinds["rated"]
    ours = run.stack.ours
    for _ in run.rounds(3, 1, run.pick(120, 20)):
        with ours.serve("wsgi:application") as server, ours.workers(WORKERS, of(SLOTS)):
            quiet = _timed(run, ours, server.port)
            for name, (type_, status, due, count) in kinds.items():
                if not run.has_time(run.pick(count / 25_000 + 12, 3)):
                    print(f"  out of time before {name}", flush=True)
                    continue
                with ours.connect() as connection:
                    values = {"type": type_, "status": status, "due": due, "count": count}
                    connection.execute(_PUT, values)
                    connection.execute("ANALYZE hookonce.events, hookonce.queue")
                p50, p99 = _timed(run, ours, server.port, is_fresh=False)
                run.note(**{f"beside_{name}_p50": p50 / quiet[0], f"beside_{name}_p99": p99 / quiet[1]})
            run.note(beside_quiet_p50_ms=quiet[0] * 1000, beside_quiet_p99_ms=quiet[1] * 1000)
    ours.empty()


def _timed(run: Run, site: Site, port: int, *, is_fresh: bool = True) -> tuple[float, float]:
    """Return p50 and p99 of accept to done at 50 events/s, and forget what is stored; `is_fresh`: nothing is."""
    seconds = run.pick(8, 1)
    if is_fresh:
        warm_up(site, port)
    before = site.value(_WRITES)
    send(steady(port, rate=50, seconds=seconds))
    deadline = time.monotonic() + 60
    while site.value(_WRITES) < before + int(50 * seconds) and time.monotonic() < deadline:
        time.sleep(0.1)
    found = delays(site, "write")
    _forget(site, run.pick(2, 0.5))
    return quantile(found, 0.5), quantile(found, 0.99)


def _forget(site: Site, seconds: float) -> None:
    """Forget all that was stored, while the workers go on."""
    with site.connect() as connection:
        connection.execute("DELETE FROM hookonce.queue WHERE token IS NULL")
        time.sleep(seconds)  # what is under way ends, a slow one among it
        connection.execute(EMPTY_OF_EVENTS)


def beside_snapshot(run: Run) -> None:
    """Have one process take up a burst in quiet, and after a minute at 500/s under a held snapshot."""
    ours = run.stack.ours
    count, seconds = int(run.pick(10_000, 300)), run.pick(60, 1)
    for _ in run.rounds(2, 1, run.pick(110, 25)):
        ours.empty()
        with ours.serve("wsgi:application") as server, ours.workers(1, of(SLOTS)) as (worker,):
            warm_up(ours, server.port)
            before = cpu_seconds(worker)
            quiet = _burst(ours, count)
            run.note(cpu_snapshot_quiet_us=(cpu_seconds(worker) - before) / count * 1e6)
            with _snapshot(ours):
                send(steady(server.port, rate=500, seconds=seconds))
                held = _burst(ours, count)
                dead = ours.value(_DEAD)
        run.note(snapshot_to_quiet=held / quiet, snapshot_quiet_rate=quiet, snapshot_dead_tuples=dead)
    ours.empty()


def _burst(site: Site, count: int) -> float:
    """Return the events of a burst that were handled per second."""
    before = site.value("SELECT count(*) FROM effects")
    add_backlog(site, count)
    put = time.monotonic()
    site.await_effects(int(before) + count)
    return count / (time.monotonic() - put)


@contextlib.contextmanager
def _snapshot(site: Site) -> Iterator[None]:
    """Hold a snapshot open, as a long report does."""
    with site.connect() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM hookonce.event_states")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
