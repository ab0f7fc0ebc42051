"""Servers for a run of tests: one PostgreSQL and one Valkey, an own database and an own window for each test.

The processes of pytest-xdist share them, and each may end before the others. So the servers belong to a process of
their own (this module as a program), which stays until nobody holds the lock any more that each of them holds while it
lives: nothing is left behind, however they end.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psycopg
import redis
from psycopg import sql
from sqlalchemy import Connection

from hookonce.receiver.config.embedded_servers import Servers
from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.config.servers import ledger_schema
from hookonce.receiver.dev.embedded import EmbeddedError, Postgres, Valkey
from hookonce.receiver.ledger.database import engines, migrate

URLS = ("HOOKONCE_TEST_DATABASE_URL", "HOOKONCE_TEST_REDIS_URL")
START_TIMEOUT = timedelta(seconds=90)
WINDOWS = 1024
"""Logical databases of Valkey."""
_POLL = 0.05  # seconds
_MEMORY_DISK = Path("/dev/shm")  # noqa: S108  its folders are ours, or of random names
_ENOUGH = 1024**3  # bytes
_STATE, _USERS, _LOG = "servers.json", "users.lock", "servers.log"


@dataclass(frozen=True)
class Databases:
    """The servers of a run; `template` is the URL of a migrated database, which is copied for each test."""

    servers: Servers
    template: str

    @contextmanager
    def copy(self) -> Iterator[str]:
        """Make a copy of the template, as it is now, for as long as the block lasts; gives its URL."""
        name = f"{_name_of(self.template)}_{uuid.uuid4().hex[:8]}"
        self._run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            _name_of(self.template),
        )
        self._run(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(_quoted(name), _quoted(_name_of(self.template)))
        )
        try:
            yield of_database(self.servers.database_url, name)
        finally:
            self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(_quoted(name)))

    @contextmanager
    def redis(self) -> Iterator[str]:
        """Find an empty logical database, and empty it afterwards; one with anything in it is somebody else's."""
        with redis.Redis.from_url(self.servers.redis_url) as client:
            last = int(client.config_get("databases")["databases"])
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        step = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        for number in range(1 + worker, last, step):
            url = f"{self.servers.redis_url}?db={number}"
            with redis.Redis.from_url(url) as client:
                if not client.dbsize():
                    yield url
                    client.flushdb()
                    return
        raise EmbeddedError(
            "no logical database of the Redis server is empty; empty one, or name another server"
        )

    def _run(self, statement: str | sql.Composed, *values: str) -> None:
        with psycopg.connect(self.servers.database_url, autocommit=True) as connection:
            connection.execute(statement, values or None)


@contextmanager
def databases() -> Iterator[Databases]:
    """Give this process its template on the servers of the run, which are started if they are not.

    Raises: `EmbeddedError` saying what is missing.
    """
    with given_or_started() as servers:
        name = f"hookonce_test_{uuid.uuid4().hex[:12]}"
        url = of_database(servers.database_url, name)
        made = Databases(servers, url)
        made._run(sql.SQL("CREATE DATABASE {}").format(_quoted(name)))  # noqa: SLF001  its own
        try:
            migrate.upgrade(with_schema(url, ledger_schema()))
            yield made
        finally:
            made._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(_quoted(name)))  # noqa: SLF001


@contextmanager
def rolled_back(url: str) -> Iterator[Connection]:
    """Connect as a worker does, in a transaction that is rolled back."""
    engine = engines.engine(url, name="hookonce tests", pool_size=1)
    try:
        with engine.connect() as connection:
            transaction = connection.begin()
            try:
                yield connection
            finally:
                if transaction.is_active:
                    transaction.rollback()
    finally:
        engine.dispose()


@contextmanager
def given_or_started() -> Iterator[Servers]:
    """Give the servers that the environment names, or those of this run. Raises: `EmbeddedError`."""
    given = [os.environ.get(name) for name in URLS]
    if any(given):
        if not all(given):
            raise EmbeddedError(f"{' and '.join(URLS)} belong together; set both, or none")
        yield Servers(str(given[0]), str(given[1]))
        return
    directory = _directory()
    with (directory / _USERS).open("a") as users:
        yield _join(directory, users)


def _directory() -> Path:
    """Return the folder of this run: the same for all processes of pytest-xdist."""
    roomy = os.access(_MEMORY_DISK, os.W_OK) and shutil.disk_usage(_MEMORY_DISK).free > _ENOUGH
    home = _MEMORY_DISK if roomy else Path(tempfile.gettempdir())
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    directory = home / f"hookonce-testing-{run}"
    directory.mkdir(mode=0o711, exist_ok=True)
    directory.chmod(0o711)  # PostgreSQL runs as another user if we are root
    if directory.stat().st_uid != os.geteuid():
        raise EmbeddedError(f"{directory} is another user's; remove it")
    return directory


def _join(directory: Path, users: IO[str]) -> Servers:
    """Hold the lock of the users, and start the servers if nobody has. Raises: `EmbeddedError`."""
    fcntl.flock(users, fcntl.LOCK_SH)  # the servers' own process, if it is about to end, comes first
    with (directory / "start.lock").open("a") as start:
        fcntl.flock(start, fcntl.LOCK_EX)
        state = directory / _STATE
        if not state.exists():
            _start(directory, state)
        return Servers(**json.loads(state.read_text(encoding="utf-8")))


def _start(directory: Path, state: Path) -> None:
    log = directory / _LOG
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603  this module
            [sys.executable, "-m", __name__, str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the tests; it ends when they have
        )
    deadline = time.monotonic() + START_TIMEOUT.total_seconds()
    while not state.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            said = log.read_text(errors="replace").strip().splitlines()
            raise EmbeddedError(
                f"the servers for tests did not start: {said[-1] if said else 'without a word'}"
            )
        time.sleep(_POLL)
    process.returncode = 0  # it outlives us on purpose, which Popen would complain of


def _serve(directory: Path) -> None:
    """Run the servers until nobody holds the lock of the users; then leave nothing behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    started: list[Postgres | Valkey] = []
    with (directory / _USERS).open("a") as users:
        try:
            started.append(Postgres.start(directory, durable=False))
            started.append(Valkey.start(directory, databases=WINDOWS))
            unfinished = directory / f"{_STATE}.new"
            said = {"database_url": started[0].url, "redis_url": started[1].url}
            unfinished.write_text(json.dumps(said), encoding="utf-8")
            unfinished.replace(directory / _STATE)
            fcntl.flock(users, fcntl.LOCK_EX)
        finally:
            (directory / _STATE).unlink(missing_ok=True)
            for each in started:
                each.stop()
    if started:
        link = directory / "postgres"
        if link.is_symlink():
            shutil.rmtree(link.resolve(), ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)


def _name_of(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def of_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def _quoted(name: str) -> sql.Identifier:
    return sql.Identifier(name)


if __name__ == "__main__":
    try:
        _serve(Path(sys.argv[1]))
    except EmbeddedError as error:
        sys.exit(str(error).replace("\n", " "))
