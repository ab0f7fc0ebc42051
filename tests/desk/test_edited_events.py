"""An event is sent again with another body, as a test event that is signed as its sender would sign it."""

import json
from dataclasses import replace

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.intake import test_events as edits
from hookonce.receiver.source import Source

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQx3"
BODY = b'{"id": "evt_1NG8Du2eZvKYlo2C", "type": "invoice.paid", "data": {"object": {"amount": 1}}}'
EDITED = BODY.decode().replace('"amount": 1', '"amount": 2')


@pytest.fixture
def allowed(here):
    """The source `stripe`, with `tests = true`."""
    here.settings.sources["stripe"] = replace(here.settings.sources["stripe"], tests=True)


@pytest.fixture
def origin(here):
    (number,) = here.deliver("evt_1NG8Du2eZvKYlo2C", body=BODY, status="done")
    return number


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("asked", "status"), [({}, "held"), ({"run": True}, "received")])
def test_edited_event_runs_only_if_one_says_so_and_names_its_origin(here, origin, asked, status):
    sent = here.ask("send_edited_event", event=origin, body=EDITED, **asked, scope="admin")

    shown = here.ask("get_event", event=sent.json["id"]).json
    body = json.loads(here.ask("get_event_body", event=sent.json["id"]).data)
    assert sent.kind == "done"
    assert (shown["is_test"], shown["status"], shown["type"]) == (True, status, "invoice.paid")
    assert shown["headers"][edits.EDITED_FROM] == str(origin)
    assert shown["event_id"] == body["id"] != "evt_1NG8Du2eZvKYlo2C"
    assert body["data"]["object"]["amount"] == 2
    assert here.rows(
        "SELECT who, action, subject, detail->>'event_id', detail->>'runs' FROM hookonce.audit "
        "WHERE action <> 'look' ORDER BY id DESC LIMIT 1"
    ) == [("admin (token)", "send edited", f"event {origin}", body["id"], str("run" in asked).lower())]


@pytest.mark.usefixtures("allowed")
def test_edited_event_that_is_held_runs_once_it_is_released(here, origin):
    sent = here.ask("send_edited_event", event=origin, body=EDITED).json

    here.ask("release", events=[sent["id"]])

    assert here.rows("SELECT waits FROM hookonce.queue WHERE event = %s", sent["id"]) == [(None,)]


@pytest.mark.usefixtures("allowed")
def test_same_event_is_edited_twice_and_an_edited_one_is_edited_on(here, origin):
    first = here.ask("send_edited_event", event=origin, body=EDITED).json
    second = here.ask("send_edited_event", event=origin, body=EDITED).json
    third = here.ask("send_edited_event", event=first["id"], body=EDITED.replace("evt_1N", "evt_9N")).json

    assert len({origin, first["id"], second["id"], third["id"]}) == 4
    shown = here.ask("get_event", event=third["id"]).json
    assert shown["headers"][edits.EDITED_FROM] == str(first["id"])


@pytest.mark.usefixtures("allowed")
def test_id_of_another_event_that_is_typed_in_is_refused(here, origin):
    here.deliver("evt_other", body=b"{}")

    refused = here.ask(
        "send_edited_event", event=origin, body=EDITED.replace("evt_1NG8Du2eZvKYlo2C", "evt_other")
    )

    assert refused.kind == "Conflict"
    assert "an event with this id is in the ledger already" in refused.json["detail"]


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("body", "status"),
    [("x" * (edits.MAX_EDITED + 1), "Invalid"), ("\udc80", "Invalid")],
)
def test_body_that_is_too_large_or_no_text_is_refused(here, origin, body, status):
    assert here.ask("send_edited_event", event=origin, body=body).kind == status
    assert here.rows("SELECT count(*) FROM hookonce.events") == [(1,)]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "set tests = true in [sources.stripe]"),
        ({"tests": True, "secrets": (), "secret_names": ()}, "has no signing secret"),
        ({"tests": True, "provider": load("paypal")}, "nothing can be signed for source"),
    ],
)
def test_source_that_can_not_be_signed_for_says_so(here, origin, changes, why):
    here.settings.sources["stripe"] = replace(here.settings.sources["stripe"], **changes)

    refused = here.ask("send_edited_event", event=origin, body=EDITED)

    assert refused.kind == "Conflict"
    assert why in refused.json["detail"]
    assert here.rows("SELECT count(*) FROM hookonce.events") == [(1,)]


def test_event_of_a_source_that_is_gone_is_not_sent(here, origin):
    del here.settings.sources["stripe"]

    assert here.ask("send_edited_event", event=origin, body=EDITED).kind == "Conflict"


@pytest.mark.parametrize("name", ["github", "clerk", "shopify", "slack", "telegram"])
def test_event_of_other_senders_gets_an_id_where_they_have_it(here, name):
    provider = load(name)
    secret = SECRET
    here.settings.sources["stripe"] = Source("stripe", provider, (secret,), tests=True)
    sent = here.ask("send_test_event", source="stripe")
    assert sent.kind == "done", sent.json
    body = here.ask("get_event_body", event=sent.json["id"]).data.decode()

    edited = here.ask("send_edited_event", event=sent.json["id"], body=body.replace("}", " }", 1))

    assert edited.kind == "done", edited.json
    assert edited.json["event_id"] != sent.json["event_id"]


def test_id_that_is_made_of_several_fields_is_left_to_whoever_edits(here):
    here.settings.sources["stripe"] = Source("stripe", load("paystack"), (SECRET,), tests=True)
    sent = here.ask("send_test_event", source="stripe").json
    body = here.ask("get_event_body", event=sent["id"]).data.decode()
    made_of = sent["event_id"].split(":")[-1]

    refused = here.ask("send_edited_event", event=sent["id"], body=body + " ")
    taken = here.ask("send_edited_event", event=sent["id"], body=body.replace(made_of, "1" + made_of))

    assert refused.kind == "Conflict"
    assert f"still has the id of event {sent['id']}, '{sent['event_id']}'" in refused.json["detail"]
    assert taken.kind == "done"
