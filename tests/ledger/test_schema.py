"""A schema of the ledger's own: beside other tables, under any name, without a search path."""

import os
import subprocess
import sys
import uuid
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text

from hookonce.jobs.maintenance.tasks import MaintenanceTasks
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.admin import Admin
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import libpq_url, schema_of, with_schema
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.ledger.database import connections, migrate, schema
from hookonce.receiver.ledger.database.connections import LedgerUnavailable, database_identity
from hookonce.receiver.ledger.database.schema_version import REVISION
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.runs import due_rows, parking
from hookonce.receiver.redis.client import connect
from tests.support.event_sums import differences
from tests.support.in_process import Receiver
from tests.support.inbox import Inbox

SECRET = "whsec_of_the_tests"
SHAPE = """
SELECT c.relname, c.relkind, c.reloptions, pg_get_viewdef(c.oid), pg_get_indexdef(i.indexrelid),
       (SELECT array_agg((a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attcollation,
                          pg_get_expr(d.adbin, d.adrelid)) ORDER BY a.attnum)
        FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0),
       (SELECT array_agg(pg_get_constraintdef(k.oid) ORDER BY pg_get_constraintdef(k.oid))
        FROM pg_constraint k WHERE k.conrelid = c.oid)
FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = %(place)s::regnamespace ORDER BY c.relname
"""
TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') ORDER BY 1
"""


def tables(url, place):
    with psycopg.connect(libpq_url(url)) as connection:
        return [name for (name,) in connection.execute(TABLES, [place])]


def deliver(receiver, event_id):
    body = b'{"id": "%s", "type": "a"}' % event_id.encode()
    headers = load("stripe").sign(body, SECRET, receiver.now)
    return receiver.send("stripe", Delivery("POST", "", headers, body))


def test_upgrade_leaves_tables_of_the_same_names_alone(empty_database):
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE events (theirs int); CREATE TABLE runs (theirs int); CREATE TABLE audit (theirs int)"
        )

    assert migrate.upgrade(empty_database) == REVISION

    assert tables(empty_database, "public") == ["audit", "events", "runs"]
    assert "events" in tables(empty_database, "hookonce")


@pytest.mark.parametrize("name", ["inbox", "user", "hookonce"])
def test_delivery_is_taken_into_the_schema_that_is_configured(empty_database, redis_url, name):
    url = with_schema(empty_database, name)
    migrate.upgrade(url)
    receiver = Receiver(url, redis_url)
    receiver.add("stripe", load("stripe"), SECRET)

    answers = [deliver(receiver, "evt_1").json["status"] for _ in range(2)]
    receiver.close()

    assert answers == ["accepted", "duplicate"]
    with psycopg.connect(empty_database) as connection:
        found = connection.execute(
            sql.SQL("SELECT event_id FROM {}").format(sql.Identifier(name, "events"))
        ).fetchall()
    assert found == [("evt_1",)]
    assert tables(empty_database, "public") == []


def test_events_are_counted_in_the_schema_that_is_configured(empty_database, redis_url):
    url = with_schema(empty_database, "inbox")
    migrate.upgrade(url)
    receiver = Receiver(url, redis_url)
    receiver.add("stripe", load("stripe"), SECRET)
    deliver(receiver, "evt_1")
    receiver.close()

    with connections.connect(url) as connection:
        assert differences(connection) == {}


def test_everything_works_without_a_search_path(empty_database, redis_url):
    with psycopg.connect(empty_database, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET search_path = ''").format(name))
    migrate.upgrade(empty_database)
    receiver = Receiver(empty_database, redis_url, admin=Admin(token="a-token-of-32-characters-or-more!"))
    receiver.add("stripe", load("stripe"), SECRET)

    assert deliver(receiver, "evt_1").json["status"] == "accepted"
    assert receiver.app.test_client().get("/metrics").status_code == 200
    receiver.close()
    sweep_and_prune(empty_database, redis_url)
    with connections.connect(empty_database) as connection:
        assert database_identity(connection)
        assert len(partitions.days(connection)) > partitions.DAYS_AHEAD  # yesterday's is pruned
    assert migrate.upgrade(empty_database) == REVISION


def sweep_and_prune(url, redis_url):
    """Do all that a sweep does, each task once, and a whole pass of retention; none may fail."""
    settings = Settings(url, redis_url, {})
    with connections.connect(url) as connection, connect(redis_url) as client:
        for failure, task in MaintenanceTasks(settings, client)._tasks:  # noqa: SLF001  all of them, and loudly
            assert failure
            task(connection)
        parking.unpark_left(connection)
        assert due_rows.is_anything_due(connection)
        for dry_run in (True, False):
            retention = RetentionPass(Retention(*[timedelta(0)] * 4), dry_run=dry_run)
            assert list(retention.steps(connection))
            retention.audit(connection, "the test")


def test_alembic_makes_the_ledger_that_is_made_without_it(empty_database):
    migrate.upgrade(empty_database)
    other = with_schema(empty_database, "other")
    with connections.connect(other) as connection:
        schema.create(connection, "other")

    migrate.run_revisions(other, timedelta(seconds=1))

    assert shape(empty_database, "other") == shape(empty_database, "hookonce")
    assert migrate.current(other) == REVISION


def shape(url, place):
    with psycopg.connect(url) as connection:
        found = connection.execute(SHAPE, {"place": place}).fetchall()
    return [tuple(str(each).replace(f"{place}.", "") for each in row) for row in found]


def test_second_ledger_is_made_beside_one_of_today(empty_database):
    migrate.upgrade(empty_database)

    migrate.upgrade(with_schema(empty_database, "second"))

    assert tables(empty_database, "second") == tables(empty_database, "hookonce")


def test_schema_that_a_dba_has_made_is_enough(empty_database):
    role = f"app_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(empty_database, autocommit=True) as connection:
        name = sql.Identifier(role)
        connection.execute(sql.SQL("CREATE ROLE {}").format(name))
        connection.execute(sql.SQL("CREATE SCHEMA hookonce AUTHORIZATION {}").format(name))
        connection.execute(
            sql.SQL("REVOKE CREATE ON DATABASE {} FROM PUBLIC").format(sql.Identifier(connection.info.dbname))
        )
        connection.execute(sql.SQL("SET ROLE {}").format(name))
        try:
            schema.create(connection, "hookonce")
        finally:
            connection.execute("RESET ROLE; DROP SCHEMA hookonce CASCADE")
            connection.execute(sql.SQL("DROP ROLE {}").format(name))


def test_second_ledger_of_one_database_does_not_believe_the_window_of_the_first(empty_database, redis_url):
    answers = []
    for name in ("first", "second"):
        url = with_schema(empty_database, name)
        migrate.upgrade(url)
        receiver = Receiver(url, redis_url)
        receiver.add("stripe", load("stripe"), SECRET)
        answers.append(deliver(receiver, "evt_1").json["status"])
        receiver.close()

    assert answers == ["accepted", "accepted"]


@pytest.mark.parametrize(
    "change",
    [
        "TRUNCATE hookonce.events CASCADE",
        "VACUUM FULL hookonce.events",
        "SELECT pg_stat_reset_shared('bgwriter')",  # as PostgreSQL does itself when a backend has crashed
    ],
)
def test_identity_changes_with_the_file_of_the_events_and_after_a_crash(empty_database, change):
    migrate.upgrade(empty_database)
    with connections.connect(empty_database, statement=timedelta(seconds=30)) as connection:
        before = database_identity(connection)
        connection.execute(change)

        assert before != database_identity(connection)


@pytest.mark.parametrize("name", ["Hook", "1st", "pg_mine", "a-b", "", "x" * 64])
def test_name_that_no_schema_has_is_a_mistake(tmp_path, name):
    (tmp_path / "hookonce.toml").write_text(
        f'[receiver]\ndatabase_url = "postgresql://h/d"\nschema = "{name}"\n'
    )

    with pytest.raises(ConfigError, match="can't be the name of a schema"):
        load_settings({"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"), "HOOKONCE_DATA": str(tmp_path)})


def test_schema_of_the_environment_wins_and_is_no_part_of_what_libpq_reads(tmp_path):
    (tmp_path / "hookonce.toml").write_text(
        '[receiver]\ndatabase_url = "postgresql://h/d?application_name=x"\nschema = "mine"\n'
    )
    environ = {"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"), "HOOKONCE_DATA": str(tmp_path)}

    found = [load_settings(environ | each).database_url for each in ({}, {"HOOKONCE_SCHEMA": "theirs"})]

    assert [schema_of(url) for url in found] == ["mine", "theirs"]
    assert {libpq_url(url) for url in found} == {"postgresql://h/d?application_name=x"}


def test_handlers_statements_are_sent_as_they_were_written(empty_database, redis_url):
    url = with_schema(empty_database, "inbox")
    migrate.upgrade(url)
    with psycopg.connect(empty_database) as connection:
        connection.execute("CREATE SCHEMA hookonce; CREATE TABLE hookonce.events AS SELECT 'theirs' AS whose")

    def look(_event, tx):
        driver = tx.connection.driver_connection
        return [
            tx.scalar(text("SELECT 'mail me at a@hookonce.io, not hookonce.events'")),
            tx.scalar(text("SELECT whose FROM hookonce.events")),
            driver.execute("SELECT whose FROM hookonce.events").fetchone()[0],
        ]

    with connections.connect(url) as connection:
        inbox = Inbox(load_settings({"DATABASE_URL": url, "REDIS_URL": redis_url}), connection)
        inbox.on(look)
        inbox.deliver("evt_1", "evt_2")
        inbox.work()
        inbox.drains[0].close()
        found = inbox.rows("SELECT result FROM hookonce.runs")

    assert found == [(["mail me at a@hookonce.io, not hookonce.events", "theirs", "theirs"],)] * 2


def test_listing_finds_the_schema_too(empty_database, tmp_path):
    migrate.upgrade(with_schema(empty_database, "inbox"))
    environ = {"DATABASE_URL": empty_database, "HOOKONCE_SCHEMA": "inbox", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "hookonce.receiver.cli", "events", "list", "--json"]

    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_ledger_that_is_not_there_yet_is_unavailable_and_not_another(empty_database, redis_url):
    receiver = Receiver(empty_database, redis_url)
    receiver.add("stripe", load("stripe"), SECRET)

    answer = deliver(receiver, "evt_1")
    receiver.close()

    assert answer.status_code == 503
    assert issubclass(LedgerUnavailable, Exception)
