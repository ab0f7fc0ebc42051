"""Brings the database to the tables this code was written for, under an advisory lock.

A lock that DDL waits for stops every delivery behind it, so each try waits for `Patience.lock` only and then lets the
deliveries pass; a reader that outlasts all tries is named. What there is goes into the tables of 0021 in steps
(`receiver.ledger.database.live_upgrade`); the revisions before it are one transaction.

A ledger of hookonce 0.1 lay wherever the search path led, in `public` as a rule, among the tables of others. It is
found by `hookonce_version` and moved into the schema of its own; an empty ledger is never made beside it.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from psycopg import sql
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import is_pooled, schema_of
from hookonce.receiver.ledger.database import (
    connections,
    engines,
    former_tables,
    lock_holders,
    schema,
    schema_version,
)
from hookonce.receiver.ledger.database.live_upgrade import (
    TAKE_TIME,
    Patience,
    Progress,
    Say,
    Steps,
    is_locked_out,
)
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.ledger.stats import event_counts

_LOCK = 0x686F6F6B6F6E6365  # "hookonce" in ASCII: one upgrade at a time per database
_VERSION_TABLE = "hookonce_version"
T = TypeVar("T")
USUAL_PATIENCE = Patience()
_FIRST_WITH_A_SCHEMA = "0004"
LAST_BEFORE_THE_QUEUE = "0020"
FIRST_WITH_A_QUEUE = "0021"
_MADE_BY = {
    "0001": (
        *("events", "bodies", "runs", "failures", "conflicts"),
        *("rejected", "rejections", "audit", "pauses", _VERSION_TABLE),
    ),
    "0002": ("handed_secrets", "secret_use"),
    "0003": (
        *("quarantine", "api_tokens", "idempotency", "bulk_replays", "bulk_steps"),
        *("activity", "event_counts", "alerts", "handlers", "watching"),
    ),
}
"""The tables of 0.1 by revision: what else has the name of one of ours belongs to somebody else."""

_LEDGERS = """
SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = %s AND c.relkind = 'r' ORDER BY n.nspname
"""
_VERSION = sql.SQL("SELECT version_num FROM {}.{}")

# Partitions do not follow their parent, so each table is moved by its own name; indexes and sequences follow.
_TABLES_OF = """
SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p')
      AND (c.relname = ANY(%(names)s)
           OR c.oid IN (SELECT i.inhrelid FROM pg_catalog.pg_inherits i
                        JOIN pg_catalog.pg_class p ON p.oid = i.inhparent AND p.relnamespace = n.oid
                        WHERE p.relname = 'bodies'))
ORDER BY c.relname
"""
_MOVE = sql.SQL("ALTER TABLE {} SET SCHEMA {}")
_LOCK_TABLE = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE")


class LedgerLocked(Exception):  # noqa: N818  a state of the world that passes
    """Another session holds a table of the ledger for longer than an upgrade may wait."""


def upgrade(
    url: str, patience: Patience = USUAL_PATIENCE, say: Say = lambda _: None, *, finish: bool = False
) -> str:
    """Move a ledger of 0.1, run the missing migrations, make the partitions of the coming days; return the revision.

    Safe to run from several machines at once: the second waits for the first and finds nothing to do. The lock is
    a transaction's, on a connection of its own, so that it holds behind a pooler too. What is kept for processes of
    the version before is dropped when none is connected any more, or to `finish`. Raises `ConfigError` where a
    database can't hold what senders write, or several old ledgers lie in it, `LedgerLocked` where a table was not to
    be had, and `LedgerUnavailable`.
    """
    _require_utf8(url)
    engine, place = engines.engine(url, name="hookonce migrate"), schema_of(url)
    try:
        with engine.begin() as guard:
            driver = engines.raw(guard)
            driver.execute(TAKE_TIME)
            guard.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})

            def tried(step: Callable[[timedelta], T]) -> T:
                return _tried(step, driver, place, patience)

            reached = tried(lambda wait: _upgraded(engine, place, wait))
            steps = Steps(engine, patience, tried, say)
            if reached == LAST_BEFORE_THE_QUEUE:
                is_in_use = former_tables.sessions(driver) > 0
                steps.take_over(
                    lambda connection: _run_migrations(connection, place, FIRST_WITH_A_QUEUE),
                    waits_for_runs=is_in_use,
                )
                steps.validate()
                finish = finish or not is_in_use
                reached = tried(lambda wait: _upgraded(engine, place, wait))
                steps.recount(event_counts.recount)
            _contract(steps, finish=finish)
            return reached
    finally:
        engine.dispose()


def _contract(steps: Steps, *, finish: bool) -> None:
    """Drop what is kept for processes of before, unless there are any; it can be done whenever there are none."""
    if steps.look(former_tables.is_contracted):
        return
    if not finish and (found := steps.look(former_tables.in_the_way)):
        steps.say(Progress("postponed", why=found))
        return
    try:
        steps.contract()
    except LedgerLocked as locked:
        steps.say(Progress("postponed", why=str(locked)))


def _tried(
    step: Callable[[timedelta], T], driver: psycopg.Connection[Any], place: str, patience: Patience
) -> T:
    """Return what a step returns, which fails where a lock is not to be had in time. Raises: LedgerLocked."""
    for number in range(patience.tries + 1):
        wait = patience.lock
        if number == patience.tries:
            if not lock_holders.has_autovacuum(driver, place):
                break
            wait = patience.vacuum_lock
        elif number:
            time.sleep(patience.pause.total_seconds())
        try:
            return step(wait)
        except (psycopg.OperationalError, OperationalError) as error:
            if not is_locked_out(error):
                raise
    raise LedgerLocked(_of_holders(driver, place, patience))


def _upgraded(engine: Engine, place: str, wait: timedelta) -> str:
    """Upgrade in one transaction, but for what is to be done in steps; return the revision."""
    with engine.connect() as connection, connection.begin():
        driver = engines.raw(connection)
        driver.execute(f"SET LOCAL lock_timeout = {wait // timedelta(milliseconds=1)}".encode())
        _adopt(driver, place)
        schema.create(driver, place)
        before = current(connection, place)
        is_to_be_moved = before is not None and before < FIRST_WITH_A_QUEUE
        until = LAST_BEFORE_THE_QUEUE if is_to_be_moved else "head"
        _run_migrations(connection, place, until, is_new=before is None)
        partitions.create_partitions(driver)
        return current(connection, place) or "none"


def _of_holders(driver: psycopg.Connection[Any], place: str, patience: Patience) -> str:
    places = [place, *(name for (name,) in driver.execute(_LEDGERS, [_VERSION_TABLE]))]
    holders = lock_holders.describe(driver, places, patience.lock)
    return (
        f"the upgrade stopped, and goes on from there next time: in {patience.tries} tries its tables were not to be "
        f"had, since {holders} holds them; run it again when that has ended, or end it: "
        "SELECT pg_terminate_backend(<process>)"
    )


def current(connection: Connection, place: str) -> str | None:
    """Return the revision that the ledger in a schema is at; None before the first migration."""
    options = {"version_table": _VERSION_TABLE, "version_table_schema": place}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def _require_utf8(url: str) -> None:
    with connections.connect(url) as connection:
        if not is_pooled(url):
            connection.execute("SET application_name = 'hookonce migrate'")  # no process that others wait for
        encoding = connection.info.parameter_status("server_encoding")
        name = connection.info.dbname
    if encoding not in {"UTF8", None}:
        mistake = (
            f"DATABASE_URL: database '{name}' is encoded in {encoding}, expected UTF8, for senders write in every "
            f"language; make another: CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"
        )
        raise ConfigError([mistake])


def former_place(connection: psycopg.Connection[Any], place: str) -> str | None:
    """Return the schema of the ledger of 0.1, if there is one and none in its place yet.

    Later ones lie where they were meant to. Raises: ConfigError where there are several.
    """
    places = [name for (name,) in connection.execute(_LEDGERS, [_VERSION_TABLE])]
    old = [name for name in places if _version(connection, name) < _FIRST_WITH_A_SCHEMA]
    if place in places or not old:
        return None
    if len(old) > 1:
        mistake = (
            f"DATABASE_URL: ledgers of hookonce 0.1 lie in the schemas {', '.join(old)}; move the right one by "
            "setting [receiver] schema to its name for the first `hookonce db upgrade`, or drop the others"
        )
        raise ConfigError([mistake])
    return str(old[0])


def _adopt(connection: psycopg.Connection[Any], place: str) -> None:
    """Move the ledger of 0.1, if there is one and none in its place yet."""
    old = former_place(connection, place)
    if old is None:
        return
    version = _version(connection, old)
    ours = [name for revision, made in _MADE_BY.items() if revision <= version for name in made]
    names = connection.execute(_TABLES_OF, {"schema": old, "names": ours}).fetchall()
    found = [sql.Identifier(old, name) for (name,) in names]
    connection.execute(_LOCK_TABLE.format(sql.SQL(", ").join(found)))
    schema.create(connection, place)
    for table in found:
        connection.execute(_MOVE.format(table, sql.Identifier(place)))


def _version(connection: psycopg.Connection[Any], place: str) -> str:
    row = connection.execute(
        _VERSION.format(sql.Identifier(place), sql.Identifier(_VERSION_TABLE))
    ).fetchone()
    return str(row[0]) if row else ""


def _run_migrations(connection: Connection, place: str, until: str, *, is_new: bool = False) -> None:
    if (current(connection, place) or "") > schema_version.REVISION:
        return  # a newer version has been here; what it added, this one can ignore
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    config.attributes["schema"] = place
    config.attributes["is_new"] = is_new
    command.upgrade(config, until)
