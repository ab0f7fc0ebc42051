import webbrowser
from types import SimpleNamespace

import pytest

from hookonce.receiver.cli.commands import open_event

pytestmark = pytest.mark.usefixtures("inbox")


@pytest.fixture
def opened(monkeypatch):
    """What is opened in a browser, at a terminal."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda url: addresses.append(url) or True)
    be_terminal(monkeypatch, is_one=True)
    return addresses


def be_terminal(monkeypatch, *, is_one):
    monkeypatch.setattr(open_event, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: is_one)))


@pytest.fixture
def at_the_console(monkeypatch):
    monkeypatch.setenv("HOOKONCE_CONSOLE", "https://hooks.example.com/")
    return "https://hooks.example.com/admin/events/"


def test_event_is_opened_in_a_browser_by_a_senders_id(hookonce, stored, at_the_console, opened):
    number = stored("evt_1")

    ran = hookonce("events", "open", "stripe:evt_1")

    assert ran.lines == [f"{at_the_console}{number}"]
    assert opened == ran.lines


def test_address_is_only_printed_without_a_terminal(hookonce, stored, at_the_console, opened, monkeypatch):
    be_terminal(monkeypatch, is_one=False)
    number = stored("evt_1")

    assert hookonce("events", "open", number).lines == [f"{at_the_console}{number}"]
    assert opened == []


@pytest.mark.usefixtures("opened")
def test_console_is_at_the_public_url_unless_said_otherwise(hookonce, stored, monkeypatch):
    monkeypatch.setenv("HOOKONCE_PUBLIC_URL", "https://inbox.example.com")
    number = stored("evt_1")

    assert hookonce("events", "open", number).lines == [f"https://inbox.example.com/admin/events/{number}"]


@pytest.mark.parametrize("console", ["", "file:///etc/passwd", "hooks.example.com"])
def test_console_that_is_not_known_says_what_to_set(hookonce, stored, monkeypatch, opened, console):
    monkeypatch.setenv("HOOKONCE_CONSOLE", console)

    ran = hookonce("events", "open", stored("evt_1"))

    assert ran.code == 78
    assert "set HOOKONCE_CONSOLE to what precedes /admin" in ran.err
    assert opened == []


@pytest.mark.usefixtures("opened", "at_the_console")
def test_event_that_is_not_there_is_not_opened(hookonce):
    assert hookonce("events", "open", "7").code == 4
