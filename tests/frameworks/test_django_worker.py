"""`manage.py hookonce_worker`: what it refuses, and that it works as it is started."""

import json
import signal

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.ledger.database import migrate, roles
from tests.support.applications import SERVERS, Project, end, paid
from tests.support.waiting import until

DEADLINE = 60
OTHERS = """
from project.settings import *

DATABASES["lite"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
DATABASES["other"] = DATABASES["default"] | {"NAME": "postgres"}
DATABASES["guest"] = DATABASES["default"] | {"USER": "guest_of_the_tests"}
DATABASES["same"] = dict(DATABASES["default"])
"""
AS_GUEST = """
from others import *

DATABASES["default"] = DATABASES["guest"]
"""
STATUSES = "SELECT status, count(*) FROM hookonce.event_states GROUP BY 1"
PSYCOPG2 = """
import sys

sys.modules["psycopg"] = None
import django.db.backends.postgresql.base

del sys.modules["psycopg"]
from project.settings import *
"""


def with_settings(made):
    """Put other settings than its own beside those of a project."""
    (made.directory / "others.py").write_text(OTHERS)
    (made.directory / "as_guest.py").write_text(AS_GUEST)
    (made.directory / "old_driver.py").write_text(PSYCOPG2)
    return made


@pytest.fixture
def project(tmp_path, database_url, redis_url):
    made = with_settings(Project("django", tmp_path, database_url, redis_url))
    made.make_tables()
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory, fresh_database, fresh_redis):
    """URLs of servers that nothing is written to, but the tables of the project."""
    with fresh_database() as database_url, fresh_redis() as redis_url:
        Project("django", tmp_path_factory.mktemp("shared"), database_url, redis_url).make_tables()
        yield database_url, redis_url


@pytest.fixture
def refusing(tmp_path, shared):
    """A project whose worker is to be refused."""
    return with_settings(Project("django", tmp_path, *shared))


def refused(project, *arguments, settings="others", cold=False):
    done = project.run(
        *("manage.py", "hookonce_worker", *arguments),
        check=False,
        cold=cold,
        DJANGO_SETTINGS_MODULE=settings,
    )
    assert done.returncode == 78, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


def booked_by(project, *options, schema="hookonce", **environ):
    """Have a worker do the one event that has come, and return the invoices that are booked then."""
    worker = project.start("manage.py", "hookonce_worker", *options, **environ)
    until(
        lambda: project.query(f"SELECT status FROM {schema}.event_states"),  # noqa: S608  ours
        [("done",)],
        seconds=DEADLINE,
        process=worker,
    )
    end(worker)
    return project.query("SELECT invoice FROM shop_payment")


@pytest.mark.parametrize(
    ("alias", "said"),
    [
        ("nowhere", "DATABASES has no 'nowhere'; it has default, guest, lite, other, same"),
        ("lite", "DATABASES['lite'] is SQLite; expected PostgreSQL, where the ledger lies"),
        ("other", "DATABASES['other'] is the database 'postgres' at "),
    ],
)
def test_alias_that_is_not_the_ledgers_database_is_refused(refusing, alias, said):
    assert said in refused(refusing, "--database", alias)


def make_guest(project):
    with psycopg.connect(project.database_url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE guest_of_the_tests LOGIN;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
        )


def test_role_that_cannot_write_the_end_of_a_run_is_refused(project):
    make_guest(project)

    said = refused(project, "--database", "guest")

    assert "role guest_of_the_tests can't write the end of a run; have `hookonce db roles --django " in said


def test_role_needs_no_more_than_the_rights_that_db_roles_gives(project):
    make_guest(project)
    with psycopg.connect(project.database_url, autocommit=True) as connection:
        roles.apply(connection, {roles.Task.DJANGO: "guest_of_the_tests"})
        connection.execute("GRANT INSERT, SELECT ON shop_payment TO guest_of_the_tests")
        connection.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO guest_of_the_tests")

    with project.serving(SERVERS["django under gunicorn gthread"][1]) as served:
        assert served.deliver(paid(1)).status == 200

    found = booked_by(project, "--alone", "--database", "guest", DJANGO_SETTINGS_MODULE="as_guest")

    assert found == [("in_1",)]


def test_psycopg2_is_refused(refusing):
    assert "DATABASES['default'] is reached by psycopg2; expected psycopg 3" in refused(
        refusing, settings="old_driver", cold=True
    )


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        (
            "def orm(event, session): ...",
            "'shop.webhooks.orm' takes an SQLAlchemy session; in Django a handler",
        ),
    ],
)
def test_handler_that_django_cannot_run_is_refused(refusing, definition, said):
    with (refusing.directory / "shop" / "webhooks.py").open("a") as module:
        module.write(f"\n\n@on('stripe')\n{definition}\n")

    assert said in refused(refusing)


def test_missing_configuration_is_refused_in_a_line(refusing):
    refusing.environ["HOOKONCE_SCHEMA"] = "nothing_here"

    assert "run `hookonce db upgrade`" in refused(refusing)


@pytest.mark.parametrize(
    ("alias", "options", "cold"), [("default", ["-p", "2"], True), ("same", ["--alone"], False)]
)
def test_worker_books_and_stops_when_told(project, alias, options, cold):
    with project.serving(SERVERS["django under gunicorn gthread"][1]) as served:
        worker = project.start(
            *("manage.py", "hookonce_worker", "--database", alias, *options),
            cold=cold,
            DJANGO_SETTINGS_MODULE="others",
        )
        for number in range(5):
            assert served.deliver(paid(number)).status == 200
        until(lambda: dict(project.query(STATUSES)), {"done": 5}, seconds=DEADLINE, process=worker)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(DEADLINE) == 0

    assert project.query("SELECT count(*), count(DISTINCT invoice) FROM shop_payment") == [(5, 5)]
    assert "booked in_1" in project.said
    kept = project.query("SELECT convert_from(lines, 'UTF8') FROM hookonce.run_logs ORDER BY event")
    assert [json.loads(lines)[1][1:] for (lines,) in kept] == [
        ["info", "shop.webhooks", f"booking in_{number}"] for number in range(5)
    ]


def test_supervisor_of_many_slots_has_suspects_run_in_the_framework(project):
    with project.serving(SERVERS["django under gunicorn gthread"][1]) as served:
        assert served.deliver(paid(1)).status == 200
    with psycopg.connect(project.database_url, autocommit=True) as connection:
        connection.execute("UPDATE hookonce.queue SET handler = 'shop.webhooks.book', waits = 'suspect'")

    assert booked_by(project, "--concurrency", "2") == [("in_1",)]


def test_ledger_may_lie_in_a_schema_of_another_name(tmp_path, empty_database, redis_url):
    migrate.upgrade(with_schema(empty_database, "inbox"))
    project = Project("django", tmp_path, empty_database, redis_url)
    project.environ["HOOKONCE_SCHEMA"] = "inbox"
    project.make_tables()

    with project.serving(SERVERS["django under gunicorn gthread"][1]) as served:
        assert served.deliver(paid(1)).status == 200
    assert booked_by(project, "--alone", schema="inbox") == [("in_1",)]


def test_entry_of_the_ledger_leads_where_its_url_does(refusing):
    code = "from project.settings import DATABASES; print(DATABASES['default']['NAME'])"

    assert refusing.run("-c", code).stdout.strip() == conninfo_to_dict(refusing.database_url)["dbname"]
