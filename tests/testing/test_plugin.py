"""What pytest loads of ours, and what it leaves behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hookonce.testing import servers

DEADLINE = 60
IMPORTED = """
import sys

def test_nothing_of_ours_is_imported():
    ours = {name for name in sys.modules if name.partition(".")[0] == "hookonce"}
    others = {name.partition(".")[0] for name in sys.modules}
    assert ours == {"hookonce", "hookonce.testing", "hookonce.testing.plugin"}, ours
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


def run(place, text, *options, **environ):
    (place / "test_it.py").write_text(text)
    ours = ("HOOKONCE_", "DATABASE_URL", "REDIS_URL", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=place,
        env=kept | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_run_that_asks_for_no_fixture_imports_nothing(tmp_path):
    done = run(tmp_path, IMPORTED)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("options", "dies"), [([], False), (["-n", "2"], False), ([], True)], ids=["one", "two", "killed"]
)
def test_servers_are_started_once_and_nothing_of_them_is_left(tmp_path, options, dies):
    log = tmp_path / "log"

    done = run(tmp_path, USES.format(log=str(log), dies=dies), *options)

    assert ("4 passed" in done.stdout) is not dies, done.stdout
    (host,) = set(log.read_text().split())  # one PostgreSQL
    directory = next(each for each in Path(host).parents if each.name.startswith("hookonce-testing-"))
    deadline = time.monotonic() + DEADLINE
    while directory.exists():
        assert time.monotonic() < deadline, f"{directory} is still there"
        time.sleep(0.05)


def test_handlers_of_one_test_are_not_those_of_the_next(tmp_path):
    done = run(tmp_path, HANDLES)

    assert "2 passed" in done.stdout, done.stdout


def test_servers_may_be_given(tmp_path, servers):
    given = {"HOOKONCE_TEST_DATABASE_URL": servers.database_url, "HOOKONCE_TEST_REDIS_URL": servers.redis_url}

    done = run(tmp_path, HANDLES, **given)
    half = run(tmp_path, HANDLES, HOOKONCE_TEST_REDIS_URL=servers.redis_url)

    assert "2 passed" in done.stdout, done.stdout
    assert "belong together; set both, or none" in half.stdout


def test_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "_MEMORY_DISK", tmp_path)
    monkeypatch.setattr(servers, "_ENOUGH", 0)
    monkeypatch.setattr("os.geteuid", lambda: -1)

    with pytest.raises(servers.EmbeddedError, match="is another user's"):
        servers._directory()  # noqa: SLF001
