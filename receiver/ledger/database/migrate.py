"""Brings the database to the tables this code was written for, under an advisory lock.

A new ledger is made in one transaction. Alembic runs the revisions that a ledger lacks; importing it takes longer than
all of that, so it is left to those. A lock that DDL waits for stops every delivery behind it, so each try waits for
`Patience.lock` only and then lets the deliveries pass; a reader that outlasts all tries is named.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import schema_of
from hookonce.receiver.ledger.database import connections, lock_holders, schema, schema_version, tables
from hookonce.receiver.ledger.maintenance import partitions

NAME = "hookonce migrate"
REVISIONS = Path(__file__).parent / "migrations"
_LOCK = 0x686F6F6B6F6E6365  # "hookonce" in ASCII: one upgrade at a time per database
_TAKE_TIME = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
# As Alembic makes it.
_VERSION = """
CREATE TABLE hookonce.hookonce_version (
    version_num varchar(32) NOT NULL CONSTRAINT hookonce_version_pkc PRIMARY KEY
)
"""
_AT = "INSERT INTO hookonce.hookonce_version VALUES (%s)"


@dataclass(frozen=True)
class Patience:
    """How an upgrade waits for locks.

    Deliveries wait as long as one try does, so `lock` is well below `connections.LOCK_TIMEOUT`. An autovacuum gives up
    for others only when they have waited for deadlock_timeout (1 s), so that where one is in the way, and nowhere else,
    the last try waits for `vacuum_lock`.
    """

    lock: timedelta = timedelta(milliseconds=300)
    vacuum_lock: timedelta = timedelta(seconds=1.2)
    pause: timedelta = timedelta(seconds=1)
    tries: int = 30


USUAL_PATIENCE = Patience()


class LedgerLocked(Exception):  # noqa: N818  a state of the world that passes
    """Another session holds a table of the ledger for longer than an upgrade may wait."""


def upgrade(url: str, patience: Patience = USUAL_PATIENCE) -> str:
    """Make the ledger or run the revisions it lacks, make the partitions of the coming days; return the revision.

    Safe to run from several machines at once: the second waits for the first and finds nothing to do. The lock is
    a transaction's, on a connection of its own, so that it holds behind a pooler too. Raises `ConfigError` where a
    database can't hold what senders write, `UnreleasedLedger`, `LedgerLocked` where a table was not to be had, and
    `LedgerUnavailable`.
    """
    with _transaction(url) as guard:
        _require_utf8(guard)
        guard.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        for number in range(patience.tries + 1):
            wait = patience.lock
            if number == patience.tries:
                if not lock_holders.has_autovacuum(guard, schema_of(url)):
                    break
                wait = patience.vacuum_lock
            elif number:
                time.sleep(patience.pause.total_seconds())
            try:
                return _upgraded(url, wait)
            except Exception as error:
                cause = getattr(error, "orig", error)  # of what SQLAlchemy wraps
                if not isinstance(cause, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected):
                    raise
        holders = lock_holders.describe(guard, schema_of(url), patience.lock)
    raise LedgerLocked(
        f"the upgrade stopped and changed nothing: in {patience.tries} tries its tables were not to be had, since "
        f"{holders} holds them; run it again when that has ended, or end it: SELECT pg_terminate_backend(<process>)"
    )


def current(url: str) -> str | None:
    """Return the revision of the ledger that a URL leads to; None without one.

    Raises: `UnreleasedLedger`, `LedgerUnavailable`, `psycopg.Error`.
    """
    with connections.connect(url) as connection:
        return schema_version.found(connection)


def _upgraded(url: str, wait: timedelta) -> str:
    """Upgrade in one transaction; return the revision."""
    with _transaction(url, wait) as connection:
        revision = schema_version.found(connection)
        if revision is None:
            schema.create(connection, schema_of(url))
            connection.execute(tables.SCHEMA.encode())
            connection.execute(_VERSION)
            revision = schema_version.FIRST
            connection.execute(_AT, [revision])
        if not schema_version.is_behind(revision):
            partitions.create_partitions(connection)
            return revision
    run_revisions(url, wait)
    return schema_version.REVISION


def run_revisions(url: str, wait: timedelta) -> None:
    """Have Alembic run the revisions that a ledger lacks, in one transaction, and make the coming partitions."""
    from alembic import command  # noqa: PLC0415  a new ledger is made before these are imported
    from alembic.config import Config  # noqa: PLC0415

    from hookonce.receiver.ledger.database import engines  # noqa: PLC0415

    engine = engines.engine(url, name=NAME)
    try:
        with engine.begin() as connection:
            driver = engines.raw(connection)
            _wait_at_most(driver, wait)
            config = Config(attributes={"connection": connection, "schema": schema_of(url)})
            config.set_main_option("script_location", str(REVISIONS))
            command.upgrade(config, "head")
            partitions.create_partitions(driver)
    finally:
        engine.dispose()


@contextmanager
def _transaction(url: str, wait: timedelta = timedelta(0)) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection and a transaction on it, whose waits for locks are bounded; 0: not at all."""
    with connections.connect(url, name=NAME) as connection, connection.transaction():
        _wait_at_most(connection, wait)
        yield connection


def _wait_at_most(connection: psycopg.Connection[Any], wait: timedelta) -> None:
    """Bound a transaction's waits for locks, and nothing else, whatever a role or a pooler sets."""
    connection.execute(f"SET LOCAL lock_timeout = {wait // timedelta(milliseconds=1)}".encode())
    connection.execute(_TAKE_TIME)


def _require_utf8(connection: psycopg.Connection[Any]) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    name = connection.info.dbname
    if encoding not in {"UTF8", None}:
        mistake = (
            f"DATABASE_URL: database '{name}' is encoded in {encoding}, expected UTF8, for senders write in every "
            f"language; make another: CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"
        )
        raise ConfigError([mistake])
