"""Django as a home: `migrate` brings the ledger, settings need no server, `check` says what is missing."""

import psycopg
import pytest

from hookonce.receiver.config.servers import NO_POSTGRESQL
from hookonce.receiver.ledger.database import schema_version
from tests.support.applications import SERVERS, Project, end, paid
from tests.support.waiting import until

DEADLINE = 60
NOWHERE = {"DATABASE_URL": "", "REDIS_URL": ""}
EMPTY_ROLE = "newcomer_of_the_tests"
APPLIED_BEFORE = """
WITH gone AS (DELETE FROM django_migrations WHERE app = 'hookonce')
INSERT INTO django_migrations (app, name, applied) SELECT 'hookonce', name, now()
FROM unnest(ARRAY['0001_ledger', '0002_failures_started', '0003_run_logs', '0004_issues']) AS name
"""
"""As an unreleased version left it."""


@pytest.fixture
def empty(tmp_path, empty_database, redis_url):
    """A project whose database is empty."""
    return Project("django", tmp_path, empty_database, redis_url)


def ledgers(project):
    return project.query("SELECT count(*) FROM pg_tables WHERE tablename = 'hookonce_version'")[0][0]


def test_migrate_makes_the_ledger_and_finds_nothing_to_do_afterwards(empty):
    empty.run("manage.py", "migrate", "--verbosity", "0")
    assert empty.query("SELECT version_num FROM hookonce.hookonce_version") == [(schema_version.REVISION,)]

    done = empty.run("manage.py", "migrate")
    assert "No migrations to apply" in done.stdout
    empty.run("manage.py", "check", "--database", "default")


def test_migrate_of_another_alias_makes_no_ledger(empty):
    (empty.directory / "elsewhere.py").write_text(
        "from project.settings import *\n"
        'DATABASES["ledger"] = DATABASES["default"]\n'
        'DATABASES["default"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "lite"}\n'
        'HOOKONCE_DATABASE = "ledger"\n'
    )
    empty.run("manage.py", "migrate", DJANGO_SETTINGS_MODULE="elsewhere")
    assert ledgers(empty) == 0
    empty.run("manage.py", "migrate", "hookonce", "--database", "ledger", DJANGO_SETTINGS_MODULE="elsewhere")
    assert ledgers(empty) == 1


@pytest.mark.parametrize("options", [(), ("--skip-checks",)])
def test_migrate_refuses_a_ledger_of_an_unreleased_version_in_a_line(empty, options):
    empty.run("manage.py", "migrate", "--verbosity", "0")
    with psycopg.connect(empty.database_url, autocommit=True) as connection:
        connection.execute("UPDATE hookonce.hookonce_version SET version_num = '0024'")
        connection.execute(APPLIED_BEFORE)

    done = empty.run("manage.py", "migrate", *options, check=False)

    [line] = done.stderr.splitlines()
    assert done.returncode == 78
    assert "is of an unreleased version (revision 0024, expected " in line
    assert empty.query("SELECT version_num FROM hookonce.hookonce_version") == [("0024",)]


def test_project_of_an_unreleased_version_whose_ledger_is_gone_gets_a_new_one(empty):
    empty.run("manage.py", "migrate", "--verbosity", "0")
    with psycopg.connect(empty.database_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA hookonce CASCADE")
        connection.execute(APPLIED_BEFORE)

    empty.run("manage.py", "migrate", "--verbosity", "0")

    assert empty.query("SELECT version_num FROM hookonce.hookonce_version") == [(schema_version.REVISION,)]


def test_role_that_may_create_nothing_is_told_so_in_a_line(empty):
    empty.run("manage.py", "migrate", "auth", "--verbosity", "0")
    with psycopg.connect(empty.database_url, autocommit=True) as connection:
        connection.execute(
            f"DO $$ BEGIN CREATE ROLE {EMPTY_ROLE} LOGIN;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
        )
        connection.execute(f"GRANT ALL ON django_migrations TO {EMPTY_ROLE}")
    (empty.directory / "as_newcomer.py").write_text(
        f'from project.settings import *\nDATABASES["default"]["USER"] = "{EMPTY_ROLE}"\n'
        "import os\nos.environ.pop('DATABASE_URL')\n"
    )

    done = empty.run("manage.py", "migrate", "hookonce", check=False, DJANGO_SETTINGS_MODULE="as_newcomer")

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "can't be made by this role (permission denied for database" in done.stderr


@pytest.mark.parametrize(
    "command", [("check",), ("makemigrations", "--check"), ("shell", "-c", "import shop.models")]
)
def test_settings_are_imported_without_a_server(empty, command):
    empty.run("manage.py", *command, **NOWHERE)


@pytest.mark.parametrize(
    "command", [("migrate", "--skip-checks"), ("runserver", "--noreload", "--skip-checks")]
)
def test_command_that_connects_without_a_server_says_in_a_line_what_is_missing(empty, command):
    done = empty.run("manage.py", *command, check=False, **NOWHERE)

    assert done.returncode == 1
    assert done.stderr == f"NoDatabase: {NO_POSTGRESQL}\n"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('HOOKONCE_DATABASE = "nobody"', "hookonce.E001"),
        ('DATABASES["default"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": "lite"}', "hookonce.W001"),
        ('ROOT_URLCONF = "wrapped"', "hookonce.E004"),
    ],
)
def test_check_says_what_stands_in_the_way(empty, settings, said):
    (empty.directory / "wrong.py").write_text(f"from project.settings import *\n{settings}\n")
    (empty.directory / "wrapped.py").write_text(
        "from django.urls import path\nfrom django.views.decorators.csrf import csrf_protect\n"
        "from hookonce.django.views import receive\n"
        "view = csrf_protect(receive)\nview.csrf_exempt = False\n"
        'urlpatterns = [path("hooks/<path:rest>", view)]\n'
    )

    done = empty.run(
        *("manage.py", "check", "--fail-level", "WARNING"), check=False, DJANGO_SETTINGS_MODULE="wrong"
    )

    assert done.returncode == 1
    assert said in done.stderr


def test_check_names_a_handler_that_the_worker_refuses(empty):
    with (empty.directory / "shop" / "webhooks.py").open("a") as module:
        module.write("\n\n@on('stripe')\ndef orm(event, session): ...\n")

    done = empty.run("manage.py", "check", check=False)

    assert "hookonce.E003" in done.stderr
    assert "'shop.webhooks.orm' takes an SQLAlchemy session" in done.stderr


def test_check_of_a_database_without_ledger_names_the_command(empty):
    done = empty.run("manage.py", "check", "--database", "default", check=False)

    assert "hookonce.W004" in done.stderr
    assert "DATABASES['default'] has no ledger in the schema hookonce yet" in done.stderr
    assert "HINT: `manage.py migrate` makes it" in done.stderr


@pytest.mark.parametrize(
    ("option", "said"), [("--concurrency", "expected 1 to 256"), ("--processes", "expected 1 or more")]
)
def test_number_that_cannot_be_is_refused(empty, option, said):
    done = empty.run("manage.py", "hookonce_worker", option, "0", check=False)

    assert done.returncode == 1
    assert f"{option} 0: {said}" in done.stderr


def test_worker_makes_many_runs_at_once_each_on_its_own_connection_and_batches_beside_them(empty):
    (empty.directory / "shop" / "webhooks.py").write_text(
        "import threading\n\nfrom django.db import connection as ours\nfrom hookonce import on, on_batch\n"
        "from shop.models import Payment\n\ntogether = threading.Barrier(4)\n\n\n"
        "@on('stripe', 'invoice.paid')\n"
        "def book(event, connection):\n"
        "    Payment.objects.create(invoice=event.event_id, cents=ours.connection.info.backend_pid)\n"
        "    together.wait(30)\n\n\n"
        "@on_batch('stripe', 'invoice.paid')\n"
        "def count(events, connection):\n"
        "    Payment.objects.create(invoice='counted', cents=-len(events))\n"
    )
    empty.run("manage.py", "migrate", "--verbosity", "0")
    with empty.serving(SERVERS["django under gunicorn gthread"][1]) as served:
        for number in range(4):
            assert served.deliver(paid(number)).status == 200

    worker = empty.start("manage.py", "hookonce_worker", "--concurrency", "4")
    until(
        lambda: empty.query("SELECT count(*) FROM hookonce.event_states WHERE status = 'done'")[0][0],
        4,
        seconds=DEADLINE,
        process=worker,
    )
    end(worker)

    booked = empty.query(
        "SELECT count(DISTINCT invoice), count(DISTINCT cents) FROM shop_payment WHERE cents > 0"
    )
    assert booked == [(4, 4)]
    assert empty.query("SELECT sum(cents) FROM shop_payment WHERE invoice = 'counted'") == [(-4,)]
