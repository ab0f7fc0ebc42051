from dataclasses import replace

import pytest


@pytest.fixture
def allowed(here):
    """The source `stripe`, with `tests = true`."""
    here.settings.sources["stripe"] = replace(here.settings.sources["stripe"], tests=True)


@pytest.mark.usefixtures("allowed")
def test_test_event_is_taken_in_marked_and_audited(here):
    sent = here.ask("send_test_event", source="stripe", type="invoice.paid")
    other = here.ask("send_test_event", source="stripe", type="invoice.paid")

    shown = here.ask("get_event", event=sent.json["id"]).json
    assert (sent.kind, sent.json["type"]) == ("done", "invoice.paid")
    assert (shown["event_id"], shown["is_test"]) == (sent.json["event_id"], True)
    assert here.rows(
        "SELECT who, action, subject, detail->>'event_id' FROM hookonce.audit WHERE action <> 'look' ORDER BY id"
    ) == [("admin (token)", "test event", "source stripe", each.json["event_id"]) for each in (sent, other)]
    assert here.rows("SELECT id FROM hookonce.events WHERE repeat_of IS NOT NULL") == []


@pytest.mark.usefixtures("allowed")
def test_test_event_of_a_type_that_there_is_not_is_refused(here):
    assert here.ask("send_test_event", source="stripe", type="invoice.payd").kind == "NotFound"
    assert here.rows("SELECT count(*) FROM hookonce.event_states") == [(0,)]


def test_test_event_is_refused_where_the_source_does_not_allow_it(here):
    refused = here.ask("send_test_event", source="stripe")

    assert refused.kind == "Conflict"
    assert "set tests = true in [sources.stripe]" in refused.json["detail"]
