"""Real servers for the tests: one PostgreSQL and one Valkey per run, an own database of each per test."""

import contextlib
import gc
import itertools
import logging
import os
import select
import shutil
import signal
import sys
import tempfile
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
from hypothesis import settings
from psycopg import sql

from hookonce.receiver.config.embedded_servers import Servers
from hookonce.receiver.dev.embedded import EmbeddedError, Postgres, Valkey
from tests.support import lanes
from tests.support.second_try import SecondTry
from tests.support.skips import Skips

TESTS = Path(__file__).parent
REDIS_DATABASES = 1024
WORKERS_PER_CORE = 2
MOST_WORKERS = 8
MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # mkdtemp's names are random
ENOUGH = 1024**3  # bytes: 46 MB a server, 9 MB a database

settings.register_profile("bounded", max_examples=100, deadline=None, derandomize=True, database=None)
settings.register_profile("fuzz", max_examples=5000, deadline=None, print_blob=True)
settings.load_profile("bounded")  # `--hypothesis-profile=fuzz` goes on for long, elsewhere each time


def pytest_addoption(parser):
    parser.addoption(
        "--lane", choices=lanes.ALL, action="append", help="run these tests only (tests/support/lanes.py)"
    )
    parser.addoption(
        "--shuffle", metavar="SEED", help="run the files, and the tests of each file, in another order"
    )


def pytest_configure(config):
    """Hear the signals that a shell ignores in the background, and nohup everywhere; so does what is started.

    And let that be compiled once, not at each of some hundred starts.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    config.pluginmanager.register(SecondTry())
    config.pluginmanager.register(Skips())


def pytest_ignore_collect(collection_path, config):
    """Leave out files of other lanes; what is long runs only if it is named, or its lane is."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    asked = lanes_of(collection_path, config)
    lane = lanes.lane_of(collection_path.relative_to(TESTS).as_posix())
    return (lane not in asked and lanes.LONG not in asked) or None  # any file may have some that are long


def lanes_of(path, config):
    """The lanes that run of a file: those that are asked for, all if the file or its folder of long tests is named."""
    if asked := config.getoption("lane"):
        return asked
    named = {Path(each.split("::", 1)[0]).resolve() for each in config.args} - {TESTS, TESTS.parent}
    is_named = any(
        path == each
        or (each in path.parents and lanes.lane_of(each.relative_to(TESTS).as_posix()) == lanes.LONG)
        for each in named
    )
    return lanes.ALL if is_named else lanes.USUAL


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the lanes that are asked for; begin with what takes long, end with what runs alone."""
    left_out = [item for item in items if not lanes.is_asked(item, lanes_of(item.path, config))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    if seed := config.getoption("shuffle"):
        lanes.shuffle(items, seed)
    items.sort(key=lambda item: lanes.turn_of(item.nodeid, shuffled=bool(seed)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    lanes.check(item)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """As many as the cores can feed: most tests of servers wait (CONTRIBUTING.md has the figures)."""
    return min(WORKERS_PER_CORE * len(os.sched_getaffinity(0)), MOST_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return lanes.LaneScheduling(config, log)


def pytest_collection_finish():
    """Have the collector of cycles pass over thousands of tests, whatever it looks for later."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_handler_stays():
    """Take from the root logger what an application that was made here has added: its stream is the test's."""
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    for each in root.handlers[:]:
        if type(each) is logging.StreamHandler and each not in before:
            root.removeHandler(each)


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
def administer(servers):
    """A function that runs statements, each with the names in it, over a connection that is kept."""
    with psycopg.connect(servers.database_url, autocommit=True) as connection:

        def run(*statements):
            for statement, *names in statements:
                connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

        yield run


@pytest.fixture(scope="session")
def template(servers, administer):
    """The name of a migrated database that nobody connects to, so that it can be cloned.

    In `public` it has what bears the names of our tables, and fails whoever looks at it.
    """
    from hookonce.receiver.ledger.database import migrate, roles  # noqa: PLC0415  most tests need no database

    name = f"hookonce_test_{uuid.uuid4().hex[:12]}"
    administer(*creating(name))
    with psycopg.connect(database(servers, name), autocommit=True) as connection:
        for table in roles.RIGHTS:
            statement = sql.SQL("CREATE VIEW public.{} AS SELECT 1/0 AS not_ours")
            connection.execute(statement.format(sql.Identifier(table)))
    migrate.upgrade(database(servers, name))
    yield name
    administer(*dropping([name]))


@pytest.fixture(scope="session")
def numbers():
    return itertools.count(1)


@pytest.fixture(scope="session")
def fresh_database(servers, administer, template, numbers):
    """A context manager: the libpq URL of a fresh, migrated database, dropped later, whoever is still connected.

    Who does not name the schema of our tables finds those in `public`, and fails.
    """

    @contextlib.contextmanager
    def fresh():
        name = f"{template}_{next(numbers)}"
        administer(*creating(name, template), *dropping(left))
        left[:] = []
        yield database(servers, name)
        left.append(name)

    left = []  # PostgreSQL waits 100 ms for who was connected to what it drops: the next time they have gone
    yield fresh
    administer(*dropping(left))


@pytest.fixture
def database_url(fresh_database):
    """The libpq URL of a fresh, migrated database, dropped later, whoever is still connected."""
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


@pytest.fixture(scope="module")
def receiver(fresh_database, fresh_redis):
    """A receiver in this process, for all tests of a module."""
    from tests.support.in_process import Receiver  # noqa: PLC0415  tests of small things do not need it

    with fresh_database() as database_url, fresh_redis() as redis_url:
        running = Receiver(database_url, redis_url)
        yield running
        running.close()


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


def creating(name, template="template1"):
    # Half the work of the other strategy, which writes all of it to the WAL.
    yield "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name, template
    yield "ALTER DATABASE {} SET search_path = public", name


def dropping(names):
    return (("DROP DATABASE {} WITH (FORCE)", name) for name in names)


@pytest.fixture
def empty_database(servers, administer):
    """The URL of a database with nothing in it."""
    name = f"hookonce_schema_{uuid.uuid4().hex[:12]}"
    administer(*creating(name))
    yield database(servers, name)
    administer(*dropping([name]))
