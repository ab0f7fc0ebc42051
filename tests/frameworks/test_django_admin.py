"""Events, runs and failed attempts in Django's admin: shown, linked to the console, and never changed."""

import re

import psycopg
import pytest

from tests.support.applications import SERVERS, Project, end, paid
from tests.support.waiting import until

DEADLINE = 60
BROWSER = """
import sys
import django
django.setup()
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import override_settings

User.objects.filter(username="one").delete()
user = User.objects.create_user("one", is_staff=True, is_superuser=sys.argv[1] == "superuser")
user.user_permissions.set(Permission.objects.filter(codename__in=sys.argv[2].split(",")))
client = Client(HTTP_HOST="localhost")
client.force_login(user)
with override_settings(HOOKONCE_CONSOLE="https://inbox.example.com/"):
    for path in sys.argv[3:]:
        answer = client.get("/admin/hookonce/" + path, follow=True)
        print("==", path, answer.status_code)
        print(answer.content.decode())
"""
HANDLERS = """
from hookonce import on


@on("stripe", "invoice.paid", attempts=1)
def book(event, connection):
    if event.event_id == "evt_1":
        raise LookupError("no such customer")
"""
TABLES = "hookonce.events, hookonce.run_states, hookonce.failures, hookonce.event_states, hookonce.queue, hookonce.runs"


@pytest.fixture(scope="module")
def shop(tmp_path_factory, fresh_database, fresh_redis):
    """A project with events that are done, and a dead one."""
    with fresh_database() as database_url, fresh_redis() as redis_url:
        yield filled(Project("django", tmp_path_factory.mktemp("shop"), database_url, redis_url))


def filled(project):
    (project.directory / "shop" / "webhooks.py").write_text(HANDLERS)
    project.make_tables()
    with project.serving(SERVERS["django under gunicorn gthread"][1]) as served:
        for number in range(3):
            assert served.deliver(paid(number)).status == 200
    worker = project.start("manage.py", "hookonce_worker")
    until(
        lambda: project.query("SELECT count(*) FROM hookonce.runs")[0][0],
        3,
        seconds=DEADLINE,
        process=worker,
    )
    end(worker)
    return project


def pages(project, *paths, role="superuser", may=""):
    """What a browser is shown, by path, without its markup."""
    said = project.run("-c", BROWSER, role, may, *paths).stdout
    parts = re.split(r"^== (\S*) (\d+)$", said, flags=re.MULTILINE)
    return {
        path: (int(code), html)
        for path, code, html in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    }


def test_admin_shows_events_runs_and_failures_with_the_console(shop):
    number = shop.query("SELECT id FROM hookonce.events WHERE event_id = 'evt_1'")[0][0]
    paths = ("event/", "event/?status=dead", "event/?q=evt_2", f"event/{number}/change/", "run/", "failure/")

    shown = pages(shop, *paths)

    assert {code for code, _ in shown.values()} == {200}
    everything, dead, found, one, runs, failures = (shown[each][1] for each in paths)
    assert [re.findall(r">(evt_\d)<", each) for each in (everything, dead, found)] == [
        ["evt_2", "evt_1", "evt_0"],
        ["evt_1"],
        ["evt_2"],
    ]
    assert f'href="https://inbox.example.com/admin/events/{number}"' in everything
    assert "LookupError: no such customer" in one
    assert runs.count("shop.webhooks.book") == 3
    assert re.findall(r">(done|dead)<", runs) == ["done", "dead", "done"]
    assert "LookupError: no such customer" in failures
    assert not re.search(r"/hookonce/\w+/add/|/delete/|name=\"_save\"", f"{everything}{one}{runs}{failures}")


def test_admin_finds_events_and_what_belongs_to_them_by_what_an_index_serves(shop):
    number = shop.query("SELECT id FROM hookonce.events WHERE event_id = 'evt_1'")[0][0]
    paths = (f"event/?q={number}", "event/?q=invoice.paid", f"event/?q={'9' * 30}")
    runs = ("run/?q=evt_1", f"failure/?q={number}", "failure/?q=evt_0", "run/?q=shop.webhooks.book")

    shown = pages(shop, *paths, *runs)

    assert {code for code, _ in shown.values()} == {200}
    assert [re.findall(r">(evt_\d)<", shown[each][1]) for each in paths] == [["evt_1"], [], []]
    assert [shown[each][1].count(">stripe:evt_1</a>") for each in runs] == [1, 1, 0, 0]


def test_admin_says_that_a_statement_took_too_long(shop):
    with psycopg.connect(shop.database_url) as connection:
        connection.execute("LOCK hookonce.events")

        [(code, html)] = pages(shop, "event/").values()

    assert code == 200
    assert "The ledger did not answer within" in html


def test_admin_finds_an_event_whose_id_is_a_number(shop):
    shop.query("UPDATE hookonce.events SET event_id = '4242' WHERE event_id = 'evt_0' RETURNING id")
    try:
        [(code, html)] = pages(shop, "event/?q=4242").values()
    finally:
        shop.query("UPDATE hookonce.events SET event_id = 'evt_0' WHERE event_id = '4242' RETURNING id")

    assert (code, re.findall(r">(4242|evt_\d)<", html)) == (200, ["4242"])


def test_admin_shows_events_to_those_only_who_have_the_permission(shop):
    shown = pages(shop, "event/", "run/", role="staff", may="view_event")

    assert {path: code for path, (code, _) in shown.items()} == {"event/": 200, "run/": 403}


def test_role_that_may_not_read_the_ledger_is_told_the_grant(shop):
    with psycopg.connect(shop.database_url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE admin_of_the_tests LOGIN;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
        )
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO admin_of_the_tests")
        connection.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO admin_of_the_tests")
    (shop.directory / "as_admin.py").write_text(
        'from project.settings import *\nDATABASES["default"]["USER"] = "admin_of_the_tests"\n'
    )
    shop.environ["DJANGO_SETTINGS_MODULE"] = "as_admin"
    try:
        [(code, said)] = pages(shop, "event/").values()
        assert code == 200
        assert "Role admin_of_the_tests may not read the ledger" in said
        [grant] = re.findall(
            r"GRANT USAGE .*? TO admin_of_the_tests; GRANT SELECT .*? TO admin_of_the_tests", said
        )
        with psycopg.connect(shop.database_url, autocommit=True) as connection:
            connection.execute(grant.replace("&quot;", '"'))
        assert "evt_2" in pages(shop, "event/")["event/"][1]
    finally:
        shop.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"


def test_model_of_the_ledger_is_not_written(shop):
    done = shop.run(
        *(
            "manage.py",
            "shell",
            "-c",
            "from hookonce.django.models import Event; Event.objects.first().save()",
        ),
        check=False,
    )

    assert "TypeError: the ledger is hookonce's to write" in done.stderr
