"""The physical limits: what PostgreSQL and Redis do here without us."""

import os
import subprocess
import time
import uuid
from datetime import timedelta
from pathlib import Path

import redis

from bench.load.deliveries import SECRET, SIZE
from bench.load.sending import BadAnswers
from bench.run import Run
from bench.servers.stack import Stack
from hookonce.receiver.dev.embedded import binaries
from hookonce.receiver.processes import waits
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow, Remembered, WindowEntry, WindowPlace
from hookonce.receiver.redis.work_queue import WorkQueue

BATCH = 32
PLACE = WindowPlace("7300000000000000000-16384-00000001-0123456789ab", b"k" * 31)
"""As long as the name of a place is."""
_ROWS = """WITH stored AS (
 INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed)
 SELECT 'github', 'github', gen_random_uuid()::text, 'push', sha256(gen_random_uuid()::text::bytea), false
 FROM generate_series(1, {rows}) RETURNING id, received_at, source, type), queued AS (
 INSERT INTO hookonce.queue (event, received_at, source, type, due_at)
 SELECT id, received_at, source, type, now() FROM stored)
 INSERT INTO hookonce.bodies (event, received_at, url, headers, body, is_element)
 SELECT id, received_at, '/hooks/github', '{{}}', repeat('x', {size})::bytea, false FROM stored;"""


def limits(run: Run) -> None:
    """Measure PostgreSQL by pgbench on our own tables, and round trips to Redis by redis-py."""
    for _ in run.rounds(3, 1, run.pick(6, 4)):
        seconds = int(run.pick(2, 1))
        run.note(
            pgbench_single_rate=_pgbench(run.stack, 1, seconds),
            redis_single_rate=_redis(run.stack, 1, seconds / run.pick(2, 5)),
            redis_batch_rate=_redis(run.stack, BATCH, seconds / run.pick(2, 5)),
            window_rate=_window(run, seconds / run.pick(2, 5)),
        )
        if not run.quick:
            run.note(pgbench_batch_rate=_pgbench(run.stack, BATCH, seconds) * BATCH)
        run.stack.ours.empty()
    new, alone = run.figure("new_rate"), run.figure("pgbench_single_rate")
    if new and alone:
        run.note(new_to_pgbench=new / alone)


def _pgbench(stack: Stack, rows: int, seconds: int) -> float:
    """Return commits/s of inserts of so many events with their bodies, by eight clients."""
    script = stack.directory / f"insert-{rows}.sql"
    statement = _ROWS.format(rows=rows, size=SIZE).replace("\n", " ")
    script.write_text(statement + "\n", encoding="ascii")
    program = _client(binaries.postgres(None) / "pgbench")
    command = [program, "-d", stack.postgres.url, "-n", "-M", "prepared", "-c", "8", "-T", str(seconds)]
    output = subprocess.run(  # noqa: S603  from our own wheel
        [*command, "-f", str(script)], check=True, capture_output=True, text=True
    ).stdout
    line = next((line for line in output.splitlines() if line.startswith("tps")), None)
    if line is None:
        raise BadAnswers("pgbench said no rate")
    return float(line.split()[2])


def _client(program: Path) -> Path:
    if not program.is_file():
        raise BadAnswers(f"there is no {program}; the wheel of PostgreSQL should bring it")
    return program


def _redis(stack: Stack, batch: int, seconds: float) -> float:
    """Return SET NX GET per second, so many in a pipeline."""
    count, began = 0, time.perf_counter()
    with redis.Redis.from_url(stack.valkey.url) as client:
        while time.perf_counter() < began + seconds:
            pipe = client.pipeline(transaction=False)
            for number in range(batch):
                pipe.set(f"bench:{count + number}", SECRET, nx=True, get=True, px=60_000)
            pipe.execute()
            count += batch
    return count / (time.perf_counter() - began)


def _window(run: Run, seconds: float) -> float:
    """Return events per second through our own window, in batches by one client; note what memory they take."""
    with connect(run.stack.ours.redis_url) as client:
        window, queue = DedupWindow(client, CircuitBreaker()), WorkQueue(client).queue
        before, count, began = _used(client), 0, time.perf_counter()
        while time.perf_counter() < began + seconds:
            entries = {
                WindowEntry("github", str(uuid.uuid4()), os.urandom(32)): timedelta(hours=1)
                for _ in range(BATCH)
            }
            waits.run(window.claim(PLACE, entries))
            waits.run(window.settle(Remembered(queue, PLACE, entries)))
            count += BATCH
        took = time.perf_counter() - began
        run.note(window_bytes=(_used(client) - before) / count)
    return count / took


def _used(client: redis.Redis) -> int:
    return int(client.info("memory")["used_memory_dataset"])
