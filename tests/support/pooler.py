"""A real PgBouncer in transaction mode, whose few connections change hands after every transaction."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hookonce.receiver.ledger.database import connections
from tests.support.waiting import until

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
CONFIGURATION = """
[databases]
{database} = host={host} port={port} user={user} connect_query='{settings}'
[pgbouncer]
listen_addr =
unix_socket_dir = {directory}
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
server_round_robin = 1
max_client_conn = 1000
server_login_retry = 1
ignore_startup_parameters = {ignored}
logfile =
"""
SETTINGS = "SET timezone = UTC; SET statement_timeout = 1500; SET lock_timeout = 700"


class Pooler:
    """A PgBouncer with `size` connections to a database; `url` leads there. `directory` may be entered by all."""

    def __init__(
        self, database_url, directory, *, size=3, settings=SETTINGS, mode="transaction", ignored="options"
    ):
        parts = urlsplit(database_url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._host = query.get("host", parts.hostname)
        self._sockets = directory / "pool"
        self._sockets.mkdir()
        self._sockets.chmod(0o777)
        self._file = directory / "pgbouncer.ini"
        self._file.write_text(
            CONFIGURATION.format(
                database=parts.path[1:],
                host=self._host,
                port=query.get("port", parts.port or 5432),
                user=parts.username,
                settings=settings,
                directory=self._sockets,
                size=size,
                mode=mode,
                ignored=ignored,
            )
        )
        self.url = f"postgresql://{parts.username}@{parts.path}?host={self._sockets}&port=6432&pgbouncer=true"
        self.start()

    def start(self):
        self._process = subprocess.Popen(
            [PGBOUNCER, "-q", self._file], stderr=subprocess.DEVNULL, **as_whom(self._host)
        )

    def kill(self):
        self._process.kill()
        self._process.wait()


@contextmanager
def pooling(database_url, directory, **options):
    """Pool connections to a database as `Pooler` does; give the URL that leads there."""
    pooler = Pooler(database_url, directory, **options)
    try:
        await_answer(pooler.url)
        yield pooler.url
    finally:
        pooler.kill()


def as_whom(host):
    """Say as whom the pooler runs: not as root, which it refuses, but so that it may enter the socket's directory."""
    if os.geteuid() != 0:
        return {}
    groups = [Path(host).stat().st_gid] if host.startswith("/") else []
    return {"user": "nobody", "group": "nogroup", "extra_groups": groups}


def await_answer(url):
    until(lambda: connections.connect(url).close() is None, away=connections.LedgerUnavailable)


@pytest.fixture
def pooled_url(database_url, data_directory):
    with pooling(database_url, data_directory) as url:
        yield url
