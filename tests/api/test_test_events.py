from dataclasses import replace

import pytest


@pytest.fixture
def allowed(inbox):
    """The source `stripe`, with `tests = true`."""
    inbox.settings.sources["stripe"] = replace(inbox.settings.sources["stripe"], tests=True)


@pytest.mark.usefixtures("allowed")
def test_test_event_is_taken_in_marked_and_audited(inbox):
    sent = inbox.ask("POST", "/sources/stripe/test-events", {"type": "invoice.paid"})

    shown = inbox.ask("GET", f"/events/{sent.json['id']}").json
    assert (sent.status_code, sent.json["type"]) == (201, "invoice.paid")
    assert (shown["event_id"], shown["is_test"]) == (sent.json["event_id"], True)
    assert inbox.rows(
        "SELECT who, action, subject, detail->>'event_id' FROM hookonce.audit "
        "WHERE action <> 'look' ORDER BY id DESC LIMIT 1"
    ) == [("admin (token)", "test event", "source stripe", sent.json["event_id"])]


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("path", "body", "scope", "status"),
    [
        ("/sources/nowhere/test-events", {}, "admin", 404),
        ("/sources/stripe/test-events", {"type": "invoice.payd"}, "admin", 404),
        ("/sources/stripe/test-events", {}, "replay", 403),
        ("/sources/stripe/test-events", {}, "read", 403),
    ],
)
def test_test_event_is_refused_to_whom_and_of_what_it_should_be(inbox, path, body, scope, status):
    assert inbox.ask("POST", path, body, scope=scope).status_code == status
    assert inbox.rows("SELECT count(*) FROM hookonce.event_states") == [(0,)]


def test_test_event_is_refused_where_the_source_does_not_allow_it(inbox):
    refused = inbox.ask("POST", "/sources/stripe/test-events", {})

    assert refused.status_code == 409
    assert "set tests = true in [sources.stripe]" in refused.json["detail"]
