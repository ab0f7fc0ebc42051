from dataclasses import replace

import pytest


@pytest.fixture
def allowed(here):
    """The source `stripe`, with `tests = true`."""
    here.settings.sources["stripe"] = replace(here.settings.sources["stripe"], tests=True)


@pytest.mark.usefixtures("allowed")
def test_test_event_is_taken_in_marked_and_audited(here):
    sent = here.ask("send_test_event", source="stripe", type="invoice.paid")

    shown = here.ask("get_event", event=sent.json["id"]).json
    assert (sent.kind, sent.json["type"]) == ("done", "invoice.paid")
    assert (shown["event_id"], shown["is_test"]) == (sent.json["event_id"], True)
    assert here.rows(
        "SELECT who, action, subject, detail->>'event_id' FROM hookonce.audit "
        "WHERE action <> 'look' ORDER BY id DESC LIMIT 1"
    ) == [("admin (token)", "test event", "source stripe", sent.json["event_id"])]


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("asked", "scope", "kind"),
    [
        ({"source": "nowhere"}, "admin", "NotFound"),
        ({"source": "stripe", "type": "invoice.payd"}, "admin", "NotFound"),
        ({"source": "stripe"}, "replay", "Forbidden"),
        ({"source": "stripe"}, "read", "Forbidden"),
    ],
)
def test_test_event_is_refused_to_whom_and_of_what_it_should_be(here, asked, scope, kind):
    assert here.ask("send_test_event", **asked, scope=scope).kind == kind
    assert here.rows("SELECT count(*) FROM hookonce.event_states") == [(0,)]


def test_test_event_is_refused_where_the_source_does_not_allow_it(here):
    refused = here.ask("send_test_event", source="stripe")

    assert refused.kind == "Conflict"
    assert "set tests = true in [sources.stripe]" in refused.json["detail"]
