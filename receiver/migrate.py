"""Brings the database to the schema this code was written for, under an advisory lock."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from receiver import database, engines, revision
from receiver.ledger import upkeep
from receiver.settings import ConfigError

_LOCK = 0x686F6F6B6F6E6365  # "hookonce" in ASCII: one upgrade at a time per database


def upgrade(url: str) -> str:
    """Run the missing migrations and make the partitions of the coming days; say the revision reached.

    Safe to run from several machines at once: the second waits for the first and finds nothing to do. The lock is
    a transaction's, on a connection of its own, so that it holds behind a pooler too. Raises `ConfigError` where a
    database can't hold what senders write, `LedgerUnavailable`.
    """
    _require_utf8(url)
    engine = engines.engine(url, name="hookonce migrate")
    try:
        with engine.begin() as guard, engine.connect() as connection:
            guard.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            _run_migrations(connection)
            with connection.begin():
                upkeep.create_partitions(engines.raw(connection))
            return current(connection) or "none"
    finally:
        engine.dispose()


def current(connection: Connection) -> str | None:
    """Tell the revision the database is at; None before the first migration."""
    context = MigrationContext.configure(connection, opts={"version_table": "hookonce_version"})
    return context.get_current_revision()


def _require_utf8(url: str) -> None:
    with database.connect(url) as connection:
        encoding = connection.info.parameter_status("server_encoding")
        name = connection.info.dbname
    if encoding not in {"UTF8", None}:
        mistake = (
            f"DATABASE_URL: database '{name}' is encoded in {encoding}, expected UTF8, for senders write in every "
            f"language; make another: CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"
        )
        raise ConfigError([mistake])


def _run_migrations(connection: Connection) -> None:
    reached = current(connection) or ""
    connection.rollback()  # reading began a transaction; alembic wants its own
    if reached > revision.REVISION:
        return  # a newer version has been here; what it added, this one can ignore
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
