"""Task queues and hookonce at the same job: how jobs are sent to each, and how its worker is started and killed.

The queues run in the environment of the peers (`make bench-peers`), in their database and a logical Redis database
each; hookonce is all of `hookonce worker`, with its sweep. One worker each.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import psycopg
import redis

from bench.load.sending import ROOT, BadAnswers
from bench.peers.jobs import AT_ONCE, IMPATIENT, TABLE
from bench.servers.peers import PYTHON, Peers
from bench.servers.stack import Site, Stack, stop
from hookonce.receiver.processes import spawn

OURS = ("-m", "hookonce.receiver.cli", "worker", "--processes", "1")
_CELERY = ("-m", "celery", "-A", "bench.peers.celery_jobs", "worker", "--loglevel", "warning")
_DRAMATIQ = ("-m", "dramatiq", "bench.peers.dramatiq_jobs", "--processes", "1")
_COUNT = (
    "SELECT count(*), count(DISTINCT job), extract(epoch FROM max(at) - min(at))::float8 FROM job_effects"
)


@dataclass(frozen=True)
class Seen:
    """What the table of effects shows: rows, jobs among them, seconds from the first to the last."""

    rows: int
    jobs: int
    seconds: float


@dataclass(frozen=True)
class JobQueue:
    """One contender: `name` as in the figures; `fill` sends so many jobs; `command` is its worker."""

    name: str
    database_url: str
    python: str
    command: tuple[str, ...]
    environ: dict[str, str]
    fill: Callable[[int], None]
    empty: Callable[[], None]
    log: str

    @contextlib.contextmanager
    def worker(self, *, impatient: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        """Run its worker as long as the block lasts; `impatient` notices soon that another was killed."""
        with open(self.log, "ab") as log:  # noqa: PTH123  one line
            process = subprocess.Popen(  # noqa: S603  our own programs, and what `make bench-peers` has installed
                spawn.command([self.python, *self.command], on_death=signal.SIGKILL),
                cwd=ROOT,
                env=self.environ | ({IMPATIENT: "1"} if impatient else {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            stop(process)

    def seen(self) -> Seen:
        """Look at the effects."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            row = connection.execute(_COUNT).fetchone()
        return Seen(row[0], row[1], row[2] or 0.0) if row else Seen(0, 0, 0.0)

    def wait_for(self, jobs: int, silence: float = 30) -> Seen:
        """Wait until so many jobs have an effect, or none has had for so many seconds; give what is seen then."""
        last, since = -1, time.monotonic()
        while True:
            seen = self.seen()
            if seen.jobs >= jobs or time.monotonic() > since + silence:
                return seen
            if seen.rows != last:
                last, since = seen.rows, time.monotonic()
            time.sleep(0.05)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker with all its processes, as a machine that loses power does."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def contenders(stack: Stack, fill_ours: Callable[[str, int], None]) -> list[JobQueue]:
    """Return all, hookonce first, with their tables made; `fill_ours` is given the type of event and a number."""
    peers = Peers(stack)
    for url in (stack.ours.database_url, peers.database_url):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(TABLE)
    each, together = partial(fill_ours, "job"), partial(fill_ours, "jobs")
    ours = [
        _ours(stack.ours, "one", (), each, stack),
        _ours(stack.ours, "eight", ("--concurrency", str(AT_ONCE)), each, stack),
        _ours(stack.ours, "batch", (), together, stack),
    ]
    commands = {
        "procrastinate": ("-m", "bench.peers.procrastinate_jobs", "work"),
        "pgqueuer": ("-m", "bench.peers.pgqueuer_jobs", "work"),
        "celery": (*_CELERY, "--pool", "threads", "--concurrency", str(AT_ONCE)),
        "dramatiq": (*_DRAMATIQ, "--threads", str(AT_ONCE)),
    }
    return ours + [
        _peer(stack, peers.database_url, name, command, number)
        for number, (name, command) in enumerate(commands.items(), start=2)
    ]


def _ours(
    site: Site, name: str, options: tuple[str, ...], fill: Callable[[int], None], stack: Stack
) -> JobQueue:
    def empty() -> None:
        site.empty()
        with site.connect() as connection:
            connection.execute("TRUNCATE job_effects")

    return JobQueue(
        name,
        site.database_url,
        sys.executable,
        (*OURS, *options),
        site.environ,
        fill,
        empty,
        str(stack.directory / "processes.log"),
    )


def _peer(stack: Stack, database_url: str, name: str, command: tuple[str, ...], number: int) -> JobQueue:
    redis_url = f"{stack.valkey.url}?db={number}"
    environ = os.environ | {"PEER_POSTGRES_URL": database_url, "PEER_REDIS_URL": redis_url}
    log = str(stack.directory / "processes.log")

    def fill(count: int) -> None:
        with open(log, "ab") as output:  # noqa: PTH123  one line
            filled = subprocess.run(  # noqa: S603  our own program
                [PYTHON, "-m", f"bench.peers.{name}_jobs", "fill", str(count)],
                cwd=ROOT,
                env=environ,
                stdout=output,
                stderr=output,
                check=False,
            )
        if filled.returncode:
            raise BadAnswers(f"no jobs could be sent to {name}; see processes.log")
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("ANALYZE")

    def empty() -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            made = connection.execute(
                "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables WHERE schemaname = 'public' "
                "AND (tablename ~ '^(procrastinate_|pgqueuer)' AND tablename !~ 'migrat' OR tablename = 'job_effects')"
            ).fetchone()
            connection.execute(f"TRUNCATE {made[0] if made else 'job_effects'} CASCADE".encode())
        with redis.Redis.from_url(redis_url) as client:
            client.flushdb()

    return JobQueue(name, database_url, str(PYTHON), command, dict(environ), fill, empty, log)
