import io
import json
import os
import subprocess
import sys

import pytest

from hookonce.receiver.remote import profiles
from tests.cli.conftest import hookonce, place  # noqa: F401  fixtures
from tests.support.odd_server import answering, reply
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("home", "place")


def log_in(hookonce, monkeypatch, url, token, *options):  # noqa: F811
    monkeypatch.setattr("sys.stdin", io.StringIO(token + "\n"))
    return hookonce("login", url, *options)


def test_login_keeps_the_token_and_says_its_scopes(hookonce, served, monkeypatch):  # noqa: F811
    token = served.token("ada", "read", "replay")

    said = log_in(hookonce, monkeypatch, served.url, token, "--name", "prod")

    assert said.code == 0, said.err
    assert f"logged in to {served.url} as 'ada', scopes read, replay, until it is revoked" in said.err
    assert profiles.find("prod").token == profiles.find(served.url).token == token
    assert token not in said.err + said.out.decode()
    assert hookonce("login", "--list").lines[1].split() == ["prod", served.url]


def test_login_with_a_token_that_is_unknown_keeps_nothing(hookonce, served, monkeypatch):  # noqa: F811
    said = log_in(hookonce, monkeypatch, served.url, "hko_" + "z" * 43)

    assert said.code == 1
    assert said.err.startswith("hookonce: ")
    assert "hookonce tokens create" in said.err
    assert said.err.count("\n") == 1
    assert profiles.listing() == []


@pytest.mark.parametrize(
    ("url", "token", "code", "said"),
    [
        ("http://inbox.example", "hko_" + "a" * 43, 2, "in the clear"),
        ("inbox.example", "hko_" + "a" * 43, 2, "https://inbox.example"),
        ("https://inbox.example", "my password", 1, "that is no API token"),
        ("https://inbox.example", "", 1, "that is no API token"),
    ],
)
def test_login_asks_nobody_where_it_can_not_succeed(hookonce, monkeypatch, url, token, code, said):  # noqa: F811
    refused = log_in(hookonce, monkeypatch, url, token)

    assert refused.code == code
    assert said in refused.err
    assert "my password" not in refused.err


def test_login_at_what_is_no_inbox_keeps_nothing(hookonce, monkeypatch):  # noqa: F811
    for answer in (reply(200, b"<html>", "text/html"), reply(200, b'{"name": 1}')):
        with answering(answer) as server:
            refused = log_in(hookonce, monkeypatch, server.url, "hko_" + "a" * 43)

        assert refused.code == 1
        assert "is no inbox" in refused.err
    assert profiles.listing() == []


def test_logout_forgets_the_token(hookonce, served, monkeypatch):  # noqa: F811
    log_in(hookonce, monkeypatch, served.url, served.token("ada", "read"))

    gone, again = hookonce("logout", served.url), hookonce("logout", served.url)

    assert (gone.code, again.code) == (0, 4)
    assert "hookonce tokens revoke" in gone.err
    assert profiles.listing() == []


def test_token_is_never_in_the_list_of_processes(served, home):
    token = served.token("ada", "read")
    with subprocess.Popen(
        [sys.executable, "-m", "hookonce.receiver.cli", "login", served.url],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.getcwd()},  # noqa: PTH109
        text=True,
    ) as process:
        seen = []
        process.stdin.write(token)
        process.stdin.close()

        def is_over():
            with open(f"/proc/{process.pid}/cmdline") as told:  # noqa: PTH123
                seen.append(told.read())
            return process.poll() is not None

        until(is_over, seconds=60)
        assert process.returncode == 0, process.stderr.read()
    assert seen
    assert not any(token in each for each in seen)
    assert json.loads((home / "config/hookonce/profiles.json").read_text())
