"""Real servers for the tests: one PostgreSQL and one Valkey per run, an own database of each per test."""

import contextlib
import fcntl
import itertools
import os
import select
import shutil
import signal
import tempfile
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
from hypothesis import settings
from psycopg import sql

from receiver.embedded import EmbeddedError, Postgres, Servers, Valkey

REDIS_DATABASES = 1024
MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # mkdtemp's names are random
ENOUGH = 1024**3  # bytes: 46 MB a server, 9 MB a database

settings.register_profile("bounded", max_examples=100, deadline=None, derandomize=True, database=None)
settings.register_profile("fuzz", max_examples=5000, deadline=None, print_blob=True)
settings.load_profile("bounded")  # `--hypothesis-profile=fuzz` goes on for long, elsewhere each time


def pytest_configure():
    """Hear the signals that a shell ignores in the background, and nohup everywhere; so does what is started.

    And let that be compiled once, not at each of some hundred starts.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    marker = item.get_closest_marker("alone")
    with turn(is_alone=marker is not None and marker.kwargs.get("really", True)):
        return (yield)


@contextlib.contextmanager
def turn(*, is_alone):
    """Wait until a test may run: beside those of other processes, or when none of them runs and none begins."""
    gate, floor = (os.open(path, os.O_RDONLY) for path in (__file__, Path(__file__).parent))
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)  # whoever waits for the floor lets nobody pass
        fcntl.flock(floor, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
    finally:
        fcntl.flock(floor, fcntl.LOCK_UN)  # a child that was forked still has it open
        os.close(floor)
        os.close(gate)


@pytest.fixture(scope="session")
def disk():
    """Where to put servers: in memory if there is room, for there a database is cloned 20 times as fast."""
    roomy = os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > ENOUGH
    return MEMORY_DISK if roomy else Path(tempfile.gettempdir())


@pytest.fixture(scope="session")
def servers(disk):
    """The servers of this run: embedded, or those that both HOOKONCE_TEST_*_URL name."""
    urls = [os.environ.get(f"HOOKONCE_TEST_{each}_URL") for each in ("DATABASE", "REDIS")]
    if all(urls):
        yield Servers(*urls)
        return
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)  # PostgreSQL runs as another user if we are root
    started = []
    try:
        started.append(Postgres.start(directory, durable=False))
        started.append(Valkey.start(directory, databases=REDIS_DATABASES))
        yield Servers(*(each.url for each in started))
    except EmbeddedError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    finally:
        for each in started:
            each.stop()
        shutil.rmtree(directory)


@pytest.fixture
def data_directory(disk):
    """An empty directory for servers of the test's own.

    Unlike `tmp_path`, every user can enter it; so if we are root, PostgreSQL's data need not go to /var/lib.
    """
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    yield directory
    for link in directory.rglob("postgres"):
        if link.is_symlink():
            shutil.rmtree(link.resolve(), ignore_errors=True)
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def template(servers):
    """The name of a migrated database that nobody connects to, so that it can be cloned."""
    from receiver import migrate  # noqa: PLC0415  # tests without a database do not need it

    name = f"hookonce_test_{uuid.uuid4().hex[:12]}"
    create(servers, name)
    migrate.upgrade(database(servers, name))
    yield name
    drop(servers, name)


@pytest.fixture(scope="session")
def numbers():
    return itertools.count(1)


@pytest.fixture(scope="session")
def fresh_database(servers, template, numbers):
    """A context manager: the libpq URL of a fresh, migrated database, dropped whoever is still connected."""

    @contextlib.contextmanager
    def fresh():
        name = f"{template}_{next(numbers)}"
        create(servers, name, template)
        yield database(servers, name)
        drop(servers, name)

    return fresh


@pytest.fixture
def database_url(fresh_database):
    """The libpq URL of a fresh, migrated database, dropped after the test whoever is still connected."""
    with fresh_database() as url:
        yield url


@pytest.fixture(scope="session")
def redis_numbers(servers):
    """The numbers of the logical databases that this worker of pytest-xdist may use."""
    with redis.Redis.from_url(servers.redis_url) as client:
        last = int(client.config_get("databases")["databases"])
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    step = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return itertools.cycle(range(1 + worker, last, step))


@pytest.fixture(scope="session")
def fresh_redis(servers, redis_numbers):
    """A context manager: the URL of an empty logical database of Valkey, emptied afterwards."""

    @contextlib.contextmanager
    def fresh():
        for number in itertools.islice(redis_numbers, REDIS_DATABASES):
            url = f"{servers.redis_url}?db={number}"
            with redis.Redis.from_url(url) as client:
                if client.dbsize():
                    continue  # someone else's: never touch it
                yield url
                client.flushdb()
                return
        pytest.fail("no logical database of the Redis server is empty")

    return fresh


@pytest.fixture
def redis_url(fresh_redis):
    """The URL of an empty logical database of Valkey, emptied after the test."""
    with fresh_redis() as url:
        yield url


@pytest.fixture
def await_end():
    """A function that waits until processes, whoever started them, have ended."""

    def wait(*pids, seconds=10):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                try:
                    ended, _, _ = select.select([handle], [], [], seconds)
                finally:
                    os.close(handle)
                assert ended, f"process {pid} still runs"

    return wait


def database(servers, name):
    return urlsplit(servers.database_url)._replace(path=f"/{name}").geturl()


def create(servers, name, template="template1"):
    run(servers, "CREATE DATABASE {} TEMPLATE {}", name, template)


def drop(servers, name):
    run(servers, "DROP DATABASE {} WITH (FORCE)", name)


def run(servers, statement, *names):
    with psycopg.connect(servers.database_url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
