"""What pytest loads of ours, and what it leaves behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookonce.testing import servers
from tests.support.waiting import until
from tests.support.warm_python import WarmPython

DEADLINE = 60
IMPORTED = """
import sys

def test_nothing_of_ours_is_imported():
    ours = {name for name in sys.modules if name.partition(".")[0] == "hookonce"}
    others = {name.partition(".")[0] for name in sys.modules}
    assert ours == {"hookonce", "hookonce.late_names", "hookonce.testing", "hookonce.testing.plugin"}, ours
    assert not others & {"sqlalchemy", "psycopg", "redis", "rq", "gevent", "flask", "pydantic", "click"}, others
"""
USES = """
import os
import pytest

@pytest.mark.parametrize("number", range(4))
def test_inbox(inbox, number):
    assert inbox.deliver("stripe", "invoice.paid").number == 1
    with open({log!r}, "a") as log:
        log.write(inbox.database_url.partition("host=")[2] + "\\n")
    if {dies} and number == 3:
        os.kill(os.getpid(), 9)
"""
HANDLES = """
from hookonce import on
from hookonce.testing import ignored

def test_first(inbox):
    @on("stripe", "invoice.paid", name="of the test")
    def handle(event, tx): ...
    assert inbox.deliver("stripe", "invoice.paid").detail.event.status == "done"

def test_second(inbox):
    ignored(inbox.deliver("stripe", "invoice.paid"))
"""
OTHER_SCHEMA = """
from sqlalchemy import select
from hookonce import RetryLater, on
from hookonce.ledger import event_states

def test_own_sql_finds_the_ledger(inbox):
    @on("stripe", "invoice.paid", name="of the test")
    def handle(event, tx):
        if event.attempt == 1 and not seen:
            seen.append(tx.scalar(select(event_states.c.status)))
            raise RetryLater(60)
    seen = []
    paid = inbox.deliver("stripe", "invoice.paid")
    inbox.clock.advance(61)
    inbox.work()
    assert (seen, paid.detail.event.status) == (["running"], "done")
    assert inbox.execute("SELECT status FROM inbox.event_states") == [("done",)]
"""


@pytest.fixture(scope="module")
def warm():
    """What pytest is forked from where its own start is not what is looked at."""
    made = WarmPython("pytest", "hookonce.testing.inbox", "hookonce.testing.servers", "hookonce.receiver.app")
    yield made
    made.close()


def run(place, text, *options, start=None, **environ):
    """Run a file of tests in a process of its own; its exit code, and what it said."""
    (place / "test_it.py").write_text(text)
    ours = ("HOOKONCE_", "DATABASE_URL", "REDIS_URL", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    with (place / "said").open("wb") as said:
        process = (start or cold)(command, cwd=place, env=kept | environ, output=said)
    return process.wait(DEADLINE), (place / "said").read_text()


def cold(command, output, **options):
    return subprocess.Popen([sys.executable, *command], stdout=output, stderr=output, **options)


def test_run_that_asks_for_no_fixture_imports_nothing(tmp_path):
    code, said = run(tmp_path, IMPORTED)

    assert code == 0, said


@pytest.mark.parametrize(
    ("options", "dies"),
    [
        pytest.param([], False, id="one", marks=pytest.mark.long),
        pytest.param(["-n", "2"], False, id="two"),
        pytest.param([], True, id="killed", marks=pytest.mark.long),
    ],
)
def test_servers_are_started_once_and_nothing_of_them_is_left(tmp_path, warm, options, dies):
    log = tmp_path / "log"

    _, said = run(tmp_path, USES.format(log=str(log), dies=dies), *options, start=warm.start)

    assert ("4 passed" in said) is not dies, said
    (host,) = set(log.read_text().split())  # one PostgreSQL
    directory = next(each for each in Path(host).parents if each.name.startswith("hookonce-testing-"))
    until(lambda: not directory.exists(), seconds=DEADLINE, what=f"the end of {directory}")


def test_handlers_of_one_test_are_not_those_of_the_next_and_servers_may_be_given(tmp_path, warm, servers):
    given = {"HOOKONCE_TEST_DATABASE_URL": servers.database_url, "HOOKONCE_TEST_REDIS_URL": servers.redis_url}

    _, said = run(tmp_path, HANDLES, start=warm.start, **given)

    assert "2 passed" in said, said


def test_ledger_of_the_tests_lies_in_the_schema_that_is_configured(tmp_path, warm, servers):
    given = {"HOOKONCE_TEST_DATABASE_URL": servers.database_url, "HOOKONCE_TEST_REDIS_URL": servers.redis_url}
    (tmp_path / "hookonce.toml").write_text('[receiver]\nschema = "inbox"\n')

    _, said = run(tmp_path, OTHER_SCHEMA, start=warm.start, **given)

    assert "1 passed" in said, said


def test_one_server_that_is_given_is_a_mistake(tmp_path, warm):
    _, said = run(tmp_path, HANDLES, start=warm.start, HOOKONCE_TEST_REDIS_URL="redis://127.0.0.1:1")

    assert "belong together; set both, or none" in said


def test_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "_MEMORY_DISK", tmp_path)
    monkeypatch.setattr(servers, "_ENOUGH", 0)
    monkeypatch.setattr("os.geteuid", lambda: -1)

    with pytest.raises(servers.EmbeddedError, match="is another user's"):
        servers._directory()  # noqa: SLF001
