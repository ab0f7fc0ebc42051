"""The servers of a benchmark: PostgreSQL (fsync on) and Valkey from the wheels, gunicorn, RQ workers.

All in one temporary directory, on unix sockets and loopback; all stopped when the block ends, however it
ends, and killed by the kernel if this process is killed.
"""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psycopg
import redis

from bench.load.deliveries import SECRET
from bench.load.sending import ROOT, BadAnswers
from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.ledger.database import migrate
from hookonce.receiver.processes import spawn

STARTS_WITHIN = 30.0  # seconds
ENDS_WITHIN = 10.0
LOG_TAIL = 20  # lines shown when a run fails
GUNICORN = ("-m", "gunicorn", "-c", "python:hookonce.receiver.web.gunicorn_conf")
STOCK_GUNICORN = ("-m", "gunicorn", "--worker-class", "gevent", "--no-control-socket")
"""What users have: gunicorn's own gevent worker, as it comes (but for a socket in the home directory)."""
WORKER = ("-m", "hookonce.receiver.cli", "worker", "--alone")
OBVIOUS_WORKER = ("-m", "bench.peers.obvious_way")
_EFFECTS = """
CREATE TABLE IF NOT EXISTS effects (event bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())
"""
EMPTY_OF_EVENTS = (
    "TRUNCATE hookonce.events, hookonce.bodies, hookonce.queue, hookonce.claims, hookonce.runs, "
    "hookonce.steps, hookonce.failures, hookonce.conflicts, hookonce.redeliveries, "
    "hookonce.repeat_marks, hookonce.limits, hookonce.limit_places, hookonce.waits, hookonce.arrivals, "
    "hookonce.missing_events, effects"
)
_EMPTY = (
    f"{EMPTY_OF_EVENTS}, hookonce.rejected, hookonce.rejections, hookonce.event_counts, hookonce.lost_slices"
)

_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
"""Would make every program compile what users have compiled once."""


class Site:
    """One database, one logical Redis database, and what runs on them."""

    def __init__(self, database_url: str, redis_url: str, log: IO[bytes]) -> None:
        self.database_url = database_url
        self.redis_url = redis_url
        self._log = log
        environ = {name: value for name, value in os.environ.items() if name != _UNCOMPILED}
        self.environ = environ | {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            **{f"HOOKONCE_SECRET__{sender}": SECRET for sender in ("GITHUB", "STRIPE", "XERO")},
            "HOOKONCE_HANDLERS": "bench.servers.handlers",
            "HOOKONCE_CONFIG": "",
        }

    @contextlib.contextmanager
    def run(self, *arguments: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a Python program on this site as long as the block lasts."""
        process = subprocess.Popen(  # noqa: S603  our own programs
            spawn.command([sys.executable, *arguments], on_death=signal.SIGKILL),
            cwd=ROOT,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for us; we stop it
        )
        try:
            yield process
        finally:
            stop(process)

    @contextlib.contextmanager
    def serve(
        self, application: str, workers: int = 2, *, is_stock: bool = False, **environ: str
    ) -> Iterator["Server"]:
        """Run gunicorn, with hookonce's settings or as it comes, as long as the block lasts; starts when it answers."""
        port = free_port()
        bound = {"HOOKONCE_BIND": f"127.0.0.1:{port}", "WEB_CONCURRENCY": str(workers)}
        stock = (*STOCK_GUNICORN, "--bind", f"127.0.0.1:{port}")
        with self.run(*(stock if is_stock else GUNICORN), application, **environ, **bound) as process:
            await_answer(port, process)
            yield Server(port, process.pid)

    @contextlib.contextmanager
    def workers(self, count: int, command: tuple[str, ...] = WORKER) -> Iterator[list[int]]:
        """Run RQ workers as long as the block lasts; gives their process ids."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.run(*command)).pid for _ in range(count)]

    def connect(self) -> psycopg.Connection:
        """Open a connection to the site's database."""
        return psycopg.connect(self.database_url, autocommit=True)

    def empty(self) -> None:
        """Forget everything that came."""
        with self.connect() as connection:
            connection.execute(_EMPTY)
        with redis.Redis.from_url(self.redis_url) as client:
            client.flushdb()

    def value(self, query: str) -> float:
        """Ask the database for one number."""
        with self.connect() as connection:
            row = connection.execute(query.encode()).fetchone()
        return float(row[0] or 0) if row else 0.0

    def await_effects(self, count: int, seconds: float = 90) -> None:
        """Wait until handlers have run for so many events. Raises `BadAnswers` when they do not get there."""
        deadline = time.monotonic() + seconds
        with self.connect() as connection:
            while True:
                row = connection.execute("SELECT count(*) FROM effects").fetchone()
                if row and row[0] >= count:
                    return
                if time.monotonic() > deadline:
                    raise BadAnswers(
                        f"{row[0] if row else 0} of {count} events handled after {seconds:.0f} s"
                    )
                time.sleep(0.1)


@dataclass(frozen=True)
class Server:
    """A gunicorn: its port, and the process id of its master."""

    port: int
    pid: int


@dataclass(frozen=True)
class Stack:
    """Both servers, the site of hookonce and that of the obvious way."""

    postgres: Postgres
    valkey: Valkey
    ours: Site
    obvious: Site
    directory: Path


@contextlib.contextmanager
def running(kept: Path | None = None, *, programs: Path | None = None) -> Iterator[Stack]:
    """Run both servers, with a migrated database for each site, as long as the block lasts.

    What is in the directory `kept` stays, and is there the next time. `programs` are PostgreSQL's, else the wheel's.
    """
    directory = kept or Path(tempfile.mkdtemp(prefix="hookonce-bench-"))
    directory.mkdir(exist_ok=True)
    directory.chmod(0o711)  # PostgreSQL runs as another user if we are root
    with ExitStack() as stack:
        if kept is None:
            stack.callback(_remove, directory)
        postgres = Postgres.start(directory, durable=True, programs=programs)
        stack.callback(postgres.stop)
        valkey = Valkey.start(directory)
        stack.callback(valkey.stop)
        log = stack.enter_context((directory / "processes.log").open("ab"))
        migrate.upgrade(postgres.url)
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(_EFFECTS)
        with psycopg.connect(database(postgres.url, "postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = 'obvious'").rowcount:
                connection.execute("CREATE DATABASE obvious TEMPLATE hookonce")
        ours = Site(postgres.url, valkey.url, log)
        obvious = Site(database(postgres.url, "obvious"), f"{valkey.url}?db=1", log)
        try:
            yield Stack(postgres, valkey, ours, obvious, directory)
        except Exception:
            print("\n".join(tail(directory)), file=sys.stderr)
            raise


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and whatever it started in its session."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_WITHIN)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(directory: Path) -> list[str]:
    """Return the last lines that the processes logged."""
    log = directory / "processes.log"
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL:]


def _remove(directory: Path) -> None:
    for link in directory.rglob("postgres"):
        if link.is_symlink():  # the data had to go where PostgreSQL's user can reach it
            shutil.rmtree(link.resolve(), ignore_errors=True)
    shutil.rmtree(directory, ignore_errors=True)


def database(url: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def await_answer(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers anything at all. Raises: RuntimeError when it does not."""
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/livez")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        else:
            return
        finally:
            connection.close()
    raise RuntimeError(f"the server on port {port} does not answer; see processes.log")
