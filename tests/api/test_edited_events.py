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
def allowed(inbox):
    """The source `stripe`, with `tests = true`."""
    inbox.settings.sources["stripe"] = replace(inbox.settings.sources["stripe"], tests=True)


@pytest.fixture
def origin(inbox):
    (number,) = inbox.deliver("evt_1NG8Du2eZvKYlo2C", body=BODY, status="done")
    return number


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("asked", "status"), [({}, "held"), ({"run": True}, "received")])
def test_edited_event_runs_only_if_one_says_so_and_names_its_origin(inbox, origin, asked, status):
    sent = inbox.ask("POST", f"/events/{origin}/edited", {"body": EDITED, **asked}, scope="admin")

    shown = inbox.ask("GET", f"/events/{sent.json['id']}").json
    body = json.loads(inbox.ask("GET", f"/events/{sent.json['id']}/body").data)
    assert sent.status_code == 201
    assert sent.headers["Location"].endswith(f"/events/{sent.json['id']}")
    assert (shown["is_test"], shown["status"], shown["type"]) == (True, status, "invoice.paid")
    assert shown["headers"][edits.EDITED_FROM] == str(origin)
    assert shown["event_id"] == body["id"] != "evt_1NG8Du2eZvKYlo2C"
    assert body["data"]["object"]["amount"] == 2
    assert inbox.rows(
        "SELECT who, action, subject, detail->>'event_id', detail->>'runs' FROM hookonce.audit "
        "WHERE action <> 'look' ORDER BY id DESC LIMIT 1"
    ) == [("admin (token)", "send edited", f"event {origin}", body["id"], str("run" in asked).lower())]


@pytest.mark.usefixtures("allowed")
def test_edited_event_that_is_held_runs_once_it_is_released(inbox, origin):
    sent = inbox.ask("POST", f"/events/{origin}/edited", {"body": EDITED}).json

    inbox.ask("POST", "/releases", {"events": [sent["id"]]})

    assert inbox.rows("SELECT waits FROM hookonce.queue WHERE event = %s", sent["id"]) == [(None,)]


@pytest.mark.usefixtures("allowed")
def test_same_event_is_edited_twice_and_an_edited_one_is_edited_on(inbox, origin):
    first = inbox.ask("POST", f"/events/{origin}/edited", {"body": EDITED}).json
    second = inbox.ask("POST", f"/events/{origin}/edited", {"body": EDITED}).json
    third = inbox.ask(
        "POST", f"/events/{first['id']}/edited", {"body": EDITED.replace("evt_1N", "evt_9N")}
    ).json

    assert len({origin, first["id"], second["id"], third["id"]}) == 4
    shown = inbox.ask("GET", f"/events/{third['id']}").json
    assert shown["headers"][edits.EDITED_FROM] == str(first["id"])


@pytest.mark.usefixtures("allowed")
def test_id_of_another_event_that_is_typed_in_is_refused(inbox, origin):
    inbox.deliver("evt_other", body=b"{}")

    refused = inbox.ask(
        "POST", f"/events/{origin}/edited", {"body": EDITED.replace("evt_1NG8Du2eZvKYlo2C", "evt_other")}
    )

    assert refused.status_code == 409
    assert "an event with this id is in the ledger already" in refused.json["detail"]


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("body", "status"),
    [("x" * (edits.MAX_EDITED + 1), 422), ("\udc80", 422)],
)
def test_body_that_is_too_large_or_no_text_is_refused(inbox, origin, body, status):
    assert inbox.ask("POST", f"/events/{origin}/edited", {"body": body}).status_code == status
    assert inbox.rows("SELECT count(*) FROM hookonce.events") == [(1,)]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "set tests = true in [sources.stripe]"),
        ({"tests": True, "secrets": (), "secret_names": ()}, "has no signing secret"),
        ({"tests": True, "provider": load("paypal")}, "nothing can be signed for source"),
    ],
)
def test_source_that_can_not_be_signed_for_says_so(inbox, origin, changes, why):
    inbox.settings.sources["stripe"] = replace(inbox.settings.sources["stripe"], **changes)

    refused = inbox.ask("POST", f"/events/{origin}/edited", {"body": EDITED})

    assert refused.status_code == 409
    assert why in refused.json["detail"]
    assert inbox.rows("SELECT count(*) FROM hookonce.events") == [(1,)]


def test_event_of_a_source_that_is_gone_is_not_sent(inbox, origin):
    del inbox.settings.sources["stripe"]

    assert inbox.ask("POST", f"/events/{origin}/edited", {"body": EDITED}).status_code == 409


@pytest.mark.parametrize("name", ["github", "clerk", "shopify", "slack", "telegram"])
def test_event_of_other_senders_gets_an_id_where_they_have_it(inbox, name):
    provider = load(name)
    secret = SECRET
    inbox.settings.sources["stripe"] = Source("stripe", provider, (secret,), tests=True)
    sent = inbox.ask("POST", "/sources/stripe/test-events", {})
    assert sent.status_code == 201, sent.json
    body = inbox.ask("GET", f"/events/{sent.json['id']}/body").data.decode()

    edited = inbox.ask("POST", f"/events/{sent.json['id']}/edited", {"body": body.replace("}", " }", 1)})

    assert edited.status_code == 201, edited.json
    assert edited.json["event_id"] != sent.json["event_id"]


def test_id_that_is_made_of_several_fields_is_left_to_whoever_edits(inbox):
    inbox.settings.sources["stripe"] = Source("stripe", load("paystack"), (SECRET,), tests=True)
    sent = inbox.ask("POST", "/sources/stripe/test-events", {}).json
    body = inbox.ask("GET", f"/events/{sent['id']}/body").data.decode()
    made_of = sent["event_id"].split(":")[-1]

    refused = inbox.ask("POST", f"/events/{sent['id']}/edited", {"body": body + " "})
    taken = inbox.ask("POST", f"/events/{sent['id']}/edited", {"body": body.replace(made_of, "1" + made_of)})

    assert refused.status_code == 409
    assert f"still has the id of event {sent['id']}, '{sent['event_id']}'" in refused.json["detail"]
    assert taken.status_code == 201
