"""The revision of a ledger: what it is, what is taken for ours, and what the error names where it is not the one."""

import re

import psycopg
import pytest

from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.ledger.database import connections, migrate, schema_version, tables
from hookonce.receiver.ledger.database.schema_version import FIRST, REVISION, SchemaBehind, UnreleasedLedger
from hookonce.receiver.monitoring.health import require_schema

ELSEWHERE = ("CREATE SCHEMA elsewhere", "CREATE TABLE elsewhere.hookonce_version (version_num text)")


def at(revision, place="hookonce"):
    """Statements that make a ledger of a revision, as far as anybody looks at it."""
    return (
        f"CREATE SCHEMA IF NOT EXISTS {place}",
        f"CREATE TABLE {place}.hookonce_version AS SELECT '{revision}'::text AS version_num",
    )


def execute(url, statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
        return connection.info.dbname


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        (("account text,", "account text NOT NULL,"), True),
        (("fillfactor = 40", "fillfactor = 41"), True),
        (("text_bloom_ops (n_distinct_per_range = 32)", "text_minmax_ops"), True),
        (("WHERE is_last AND handler", "WHERE handler"), True),
        (("('epoch', 'epoch')", "('epoch', now())"), True),
        (("-- Outcomes", "-- What became of it"), False),
        (("account text,", "\n    account   text,"), False),
    ],
)
def test_id_of_the_revision_changes_with_what_it_makes(change, is_another):
    assert tables.SCHEMA.count(change[0]) == 1

    changed = tables.digest(tables.SCHEMA.replace(*change))

    assert (changed != FIRST) == is_another


def test_id_fits_the_column_of_alembic_with_a_number_behind_it():
    assert re.fullmatch("[0-9a-f]{12}", FIRST)


FOUND = {
    "nothing": ((), "the database '{}' has no ledger in the schema hookonce, nor in any other"),
    "another schema": (
        ELSEWHERE,
        "the database '{}' has no ledger in the schema hookonce, one lies in elsewhere",
    ),
    "a revision of before": (at(FIRST), f"the ledger in the database '{{}}' is at revision {FIRST}"),
}


@pytest.mark.parametrize(("statements", "said"), FOUND.values(), ids=FOUND)
def test_error_names_what_it_found_and_the_command(empty_database, monkeypatch, statements, said):
    monkeypatch.setattr(schema_version, "REVISION", f"{FIRST}.2")
    name = execute(empty_database, statements)

    with pytest.raises(SchemaBehind) as error:
        require_schema(empty_database)

    assert said.format(name) in str(error.value)
    assert f"{FIRST}.2" in str(error.value)
    assert "run `hookonce db upgrade`" in str(error.value)


UNRELEASED = {
    "the last of 24": at("0024"),
    "the first of 24": at("0001"),
    "another digest": at("0123456789ab"),
    "a later revision of another digest": at("0123456789ab.2"),
    "letters after ours": at(f"{FIRST}0"),
    "no number after ours": at(f"{FIRST}.x"),
    "none": ("CREATE SCHEMA hookonce", "CREATE TABLE hookonce.hookonce_version (version_num text)"),
    "in public, beside nothing": at("0003", "public"),
}


@pytest.mark.parametrize("statements", UNRELEASED.values(), ids=UNRELEASED)
def test_ledger_of_another_revision_is_refused_and_nothing_is_made(empty_database, statements):
    execute(empty_database, statements)
    before = everything(empty_database)

    for act in (require_schema, migrate.upgrade, migrate.current):
        with pytest.raises(UnreleasedLedger, match="is of an unreleased version"):
            act(empty_database)

    assert everything(empty_database) == before


def everything(url):
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT oid::regclass::text, relfilenode FROM pg_class ORDER BY 1"
        ).fetchall()


@pytest.mark.parametrize("number", ["2", "17"])
def test_ledger_of_a_later_release_is_left_as_it_is(empty_database, number):
    migrate.upgrade(empty_database)
    later = f"{FIRST}.{number}"
    with psycopg.connect(empty_database) as connection:
        connection.execute("UPDATE hookonce.hookonce_version SET version_num = %s", [later])

    require_schema(empty_database)

    assert migrate.upgrade(empty_database) == later


@pytest.mark.parametrize("statements", [at("0003", "elsewhere"), at(FIRST, "public")])
def test_ledger_in_another_schema_is_nobodys_business(empty_database, statements):
    execute(empty_database, statements)

    assert migrate.upgrade(empty_database) == REVISION


def test_revision_is_found_in_a_schema_of_another_name(empty_database):
    migrate.upgrade(with_schema(empty_database, "inbox"))

    with connections.connect(with_schema(empty_database, "inbox")) as connection:
        assert schema_version.found(connection) == REVISION
    with connections.connect(empty_database) as connection:
        assert schema_version.found(connection) is None
