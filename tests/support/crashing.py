"""A server of PostgreSQL of a test's own, to be crashed, with an inbox on it."""

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from hookonce.receiver.dev.embedded import Postgres
from hookonce.receiver.ledger.database import connections, migrate
from tests.support.inbox import inbox
from tests.support.waiting import until


@pytest.fixture(scope="module")
def server(disk):
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    started = Postgres.start(directory)
    yield started
    started.stop()
    shutil.rmtree(directory)


@pytest.fixture
def crashing(server, redis_url, monkeypatch):
    """An inbox on a server of its own, which writes what is not flushed to its log as late as it can."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("ALTER SYSTEM SET wal_writer_flush_after = '100MB'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("DROP DATABASE IF EXISTS crashing WITH (FORCE)")
        connection.execute("CREATE DATABASE crashing")
    url = server.url.replace("@/hookonce?", "@/crashing?")
    migrate.upgrade(url)
    yield from inbox.__wrapped__(url, redis_url, monkeypatch)


def crash(inbox):
    """Kill a backend, so that the server begins anew with what was flushed."""
    with suppress(psycopg.Error):
        row = inbox.connection.execute(
            "SELECT min(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchone()
        os.kill(row[0], signal.SIGKILL)
        inbox.connection.execute("SELECT pg_sleep(5)")


def connected(url):
    """Connect as soon as the server is there again."""
    found = []

    def look():
        found.append(connections.connect(url))
        return True

    until(look, away=connections.LedgerUnavailable)
    return found[-1]
