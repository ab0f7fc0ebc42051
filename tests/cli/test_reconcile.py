import pytest

from hookonce.providers.kit.calls import Answer
from hookonce.receiver.intake.sender_api import client
from tests.sender_api.test_reconciling import event
from tests.support.fake_senders import Clock, json_of

ASKING = '\n[sources.asking]\nprovider = "stripe"\nsecrets = ["env:S?"]\napi_key = "env:STRIPE_KEY"\nreconcile = "1h"\n'


@pytest.fixture
def listed(inbox, rings, monkeypatch):  # noqa: ARG001
    """The events that the sender lists; `status` is what it answers."""
    path = inbox / "hookonce.toml"
    path.write_text(path.read_text() + ASKING)
    monkeypatch.setenv("STRIPE_KEY", "rk_test_51AAAA")
    found = []

    def call(request, hosts):
        assert hosts == ("api.stripe.com",)
        assert request.headers["authorization"] == "Bearer rk_test_51AAAA"
        status, headers, body = json_of({"object": "list", "has_more": False, "data": found})
        return Answer(status, headers, body)

    monkeypatch.setattr(client.Means.__new__, "__defaults__", (call, *client.Means.__new__.__defaults__[1:]))
    return found


def test_dry_run_lists_what_is_missing_and_takes_nothing(listed, hookonce):
    listed.append(event(1, Clock().now.replace(hour=0)))

    said = hookonce("reconcile", "asking", "--dry-run", "--since", "2d")

    assert said.code == 0
    assert listed[0]["id"].encode() in said.out
    assert b"no delivery was answered 2xx" in said.out
    assert hookonce("events", "list", "--json").documents == []


def test_reconcile_takes_in_what_is_missing(listed, hookonce):
    listed.append(event(1, Clock().now.replace(hour=0)))

    said = hookonce("reconcile", "asking")

    assert (said.code, said.err.strip()) == (0, "compared; nothing is missing")
    assert [each["event_id"] for each in hookonce("events", "list", "--json").documents] == [listed[0]["id"]]


@pytest.mark.usefixtures("inbox", "rings")
def test_source_whose_sender_is_not_asked_is_told_so(hookonce):
    said = hookonce("reconcile", "stripe")

    assert said.code == 1
    assert "stripe is not asked what it sent; it needs api_key and reconcile" in said.err
