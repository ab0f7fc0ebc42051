"""Runs docs/how-to/from-your-own-endpoint.md: what its view forgets, and the move to hookonce beside it."""

import json
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.dev.stack import session
from hookonce.receiver.samples import documents
from tests.support import page_commands
from tests.support.dev_stack import started
from tests.support.waiting import until

PAGE = (page_commands.DOCS / "how-to/from-your-own-endpoint.md").read_text()
VIEW, HANDLER, HAND_ON = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
(CONFIGURATION,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SECRET = "of the page about an endpoint"


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("GITHUB_WEBHOOK_SECRET", SECRET)


@pytest.fixture
def place(disk):
    """A folder with the handler and the configuration of the page."""
    made = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    made.chmod(0o711)  # PostgreSQL runs as another user if we are root
    (made / "shop.py").write_text(HANDLER)
    (made / "hookonce.toml").write_text(CONFIGURATION)
    yield made
    shutil.rmtree(made)


def begun(*blocks):
    """A client of the view, in a process that has just begun."""
    names = {"__name__": "__main__"}
    exec(compile("\n".join(blocks), "from-your-own-endpoint.md", "exec"), names)  # noqa: S102  our own page
    return names["app"].test_client()


def pushed(secret=SECRET, event_id="a1"):
    document = documents.fresh(load("github"), "push", datetime.now(UTC), event_id)
    return document.delivery(secret, datetime.now(UTC), "")


def post(client, delivery):
    return client.post("/webhook", data=delivery.body, headers=dict(delivery.headers)).status_code


def test_view_of_the_page_forgets_at_a_restart_what_it_has_done(capsys):
    delivery, view = pushed(), begun(VIEW)

    answers = [post(view, each) for each in (delivery, delivery, pushed("a forger's"))]
    assert (answers, capsys.readouterr().out.count("pushed to")) == ([204, 204, 401], 1)

    post(begun(VIEW), delivery)
    assert capsys.readouterr().out.count("pushed to") == 1


def test_delivery_that_comes_by_both_ways_is_one_event(place, monkeypatch):
    delivery = pushed()
    with started(place, GITHUB_WEBHOOK_SECRET=SECRET) as dev:
        inbox = f"http://127.0.0.1:{dev.port}/hooks/github"
        monkeypatch.setenv("INBOX", inbox)
        view = begun(VIEW, HAND_ON)

        assert [post(view, each) for each in (delivery, delivery, pushed("a forger's"))] == [200, 200, 401]
        with session() as direct:
            answer = direct.post(inbox, data=delivery.body, headers=dict(delivery.headers))

        def listed():
            lines = dev.run("events", "list", "--json").stdout.splitlines()
            return [(each["event_id"], each["status"], each["deliveries"]) for each in map(json.loads, lines)]

        assert answer.json()["status"] == "duplicate"
        until(listed, [("a1", "done", 3)])


def test_view_answers_500_while_hookonce_is_away(monkeypatch):
    monkeypatch.setenv("INBOX", "http://127.0.0.1:1/hooks/github")

    assert post(begun(VIEW, HAND_ON), pushed()) == 500
