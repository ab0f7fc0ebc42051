"""What commands say to a role that lacks a right, or whose search path leads into the ledger."""

import contextlib
import os
import uuid
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import sql

from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections, migrate
from hookonce.receiver.monitoring import rights
from hookonce.receiver.monitoring.health import Readiness


@pytest.fixture
def role(place, monkeypatch, empty_database):
    """A role with no right but to connect, whom every command connects as."""
    name = f"app_{uuid.uuid4().hex[:12]}"
    separator = "&" if "?" in empty_database else "?"
    url = f"{empty_database}{separator}options=-c%20role%3D{name}"
    monkeypatch.setenv("DATABASE_URL", url)
    with psycopg.connect(empty_database, autocommit=True) as connection:
        identifier = sql.Identifier(name)
        connection.execute(sql.SQL("CREATE ROLE {}").format(identifier))
        yield SimpleNamespace(
            name=name,
            admin=connection,
            url=empty_database,
            limited_url=url,
            identifier=identifier,
            place=place,
        )
        connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(identifier))


@pytest.mark.parametrize("is_schema_there", [False, True])
def test_upgrade_names_the_right_that_is_lacking(role, hookonce, is_schema_there):
    if is_schema_there:
        role.admin.execute("CREATE SCHEMA hookonce")

    done = hookonce("db", "upgrade")

    assert done.code == 78
    assert done.err.count("\n") == 1
    what = "schema hookonce" if is_schema_there else "database"
    assert f"the role in DATABASE_URL lacks a right: permission denied for {what}" in done.err


def test_upgrade_needs_no_more_than_a_schema_in_which_it_may_create(role, hookonce):
    role.admin.execute(
        sql.SQL("CREATE SCHEMA hookonce; GRANT USAGE, CREATE ON SCHEMA hookonce TO {}").format(
            role.identifier
        )
    )

    done = hookonce("db", "upgrade")

    assert (done.code, done.err.count("\n")) == (0, 1)
    assert hookonce("events", "list", "--json").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("events", "list"),
        ("stats",),
        ("replay", "1"),
        ("serve", "--bind", "127.0.0.1:0", "--desk", "off"),
        ("sweep", "--once"),
    ],
)
def test_command_names_the_right_that_is_lacking(role, hookonce, monkeypatch, redis_url, command):
    migrate.upgrade(role.url)
    monkeypatch.setenv("REDIS_URL", redis_url)

    done = hookonce(*command)

    assert done.code == 78
    assert "lacks a right: permission denied for schema hookonce" in done.err


def test_probe_and_doctor_tell_a_lacking_right_from_a_server_that_is_away(role, hookonce, redis_url):
    migrate.upgrade(role.url)

    found = {document["check"]: document for document in hookonce("doctor", "--json").documents}

    assert found["rights"]["text"].startswith("permission denied for schema hookonce")
    assert "start it" not in found["rights"]["text"]
    settings = load_settings(os.environ | {"REDIS_URL": redis_url}, need_secrets=False)
    with contextlib.closing(Readiness(settings)) as probe:
        status, document = probe.look()
    assert (status, document["database"]) == (503, "permission denied; see `hookonce doctor`")


def test_doctor_warns_of_a_role_that_can_make_no_partitions(role, hookonce):
    migrate.upgrade(role.url)
    grant = "GRANT USAGE ON SCHEMA hookonce TO {0}; GRANT ALL ON ALL TABLES IN SCHEMA hookonce TO {0}"
    role.admin.execute(sql.SQL(grant).format(role.identifier))

    found = {document["check"]: document for document in hookonce("doctor", "--json").documents}

    assert found["partitions"]["level"] == "warn"
    assert f"role {role.name} can't make those of the coming days" in found["partitions"]["text"]


@pytest.mark.parametrize(
    ("work", "does"), [("receiver", "receiver"), ("worker", "worker"), ("desk", "desk, receiver")]
)
def test_db_roles_gives_what_doctor_asks_for(role, hookonce, monkeypatch, work, does):
    migrate.upgrade(role.url)
    roles = ("db", "roles", f"--{work}", role.name)
    printed = hookonce(*roles)
    monkeypatch.setenv("DATABASE_URL", role.url)

    applied = hookonce(*roles, "--apply")

    assert (applied.code, applied.out, printed.code) == (0, b"", 0)
    assert applied.err == f"role {role.name} has its rights: {work}\n"
    with connections.connect(role.limited_url) as connection:
        assert rights.works(connection) == (f"enough for: {does}", True)
        assert rights.partitions(connection) is None
        assert 'GRANT EXECUTE ON FUNCTION hookonce.make_partition(date) TO "' in printed.out.decode()
    role.admin.execute(printed.out)


def test_db_roles_says_that_a_role_is_not_there(role, hookonce, monkeypatch):
    migrate.upgrade(role.url)
    monkeypatch.setenv("DATABASE_URL", role.url)

    applied = hookonce("db", "roles", "--desk", "nobody_is_so", "--apply")

    assert (applied.code, applied.err.count("\n")) == (1, 1)
    assert 'role "nobody_is_so" does not exist, so no right was given' in applied.err


def test_doctor_names_what_a_role_lacks(role, hookonce):
    migrate.upgrade(role.url)
    role.admin.execute(hookonce("db", "roles", "--desk", role.name).out)
    role.admin.execute(sql.SQL("REVOKE INSERT ON hookonce.redeliveries FROM {}").format(role.identifier))

    found = {document["check"]: document for document in hookonce("doctor", "--json").documents}

    assert found["rights"]["level"] == "warn"
    assert "as desk it lacks INSERT on hookonce.redeliveries" in found["rights"]["text"]
    assert found["partitions"]["level"] == "ok"


def test_upgrade_names_roles_that_have_no_right_on_new_tables(role, hookonce, monkeypatch):
    migrate.upgrade(role.url)
    role.admin.execute(hookonce("db", "roles", "--worker", role.name).out)
    monkeypatch.setenv("DATABASE_URL", role.url)
    role.admin.execute("DROP TABLE hookonce.guards")
    role.admin.execute("CREATE TABLE hookonce.guards (xact_id xid8)")

    done = hookonce("db", "upgrade")

    assert f"run `hookonce db roles` again for those that were given some: {role.name}\n" in done.err


def test_upgrade_says_nothing_of_roles_that_have_all_rights(role, hookonce, monkeypatch):
    migrate.upgrade(role.url)
    role.admin.execute(hookonce("db", "roles", "--desk", role.name).out)
    monkeypatch.setenv("DATABASE_URL", role.url)

    assert "db roles" not in hookonce("db", "upgrade").err


@pytest.mark.usefixtures("role")
def test_db_roles_names_the_schema_that_is_configured(hookonce, monkeypatch):
    monkeypatch.setenv("HOOKONCE_SCHEMA", "inbox")

    printed = hookonce("db", "roles", "--worker", "w").out.decode()

    assert 'GRANT USAGE ON SCHEMA "inbox" TO "w";' in printed
    assert "hookonce." not in printed


@pytest.mark.usefixtures("role")
def test_db_roles_without_a_role_says_what_to_name(hookonce):
    done = hookonce("db", "roles")

    assert done.code == 2
    assert "name at least one role" in done.err


@pytest.mark.parametrize(("path", "level"), [('"$user", public', "warn"), ("public", "ok")])
def test_search_path_that_leads_into_the_ledger_is_told(
    place, monkeypatch, empty_database, hookonce, path, level
):
    with psycopg.connect(empty_database, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET search_path = {}").format(name, sql.SQL(path)))
        role = connection.info.user
    monkeypatch.setenv("DATABASE_URL", empty_database)
    (place / "hookonce.toml").write_text(f'[receiver]\nschema = "{role}"\n')

    done = hookonce("db", "upgrade")

    found = {document["check"]: document for document in hookonce("doctor", "--json").documents}
    assert found["search path"]["level"] == level
    assert (f"ALTER ROLE {role} SET search_path = public" in done.err) == (level == "warn")
