"""A PostgreSQL that is restored from a backup: the same database, on a new timeline, without its latest rows."""

import shutil
import subprocess
from contextlib import contextmanager

import psycopg

from hookonce.receiver.dev.embedded import Postgres
from hookonce.receiver.ledger.database import migrate
from tests.support.waiting import until

RECOVERY = "restore_command = 'false'\n"


class Backup:
    """A server with a ledger, and the backup of it."""

    def __init__(self, directory):
        self._directory = directory
        self.postgres = Postgres.start(directory, durable=False)
        self.url = self.postgres.url
        migrate.upgrade(self.url)

    @contextmanager
    def restored_after(self):
        """Save the ledger, let things happen, then put it back as it was; nothing can be asked for meanwhile."""
        data = (self._directory / "postgres").resolve() / "data"
        saved = data.with_name("saved")
        self._while_stopped(lambda: copy(data, saved))
        yield
        self._while_stopped(lambda: restore(saved, data))
        self._wait_until_promoted()

    def _while_stopped(self, act):
        self.postgres.stop()
        act()
        self.postgres = Postgres.start(self._directory, durable=False)
        assert self.postgres.url == self.url

    def _wait_until_promoted(self):
        with psycopg.connect(self.url, autocommit=True) as sql:
            recovers = lambda: sql.execute("SELECT pg_is_in_recovery()").fetchone()[0]  # noqa: E731
            until(recovers, expected=False, what="whether the restored server is in recovery")


def copy(data, saved):
    subprocess.run(["cp", "-a", data, saved], check=True)  # with the owner


def restore(saved, data):
    shutil.rmtree(data)
    with (saved / "postgresql.auto.conf").open("a") as settings:
        settings.write(RECOVERY)
    copy(saved / "PG_VERSION", saved / "recovery.signal")
    saved.rename(data)
